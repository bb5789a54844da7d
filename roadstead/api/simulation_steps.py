"""The steps of simulated runs that the command line and the Python API share."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from roadstead.api.input_copies import store_inputs
from roadstead.api.plugin_choice import ChosenPlugins
from roadstead.api.run_folder import (
    COMPARISON_FILE,
    INPUTS_FOLDER,
    RECORD_FILE,
    REPORT_FILE,
    SCENARIO_FILE,
    SUMMARY_FILE,
    UNFINISHED,
    RecordedRun,
    RunRecord,
    StoredInput,
    check_inputs,
    read_record,
    read_summary,
    recorded_scenario,
    write_record,
    write_summary,
)
from roadstead.api.scenario_plan import plan_of
from roadstead.bench.machine import own_memory_bytes
from roadstead.config.scenario.read import ScenarioFile
from roadstead.cycle.batch import CompiledKernel
from roadstead.framework.user_plugins import digests_of
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.paths import entries
from roadstead.report.result import InputDigest, installed_versions
from roadstead.scenario.inputs import input_digests
from roadstead.simulator.engine import Engine
from roadstead.simulator.play import Variant, play
from roadstead.simulator.recording import Recorder
from roadstead.simulator.replay import Moment, explain_at, explain_bind
from roadstead.simulator.scenario import CompiledScenario
from roadstead.simulator.summary import RunSummary

OnProgress = Callable[[str, Engine], None]
"""Called repeatedly during a run, with its name and its engine."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """A scenario that can be played.

    file: as it was read; plan: compiled. plugins: as the user named them; chosen: the same, loaded.
    inputs: digests of all files that it was read from, and of the plugins' code.
    """

    file: ScenarioFile
    plan: CompiledScenario
    plugins: tuple[str, ...]
    chosen: ChosenPlugins
    inputs: tuple[InputDigest, ...]

    def variants(self, seed: int | None = None) -> dict[str, Variant]:
        """Return the runs by name, such as `binpack-3`: each configuration with each seed.

        seed: in place of all seeds.
        """
        plan, chosen, variants = self.plan, self.chosen, dict[str, Variant]()
        configs = [(each.text, each.name) for each in plan.configs] or [("", "")]
        # Two configurations may have the same name; the runs of the second begin with NAME.2.
        uses = Counter[str]()
        for text, source in configs:
            prefix = source.replace("/", "_") or "default"
            uses[prefix] += 1
            prefix += f".{uses[prefix]}" if uses[prefix] > 1 else ""
            for each in plan.seeds if seed is None else (seed,):
                variants[f"{prefix}-{each}"] = Variant(
                    seed=each,
                    config=text,
                    config_source=source,
                    plugins=chosen.paths,
                    plugin_dir=chosen.directory,
                )
        return variants

    def recorded_variants(self, folder: Path) -> dict[str, Variant]:
        """Return the runs that a folder records."""
        names = [each.name for each in read_record(folder).runs]
        return {name: self.recorded_variant(folder, name) for name in names}

    def recorded_variant(self, folder: Path, name: str) -> Variant:
        """Return the run of this name that a folder records.

        Its seed may be one that the scenario does not list (`--seed`).
        """
        run = next(each for each in read_record(folder).runs if each.name == name)
        variant = self.variants(run.seed).get(name)
        if variant is None:
            raise InputError("is no run of the scenario", source=str(folder), value=name)
        return variant

    def record(
        self, folder: Path, variants: dict[str, Variant], files: tuple[StoredInput, ...]
    ) -> RunRecord:
        """Return the content of `run.json` for these runs, by name.

        files: all that the scenario names.
        """
        return RunRecord(
            format=1,
            directory=os.path.relpath(self.file.main.directory, folder),
            is_repeatable=not self.plan.decision.is_measured,
            runs=tuple(
                RecordedRun(name=name, config=each.config_source or "default", seed=each.seed)
                for name, each in variants.items()
            ),
            inputs={each.name: each.sha256 for each in self.inputs},
            files=files,
            plugins=self.plugins,
            versions=installed_versions(),
        )


def prepare_simulation(file: ScenarioFile, plugins: Sequence[str] = ()) -> Simulation:
    """Compile a scenario and compute the digests of its inputs. Raises InputError."""
    plan, chosen = plan_of(file, plugins)
    code = [InputDigest(f"plugin {name}", digest) for name, digest in digests_of(chosen.paths)]
    return Simulation(file, plan, tuple(plugins), chosen, (*input_digests(file), *code))


def recorded_simulation(folder: Path, plugins: Sequence[str] = ()) -> Simulation:
    """Return the simulation of a folder, to be repeated.

    Raises InputError if anything that affects its results has changed.
    """
    record = read_record(folder)
    simulation = prepare_simulation(recorded_scenario(folder, record), plugins)
    check_inputs(folder, record, simulation.inputs, plugins, installed_versions())
    return simulation


def prepare_folder(
    simulation: Simulation,
    folder: Path,
    variants: dict[str, Variant],
    *,
    may_replace: bool,
    is_resumed: bool,
) -> None:
    """Make the folder of some runs, or check that it holds these runs, to be continued.

    Raises InputError if it holds something else, or results that must be kept.
    """
    present = entries(folder)
    if is_resumed:
        if not present:
            raise InputError("holds no runs to continue", source=str(folder))
        record = read_record(folder)
        check_inputs(folder, record, simulation.inputs, simulation.plugins, installed_versions())
        if {each.name for each in record.runs} != variants.keys():
            names = ", ".join(each.name for each in record.runs)
            raise InputError("holds other runs than these", source=str(folder), value=names)
        return
    # `roadstead schedule` writes a run.json, too.
    if present and not {RECORD_FILE, SCENARIO_FILE} <= {each.name for each in present}:
        raise InputError("holds other files; name a new directory", source=str(folder))
    if present and not may_replace:
        problem = "holds the results of a run (--force replaces them, --resume continues)"
        raise InputError(problem, source=str(folder))
    if present:
        _check_replaceable(folder, present)
    try:
        if present:
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(folder)) from error
    files = store_inputs(folder, simulation.file)
    record = simulation.record(folder, variants, files)
    write_record(folder, record, simulation.file.main.text)


def _check_replaceable(folder: Path, present: Sequence[Path]) -> None:
    """Raise InputError if a folder of runs holds anything else: no file of the user is removed."""
    files = RECORD_FILE, SCENARIO_FILE, REPORT_FILE, COMPARISON_FILE, INPUTS_FOLDER
    own = {*files, *(run.name for run in read_record(folder).runs)}
    others = sorted(
        each.name for each in present if each.name not in own and each.suffix != UNFINISHED
    )
    if others:
        problem = f"holds other files ({cut_short(others[0])}); name a new directory"
        raise InputError(problem, source=str(folder))


def play_all(
    simulation: Simulation,
    folder: Path,
    variants: dict[str, Variant],
    on_progress: OnProgress,
    also: Recorder | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[RunSummary]:
    """Play the runs one after the other, and yield their figures; finished ones are only read.

    A run whose tables are incomplete is played from its start: the parts (files) of tables that
    exist are compared with the new ones, and the missing parts are written. also: a recorder that
    receives each event of a run, besides that of the tables. on_note: called before the kernel is
    compiled. Raises PartDiffersError, LimitExceededError, QueueFullError, and InputError if a file
    cannot be written.
    """
    # One for all runs: loading takes long. The counts of its decisions are not reported.
    compiled_kernel = CompiledKernel(load(on_note), DecisionCounts())
    for name, variant in variants.items():
        path = folder / name
        if (path / SUMMARY_FILE).exists():
            yield read_summary(path)
            continue

        def report(engine: Engine, name: str = name) -> None:
            on_progress(name, engine)

        summary = play(
            simulation.plan,
            variant,
            path,
            compiled_kernel,
            report,
            read_processor_s=time.process_time,
            read_memory_bytes=own_memory_bytes,
            also=also,
        )
        write_summary(path, summary)
        yield summary


def explain_recorded(
    path: Path, run: str, number: int, at_us: int | None, plugins: Sequence[str]
) -> Moment:
    """Explain a pod of a recorded run at its bind, or at a time, by playing the run again.

    path: of the run. number: of the pod. Raises InputError if inputs have changed, or if the pod
    does not exist at the time.
    """
    simulation = recorded_simulation(path.absolute().parent, plugins)
    variant = simulation.recorded_variant(path.absolute().parent, run)
    compiled_kernel, plan = CompiledKernel(load(), DecisionCounts()), simulation.plan
    if at_us is None:
        return explain_bind(plan, variant, number, compiled_kernel, _show_nothing)
    return explain_at(plan, variant, number, at_us, compiled_kernel, _show_nothing)


def _show_nothing(_: Engine) -> None:
    """Show no progress."""
