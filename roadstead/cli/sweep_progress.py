"""Progress of a sweep on standard error: one changing line on a terminal, otherwise some lines.

Of a sweep of a scenario, also a line for each combination whose runs have ended.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, cast

import click

from roadstead.cli.notes import echo_note
from roadstead.lab.scenario_sweep import ScenarioSweep, SweepRow, name_of, spreads
from roadstead.report.units import counted, significant
from roadstead.sweeps.tasks import Plain, TaskCounts

MINUTE_S: Final = 60.0
LINES: Final = 20
"""Maximum number of lines about finished runs, if standard error is no terminal."""


COMBINATIONS_MAX: Final = 40
"""Maximum number of lines about combinations; of more combinations, these are spread evenly."""

METRICS_REPORTED: Final = ("placed_share", "wait_p99_s", "pending_pod_hours", "utilization cpu")
"""Metrics in the line of a combination: a line should fit a terminal."""


class SweepProgress:
    """Print the numbers of finished, running and lost runs, and the run that was started last."""

    def __init__(
        self, name_of: Callable[[int], str], clock: Callable[[], float] = monotonic
    ) -> None:
        """name_of: the combination of a run, in words, by its number."""
        self._name_of = name_of
        self._clock, self._began_s = clock, clock()
        self._shown: tuple[int, int] | None = None
        self._text = ""
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, counts: TaskCounts, last: int) -> None:
        """Show the counts. last: number of the run that was started last."""
        step = counts.done * LINES // max(1, counts.total), counts.losses
        if not self._is_terminal and step == self._shown:
            return
        self._shown = step
        parts = [f"{counts.done} of {counts.total} runs done"]
        if counts.running:
            parts.append(f"{counts.running} running")
        if counts.losses:
            parts.append(f"{counts.losses} lost")
        text = ", ".join(parts) + self._left(counts)
        if counts.running and (name := self._name_of(last)):
            text = f"{text}: {name}"
        if self._is_terminal:
            self._change(text)
        else:
            click.echo(text, err=True)

    def _change(self, text: str) -> None:
        # A wrapped line would leave its first part behind at each change.
        text = text[: max(1, shutil.get_terminal_size().columns - 1)]
        if text != self._text:
            click.echo(f"\r\033[K{text}", nl=False, err=True)
            self._text = text

    def note(self, text: str) -> None:
        """Print a line for the user."""
        self.end()
        echo_note(text)

    def result(self, text: str) -> None:
        """Print a line that stays, in place of the changing one."""
        if self._text:
            click.echo("\r\033[K", nl=False, err=True)
            self._text = ""
        echo_note(text)

    def end(self) -> None:
        """End the changing line, so that other output begins on a new one."""
        if self._text:
            click.echo(err=True)
            self._text = ""

    def _left(self, counts: TaskCounts) -> str:
        """The estimated remaining time; "" before the first run has ended, or below a minute."""
        # Restored runs are those of the earlier sweep that this one continues.
        done = counts.done - counts.restored
        if done <= 0:
            return ""
        left_s = (self._clock() - self._began_s) * (counts.total - counts.done) / done
        return f", about {left_s / MINUTE_S:.0f} min left" if left_s >= MINUTE_S else ""


class CombinationLines:
    """Print the metrics of each combination of a sweep when its last run has ended."""

    def __init__(self, planned: ScenarioSweep, note: Callable[[str], None]) -> None:
        """note: prints a line."""
        self._seeds, self._note = planned.seeds, note
        self._combinations = list(planned.combinations())
        # Index of a combination → its runs that have ended.
        self._rows: dict[int, list[SweepRow]] = {}
        self._ended = 0

    def __call__(self, task: int, result: Plain) -> None:
        """Add the result of a run, by its index in the sweep."""
        if not isinstance(result, dict):
            return
        index, seed = divmod(task, len(self._seeds))
        row = SweepRow(
            self._combinations[index], self._seeds[seed], cast("dict[str, float]", result)
        )
        rows = self._rows.setdefault(index, [])
        rows.append(row)
        if len(rows) < len(self._seeds):
            return
        del self._rows[index]
        self._ended += 1
        total = len(self._combinations)
        if total > 1 and self._ended * COMBINATIONS_MAX // total > (
            (self._ended - 1) * COMBINATIONS_MAX // total
        ):
            self._note(combination_line(rows))


def combination_line(rows: Sequence[SweepRow]) -> str:
    """Return the medians of a combination's runs in one line."""
    ((values, count, metrics),) = spreads(rows)
    figures = ", ".join(
        f"{name} {significant(metrics[name].median, 3)}"
        for name in METRICS_REPORTED
        if name in metrics
    )
    return f"{name_of(values)} ({counted(count, 'run')}): {figures}"
