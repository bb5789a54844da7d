"""Runs of a scenario in a sweep (`roadstead sweep`), each with its metrics."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from roadstead.api.plugin_choice import ChosenPlugins
from roadstead.api.run_folder import write_summary
from roadstead.api.scenario_plan import plan_of
from roadstead.bench.machine import own_memory_bytes
from roadstead.config.scenario.read import ScenarioFile
from roadstead.config.scenario.vary import unpacked, vary
from roadstead.cycle.batch import CompiledKernel
from roadstead.framework.user_plugins import check_digests
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.protocol.errors import InputError
from roadstead.simulator.metrics import MetricsRecorder
from roadstead.simulator.play import Variant, play, play_to_horizon
from roadstead.simulator.scenario import CompiledScenario
from roadstead.sweeps.functions import RunTask
from roadstead.sweeps.tasks import Plain

PLUGIN_REMEDY: Final = (
    "install its package on each node, or pack it with roadstead cluster pack --plugin-file"
)
"""What to do about a plugin that a process cannot load."""


def scenario_runs(shared: Mapping[str, Plain]) -> RunTask:
    """Return the function of one run of a scenario, for `roadstead.sweeps`.

    shared: `scenario`, encoded by `config.scenario.vary.packed`, and `plugin_dir`, as in `RunPlan`.
    A task has `values` by key, `seed`, `tables`, the folder of its tables, "" for none, `plugins`,
    dotted paths, and their `digests`. Its result is the metrics.
    """
    file = unpacked(cast("Mapping[str, object]", shared["scenario"]))
    return _ScenarioRuns(file, str(shared["plugin_dir"]))


@dataclass(slots=True)
class _ScenarioRuns:
    """The function of one run.

    _plan: (values and plugins as JSON, compiled scenario, its plugins) of the previous run, for a
    run with equal ones.
    """

    file: ScenarioFile
    plugin_dir: str
    _plan: tuple[str, CompiledScenario, ChosenPlugins] | None = None

    def __call__(self, task: Mapping[str, Plain]) -> Plain:
        plan, chosen = self._compiled(task)
        config = plan.configs[0] if plan.configs else None
        variant = Variant(
            cast("int", task["seed"]),
            "" if config is None else config.text,
            "" if config is None else config.name,
            chosen.paths,
            chosen.directory,
        )
        folder = str(task["tables"])
        return dict(_play(plan, variant, Path(folder) if folder else None))

    def _compiled(self, task: Mapping[str, Plain]) -> tuple[CompiledScenario, ChosenPlugins]:
        """Return the compiled scenario of a task. InputError if code of a plugin differs here."""
        values = cast("Mapping[str, object]", task["values"])
        plugins = cast("list[str]", task["plugins"])
        key = json.dumps([values, plugins], sort_keys=True)
        if self._plan is None or self._plan[0] != key:
            plan, chosen = self._plan_of(values, plugins)
            expected = cast("list[list[str]]", task["digests"])
            check_digests([(name, digest) for name, digest in expected], chosen.paths)
            self._plan = key, plan, chosen
        return self._plan[1:]

    def _plan_of(
        self, values: Mapping[str, object], plugins: list[str]
    ) -> tuple[CompiledScenario, ChosenPlugins]:
        try:
            return plan_of(vary(self.file, values), plugins, self.plugin_dir)
        except InputError as error:
            # The process that started the sweep has loaded its plugins: this one lacks them.
            hint = f"{error.rule}; {PLUGIN_REMEDY}" if error.obj == "plugin" else error.rule
            raise InputError(
                hint, source=error.source, obj=error.obj, field=error.field, value=error.value
            ) from error


def _play(plan: CompiledScenario, variant: Variant, folder: Path | None) -> dict[str, float]:
    # The code is loaded once in a process. The counts of its decisions are not reported.
    compiled_kernel = CompiledKernel(load(), DecisionCounts())
    # Computes the metrics while the run is played, with or without tables.
    recorder = MetricsRecorder(plan)
    if folder is None:
        play_to_horizon(
            plan,
            variant,
            recorder,
            compiled_kernel,
            read_processor_s=time.process_time,
            read_memory_bytes=own_memory_bytes,
        )
        return recorder.finish()
    # An earlier start of this run, lost or stopped, may have written the folder.
    shutil.rmtree(folder, ignore_errors=True)
    summary = play(
        plan,
        variant,
        folder,
        compiled_kernel,
        read_processor_s=time.process_time,
        read_memory_bytes=own_memory_bytes,
        also=recorder,
    )
    write_summary(folder, summary)
    return recorder.finish()
