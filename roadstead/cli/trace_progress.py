"""Progress of work on traces on standard error: a bar on a terminal, otherwise plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from roadstead.traces.rewriting import ReportProgress

LINES_PER_PHASE: Final = 10


@contextmanager
def shown_steps() -> Iterator[ReportProgress]:
    """Yield a callback for progress; a bar is removed at the end of the block."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("starting", total=None)

        def show(phase: str, done: int, total: int) -> None:
            bars.update(bar, description=phase, total=total or None, completed=done)

        yield show


class _Lines:
    """Print a line for each phase, and some lines as it proceeds."""

    def __init__(self) -> None:
        self._phase, self._step = "", 0

    def __call__(self, phase: str, done: int, total: int) -> None:
        step = LINES_PER_PHASE * done // total if total else 0
        if phase == self._phase and step <= self._step:
            return
        self._phase, self._step = phase, step
        share = f": {100 * done // total}%" if total else ""
        click.echo(f"{phase}{share}", err=True)
