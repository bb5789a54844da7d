"""How far a run is, on standard error: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from roadstead.run import Progress

    Tell = Callable[[Progress], None]

LINES_PER_PHASE: Final = 10


@contextmanager
def shown_progress() -> Iterator[Tell]:
    """What to call with each Progress; the bar is gone when the block is left."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from roadstead.cli.progress_bar import progress_bar

    with progress_bar() as tell:
        yield tell


class Lines:
    """A line for each phase, and some as the pods of a phase are decided."""

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
    """Placed and pending pods of how many."""
    text = f"{progress.placed:,} placed"
    if progress.pending:
        text += f", {progress.pending:,} pending"
    return f"{text} of {progress.total:,} pods"
