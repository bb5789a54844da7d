"""Progress of a run in plain lines on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from roadstead.run import Progress

LINES_PER_PHASE: Final = 10


class ProgressLines:
    """Print a line for each phase, and some lines as the pods of a phase are decided."""

    def __init__(self) -> None:
        self._phase = ""
        self._step = 0

    def __call__(self, progress: Progress) -> None:
        if progress.note:
            click.echo(progress.note, err=True)
            return
        decided = progress.placed + progress.pending
        step = LINES_PER_PHASE * decided // progress.total if progress.total else 0
        if progress.phase == self._phase and step <= self._step:
            return
        self._phase, self._step = progress.phase, step
        counts = f": {counted(progress)}" if decided else ""
        click.echo(f"{progress.phase}{counts}", err=True)


def counted(progress: Progress) -> str:
    """The numbers of placed, pending and all pods, as text."""
    if progress.unit:
        return f"{progress.placed:,} of {progress.total:,} {progress.unit}"
    text = f"{progress.placed:,} placed"
    if progress.pending:
        text += f", {progress.pending:,} pending"
    return f"{text} of {progress.total:,} pods"
