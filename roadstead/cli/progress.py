"""Progress of a run on standard error: a bar on a terminal, otherwise plain lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from roadstead.cli.progress_lines import ProgressLines

if TYPE_CHECKING:
    from roadstead.run import Progress

    ReportProgress = Callable[[Progress], None]


@contextmanager
def shown_progress() -> Iterator[ReportProgress]:
    """Yield a callback for progress; the bar is removed at the end of the block."""
    if not sys.stderr.isatty():
        yield ProgressLines()
        return
    from roadstead.cli.progress_bar import progress_bar

    with progress_bar() as progress:
        yield progress
