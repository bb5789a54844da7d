"""The folder of a local Ray: sockets, logs, working directory; its owner's, and gone after the run.

Ray opens its folders to every user and never removes them. This one is made for one session, under
a name that carries the process: what a killed process left is removed by the next session.
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
"""Characters: names of Unix sockets end at 107 bytes, of which Ray needs most."""

TRIES, PAUSE_S = 10, 0.1


def make_folder() -> str:
    """A new folder for one session. OSError where none can be made."""
    parent = tempfile.gettempdir()
    if len(parent) > LONGEST_PARENT:
        parent = os.path.join(os.sep, "tmp")
    _remove_left_ones(Path(parent))
    return tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent)


def remove_folder(folder: str) -> None:
    """Removes a folder. Processes that are ending may still write: it is tried a few times."""
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(PAUSE_S)


def _remove_left_ones(parent: Path) -> None:
    for path in parent.glob(f"{PREFIX}*"):
        found = _NAME.fullmatch(path.name)
        try:
            is_left = found is not None and path.lstat().st_uid == os.getuid()
            if is_left and found is not None and not _is_alive(int(found[1])):
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
