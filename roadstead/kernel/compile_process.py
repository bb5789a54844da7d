"""Compilation in a child process, which ends with its parent unless the parent's run succeeded.

The child reads its standard input in a thread. A byte allows it to finish without its parent; the
end of the input without this byte means that the parent has ended.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from typing import IO

from roadstead.isolation import PACKAGE_PARENT, child_environment, python_command

MODULE = "roadstead.kernel"
TOTALS = "totals"
"""Argument of a compilation of the code for totals only (`compiled_build`, lists)."""

AS_CHILD = "--as-child"
"""Argument of a compilation that ends with its parent."""

ORPHANED = 1
"""Exit status of a compilation whose parent has ended."""

_MAY_FINISH = b"+"
_compiling: set[subprocess.Popen[bytes]] = set()
"""Child processes that end with this process."""


def start_compiling(part: str = "") -> subprocess.Popen[bytes]:
    """Start compiling in a process of its own; see `compile_in_process` for the part."""
    child = subprocess.Popen(  # noqa: S603
        python_command(MODULE, [AS_CHILD, *([part] if part else [])]),
        env=os.environ | child_environment(),
        # numba reads its settings from the working directory.
        cwd=PACKAGE_PARENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _compiling.add(child)
    return child


def compile_in_child() -> None:
    """Compile in another process, and return when it ends."""
    wait_for(start_compiling())


def wait_for(child: subprocess.Popen[bytes]) -> None:
    """Return when a compilation has ended."""
    child.wait()
    _compiling.discard(child)


def detach_compilations() -> None:
    """Let compilations finish after this process ends; called when a run succeeded."""
    detached = list(_compiling)
    _compiling.difference_update(detached)
    for child in detached:
        assert child.stdin is not None
        with contextlib.suppress(OSError):
            os.write(child.stdin.fileno(), _MAY_FINISH)


def end_with_parent(source: IO[bytes] | None = None) -> None:
    """End this process as soon as its parent has ended. source: standard input by default."""
    stream = sys.stdin.buffer if source is None else source
    threading.Thread(target=_wait_for_end, args=(stream,), name="parent", daemon=True).start()


def _wait_for_end(stream: IO[bytes]) -> None:
    if os.read(stream.fileno(), 1) != _MAY_FINISH:
        os._exit(ORPHANED)
