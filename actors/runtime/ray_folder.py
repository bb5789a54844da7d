"""The folder of a local Ray (sockets, logs, working directory): private, removed after the run.

Ray makes its folders accessible to every user and never removes them. This one is made for one
session; its name contains the process id, so that the next session removes folders of killed
processes.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from pathlib import Path

PREFIX = "roadstead-"
_NAME = re.compile(rf"{PREFIX}(\d+)-\w+")

LONGEST_PARENT = 12
"""Characters. The path of a Unix socket has at most 107 bytes, and Ray needs most of them."""

REMOVALS, REMOVAL_PAUSE_S = 10, 0.1


def make_folder() -> str:
    """Make a new folder for one session and return its path. OSError if that fails."""
    parent = tempfile.gettempdir()
    if len(parent) > LONGEST_PARENT:
        parent = os.path.join(os.sep, "tmp")
    _remove_left_ones(Path(parent))
    return tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent)


def remove_folder(folder: str) -> None:
    """Remove a folder; retries, because ending processes may still write to it."""
    for _ in range(REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(REMOVAL_PAUSE_S)


def _remove_left_ones(parent: Path) -> None:
    for path in parent.glob(f"{PREFIX}*"):
        match = _NAME.fullmatch(path.name)
        try:
            is_left = match is not None and path.lstat().st_uid == os.getuid()
            if is_left and match is not None and not _is_alive(int(match[1])):
                remove_folder(str(path))
        except OSError:
            # Another process removes it at this moment.
            continue


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
