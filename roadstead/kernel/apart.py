"""Compiling in another process, which ends with the one that started it unless that ended well.

The child waits for its standard input in a thread: a byte says that it may finish by itself, the
end of the input says that its parent is gone.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from typing import IO

from roadstead.isolation import HOME, child_environment, python_command

MODULE, TOTALS = "roadstead.kernel", "totals"

ORPHANED = 1
"""Exit status of a compilation whose parent is gone."""

_MAY_FINISH = b"+"
_compiling: list[subprocess.Popen[bytes]] = []


def start_compiling(part: str = "") -> subprocess.Popen[bytes]:
    """Starts to compile in a process of its own; see `compile_here` for the part."""
    child = subprocess.Popen(  # noqa: S603
        python_command(MODULE, [part] if part else []),
        env=os.environ | child_environment(),
        # numba reads its settings from the working directory.
        cwd=HOME,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _compiling.append(child)
    return child


def compile_apart() -> None:
    """Compiles in another process; returns once that one ends."""
    child = start_compiling()
    child.wait()
    _compiling.remove(child)


def let_finish() -> None:
    """What this process has compiled may be finished after its own end: the run ended well."""
    for child in list(_compiling):
        assert child.stdin is not None
        with contextlib.suppress(OSError):
            os.write(child.stdin.fileno(), _MAY_FINISH)


def end_with_parent(source: IO[bytes] | None = None) -> None:
    """Has this process end at once when its parent is gone. source: standard input by default."""
    stream = sys.stdin.buffer if source is None else source
    threading.Thread(target=_wait_for_end, args=(stream,), name="parent", daemon=True).start()


def _wait_for_end(stream: IO[bytes]) -> None:
    if os.read(stream.fileno(), 1) != _MAY_FINISH:
        os._exit(ORPHANED)
