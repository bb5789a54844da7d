"""Runs of a scenario in a sweep (`roadstead sweep`), each with its metrics."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from roadstead.api.run_folder import write_summary
from roadstead.bench.machine import own_memory_bytes
from roadstead.config.scenario.read import ScenarioFile
from roadstead.config.scenario.vary import unpacked, vary
from roadstead.cycle.batch import CompiledKernel
from roadstead.kernel.coverage import Coverage
from roadstead.kernel.start import load
from roadstead.scenario.compile import compile_scenario
from roadstead.simulator.metrics import MetricsRecorder
from roadstead.simulator.play import Variant, play, play_to_horizon
from roadstead.simulator.scenario import CompiledScenario
from roadstead.sweeps.functions import RunTask
from roadstead.sweeps.tasks import Plain


def scenario_runs(shared: Mapping[str, Plain]) -> RunTask:
    """Return the function of one run of a scenario, for `roadstead.sweeps`.

    shared: `scenario`, encoded by `config.scenario.vary.packed`. A task has `values` by key,
    `seed`, and `tables`, the folder of its tables, "" for none. Its result is the metrics.
    """
    return _ScenarioRuns(unpacked(cast("Mapping[str, object]", shared["scenario"])))


def plan_with(file: ScenarioFile, values: Mapping[str, object]) -> CompiledScenario:
    """Compile a scenario with other values at some keys. Raises InputError."""
    return compile_scenario(vary(file, values))


@dataclass(slots=True)
class _ScenarioRuns:
    """The function of one run.

    _plan: (values as JSON, compiled scenario) of the previous run, for a run with equal values.
    """

    file: ScenarioFile
    _plan: tuple[str, CompiledScenario] | None = None

    def __call__(self, task: Mapping[str, Plain]) -> Plain:
        values = cast("Mapping[str, object]", task["values"])
        plan, seed = self._compiled(values), cast("int", task["seed"])
        config = plan.configs[0] if plan.configs else None
        variant = Variant(seed) if config is None else Variant(seed, config.text, config.name)
        folder = str(task["tables"])
        return dict(_play(plan, variant, Path(folder) if folder else None))

    def _compiled(self, values: Mapping[str, object]) -> CompiledScenario:
        key = json.dumps(values, sort_keys=True)
        if self._plan is None or self._plan[0] != key:
            self._plan = key, plan_with(self.file, values)
        return self._plan[1]


def _play(plan: CompiledScenario, variant: Variant, folder: Path | None) -> dict[str, float]:
    # The code is loaded once in a process; Coverage counts the pods that it decides.
    compiled_kernel = CompiledKernel(load(), Coverage())
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
