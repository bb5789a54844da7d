"""`roadstead demo --live`: a day of a small fleet in virtual time, shown while it is played."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from roadstead.api.run_folder import REPORT_FILE, SCENARIO_FILE
from roadstead.api.simulated_report import write_report
from roadstead.api.simulation_steps import play_all, prepare_folder, prepare_simulation
from roadstead.cli.live_view import LiveView, frame_of, shown_fleet
from roadstead.cli.notes import echo_note
from roadstead.cli.simulate_run import print_summaries
from roadstead.config.scenario.examples import example_text
from roadstead.config.scenario.read import read_scenario
from roadstead.simulator.recording import RecordedWorld, Recorder

if TYPE_CHECKING:
    from roadstead.simulator.component import Note
    from roadstead.simulator.simulated_pods import SimulatedPod

EXAMPLE: Final = "day"
DEFAULT_FOLDER: Final = Path("demo.run")
WAITS_BY_OWNER: Final = (
    "SELECT owner, count(*) AS pods, max(waited_us) / 1e6 AS longest_s FROM pods GROUP BY owner"
)
"""An example of a query on the tables of the run. owner: what created a pod, such as a Job."""


class LiveRecorder(Recorder):
    """Show each event and sample of the simulation, which calls these methods.

    longest: the key of the pod that waited longest so far; "" before the first bind.
    """

    def __init__(self, view: LiveView) -> None:
        self._view = view
        self._longest_us = -1
        self.longest = ""

    def note(self, now_us: int, note: Note) -> None:
        """Show a row of the table `events`, such as a lost zone."""
        self._view.event(now_us, note)

    def sample(self, world: RecordedWorld) -> None:
        """Show the state of the fleet."""
        self._view.frame(frame_of(world))

    def bound(self, now_us: int, pod: SimulatedPod) -> None:
        """Compare the wait of a pod with the longest so far."""
        if now_us - pod.created_us > self._longest_us:
            self._longest_us = now_us - pod.created_us
            self.longest = f"{pod.identity.namespace}/{pod.identity.name}"


def live_demo(output: Path | None, seed: int, *, may_replace: bool) -> None:
    """Play the day, show it, and print its figures and commands that explain them.

    Raises InputError if the folder holds other files, unless these are of an earlier demo.
    """
    from rich.console import Console

    from roadstead.report.text_table import wide_console

    text = example_text(EXAMPLE)
    scenario = read_scenario(text, source=f"{EXAMPLE}.yaml", directory=Path())
    simulation, folder = prepare_simulation(scenario), output or DEFAULT_FOLDER
    # A variant is a configuration with a seed; the day has one configuration.
    variants = simulation.variants(seed)
    may_replace |= _is_earlier_demo(folder, text)
    prepare_folder(simulation, folder, variants, may_replace=may_replace, is_resumed=False)
    with shown_fleet(Console(stderr=True), simulation.plan.horizon_us) as view:
        live = LiveRecorder(view)
        summaries = list(play_all(simulation, folder, variants, _show_nothing, live, echo_note))
    write_report(folder, [*variants], summaries)
    print_summaries(wide_console(), dict(zip(variants, summaries, strict=True)))
    quoted_folder = shlex.quote(str(folder))
    why = f"roadstead why {quoted_folder} {live.longest}"
    click.echo(f"\nWhy did the pod that waited longest wait?\n  {why}")
    click.echo(f'How long did others wait?\n  roadstead query {quoted_folder} "{WAITS_BY_OWNER}"')
    click.echo(f"Plots over time: {folder / REPORT_FILE}")


def _is_earlier_demo(folder: Path, text: str) -> bool:
    """Whether a folder holds an earlier run of this demo, which can be repeated."""
    scenario = folder / SCENARIO_FILE
    return scenario.is_file() and scenario.read_text("utf-8", errors="replace") == text


def _show_nothing(_: str, __: object) -> None:
    """Show no progress: the recorder shows the run."""
