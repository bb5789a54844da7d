"""How child processes start: with this process's modules, and no module of the working directory.

Python puts the working directory first on the path of `python -m …`, and wherever PYTHONPATH has an
empty entry. A `random.py` beside a user's manifests would be imported in place of Python's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

HOME = str(Path(__file__).resolve().parent.parent)
"""The folder that holds our own package."""


def working_directory() -> str:
    """The working directory in full, "" where it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def import_path() -> list[str]:
    """Folders in which a child process finds modules: those of this process, in their order.

    Relative entries are left out, and the working directory, unless PYTHONPATH names it in full.
    The folder of our own package comes last where it is not among them.
    """
    here = os.path.realpath(working_directory())
    named = set(filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    kept = [
        entry
        for entry in sys.path
        if os.path.isabs(entry) and (entry in named or os.path.realpath(entry) != here)
    ]
    return kept if HOME in kept else [*kept, HOME]


def child_environment() -> dict[str, str]:
    """Environment variables that a child process needs beside those of this one."""
    return {"PYTHONPATH": os.pathsep.join(import_path()), "PYTHONSAFEPATH": "1"}


def python_command(module: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command that runs a module of ours; `child_environment` goes with it."""
    return [sys.executable, "-P", "-m", module, *arguments]
