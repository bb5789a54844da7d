"""A moment of a simulated run as the inputs of what-if questions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roadstead.api.plan import ConfigText
from roadstead.api.pod_story import choose_run
from roadstead.api.run_folder import run_folders
from roadstead.api.simulation_steps import OnProgress, recorded_simulation
from roadstead.config.scenario.values import micros, time_text
from roadstead.config.settings import Settings
from roadstead.cycle.batch import CompiledKernel
from roadstead.inputs.loaded import Loaded
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.protocol.errors import InputError, cut_short
from roadstead.simulator.engine import Engine
from roadstead.simulator.play import run_plan
from roadstead.simulator.replay import fleet_at


@dataclass(frozen=True, slots=True)
class RunMoment:
    """A fleet at a time of a run. config, settings: those under which the run was played."""

    loaded: Loaded
    config: ConfigText
    settings: Settings

    def settings_with(self, seed: int | None) -> Settings:
        """Return the settings of the run, with another seed if one is given."""
        return self.settings if seed is None else self.settings.model_copy(update={"seed": seed})


def time_of(text: str, source: str = "--at") -> int:
    """Return the microseconds of a time such as 3h20m. Raises InputError that names the source."""
    try:
        at_us = micros(text)
    except ValueError as error:
        raise InputError(str(error), source=source, value=cut_short(text)) from error
    assert isinstance(at_us, int), "a text is converted"
    return at_us


def load_moment(
    folder: Path, at_us: int, plugins: tuple[str, ...], on_progress: OnProgress
) -> RunMoment:
    """Play a run again up to a time.

    folder: of `roadstead simulate`, for its first run, or of one run. plugins: those of the run.
    on_progress: called repeatedly during the run.
    Raises InputError if inputs have changed, or if the run ends before.
    """
    path, run = choose_run(run_folders(folder), seed=None, config=None)
    parent = path.absolute().parent
    # The folder has the scenario and the record of its runs.
    simulation = recorded_simulation(parent, plugins)
    variant = simulation.recorded_variant(parent, run.name)

    def report(engine: Engine) -> None:
        on_progress(run.name, engine)

    # The counts of its decisions are not reported.
    compiled_kernel = CompiledKernel(load(), DecisionCounts())
    moment = fleet_at(simulation.plan, variant, at_us, compiled_kernel, report)
    return RunMoment(
        Loaded(f"{path} at {time_text(at_us)}", moment.inputs, moment.cluster),
        ConfigText(variant.config, variant.config_source, variant.plugins, variant.plugin_dir),
        run_plan(simulation.plan, variant).settings,
    )
