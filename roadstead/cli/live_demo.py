"""`roadstead demo --live`: a day of a small fleet in virtual time, shown while it is played."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from roadstead.cli.live_view import View, frame_of, shown_fleet
from roadstead.cli.simulating import SCENARIO_FILE, SUMMARY_FILE, run_name, summary_lines
from roadstead.config.scenario.examples import example_text
from roadstead.config.scenario.read import read_scenario
from roadstead.cycle.batch import Accelerator
from roadstead.kernel.coverage import Coverage
from roadstead.kernel.start import load
from roadstead.protocol.errors import InputError
from roadstead.report.paths import entries
from roadstead.scenario.compile import compile_scenario
from roadstead.simulator.play import Variant, play
from roadstead.simulator.recorder import TableRecorder

if TYPE_CHECKING:
    from roadstead.simulator.component import Note
    from roadstead.simulator.engine import Engine
    from roadstead.simulator.pod_lives import PodLife
    from roadstead.simulator.scenario import Plan
    from roadstead.simulator.summary import RunSummary

EXAMPLE: Final = "day"
DEFAULT_FOLDER: Final = Path("demo.run")
WAITS_BY_OWNER: Final = (
    "SELECT owner, count(*) AS pods, max(waited_us) / 1e6 AS longest_s FROM pods GROUP BY owner"
)


class LiveRecorder(TableRecorder):
    """Writes the tables, and shows each event and sample. longest: pod that waited longest."""

    def __init__(self, directory: Path, plan: Plan, view: View) -> None:
        super().__init__(directory, plan)
        self._view = view
        self._longest_us = -1
        self.longest = ""

    def note(self, now_us: int, note: Note) -> None:
        """Record and show an event of the fleet."""
        super().note(now_us, note)
        self._view.event(now_us, note)

    def sample(self, engine: Engine) -> None:
        """Record and show the state of the fleet."""
        super().sample(engine)
        self._view.frame(frame_of(engine))

    def bound(self, now_us: int, life: PodLife) -> None:
        """Record that a pod was bound to its node."""
        super().bound(now_us, life)
        if now_us - life.created_us > self._longest_us:
            self._longest_us = now_us - life.created_us
            self.longest = f"{life.identity.namespace}/{life.identity.name}"


def live_demo(output: Path | None, seed: int, *, is_replaced: bool) -> None:
    """Play the day, show it, and print its figures and how to ask further.

    Raises InputError if the folder holds other files.
    """
    from rich.console import Console

    text = example_text(EXAMPLE)
    plan = compile_scenario(read_scenario(text, source=f"{EXAMPLE}.yaml", directory=Path()))
    folder = output or DEFAULT_FOLDER
    _prepare(folder, text, is_replaced=is_replaced)
    with shown_fleet(Console(stderr=True), plan.horizon_us) as view:
        summary, longest = _play_day(plan, Variant(seed), folder, view)
    click.echo("\n".join(summary_lines([summary])))
    shown = shlex.quote(str(folder))
    click.echo(f"\nWhy did the pod that waited longest wait?\n  roadstead why {shown} {longest}")
    click.echo(f'How long did others wait?\n  roadstead query {shown} "{WAITS_BY_OWNER}"')


def _play_day(plan: Plan, variant: Variant, folder: Path, view: View) -> tuple[RunSummary, str]:
    """Play one run; return its figures and the pod that waited longest."""
    made: list[LiveRecorder] = []

    def make_recorder(directory: Path, plan: Plan) -> TableRecorder:
        made.append(LiveRecorder(directory, plan, view))
        return made[0]

    name = run_name(variant)
    summary = play(
        plan,
        variant,
        folder / name,
        Accelerator(load(), Coverage()),
        read_processor_s=time.process_time,
        make_recorder=make_recorder,
    )
    figures = json.dumps(summary.as_json(), indent=2)
    (folder / name / SUMMARY_FILE).write_text(f"{figures}\n", encoding="utf-8")
    return summary, made[0].longest


def _prepare(folder: Path, text: str, *, is_replaced: bool) -> None:
    """Make the folder; an earlier run of this demo, which can be repeated, is replaced."""
    scenario = folder / SCENARIO_FILE
    if found := entries(folder):
        is_ours = any(each.name == SCENARIO_FILE for each in found)
        if not is_ours:
            raise InputError("holds other files; name a new directory", source=str(folder))
        if not is_replaced and scenario.read_text(encoding="utf-8", errors="replace") != text:
            rule = "holds the results of a run (--force replaces them)"
            raise InputError(rule, source=str(folder))
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    scenario.write_text(text, encoding="utf-8")
