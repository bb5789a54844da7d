"""The progress bar of a run on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from roadstead.cli.progress_lines import counted
from roadstead.run import Progress


@contextmanager
def progress_bar() -> Iterator[Callable[[Progress], None]]:
    """Yield a callback for progress; the bar is removed at the end of the block."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("starting", total=None, counts="")

        def show(progress: Progress) -> None:
            if progress.note:
                bars.console.print(progress.note, markup=False, highlight=False, soft_wrap=True)
                return
            decided = progress.placed + progress.pending
            bars.update(
                bar,
                description=progress.phase,
                total=progress.total or None,
                completed=decided,
                counts=counted(progress) if decided else "",
            )

        yield show
