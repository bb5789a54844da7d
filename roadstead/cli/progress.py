"""How far a run is, on standard error: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from roadstead.cli.progress_lines import Lines

if TYPE_CHECKING:
    from roadstead.run import Progress

    Tell = Callable[[Progress], None]


@contextmanager
def shown_progress() -> Iterator[Tell]:
    """What to call with each Progress; the bar is gone when the block is left."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from roadstead.cli.progress_bar import progress_bar

    with progress_bar() as tell:
        yield tell
