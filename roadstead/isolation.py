"""Isolation of child processes: they import the same modules, and none of the working directory.

Python puts the working directory first on the path of `python -m …`, and at every empty entry of
PYTHONPATH. A `random.py` next to a user's manifests would be imported in place of Python's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

PACKAGE_PARENT = str(Path(__file__).resolve().parent.parent)
"""The folder that contains our own package."""


def working_directory() -> str:
    """Return the absolute working directory, "" if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def import_path() -> list[str]:
    """Return the import path of a child process: that of this process, in order.

    Relative entries are left out; so is the working directory, unless PYTHONPATH has its absolute
    path. The folder of our own package is appended if it is missing.
    """
    # Not realpath(""), which needs a working directory, too.
    folder = (working := working_directory()) and os.path.realpath(working)
    in_pythonpath = set(filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    entries = [
        entry
        for entry in sys.path
        if os.path.isabs(entry) and (entry in in_pythonpath or os.path.realpath(entry) != folder)
    ]
    return entries if PACKAGE_PARENT in entries else [*entries, PACKAGE_PARENT]


def child_environment() -> dict[str, str]:
    """Return environment variables that a child process needs besides those of this one."""
    return {"PYTHONPATH": os.pathsep.join(import_path()), "PYTHONSAFEPATH": "1"}


def python_command(module: str, arguments: Sequence[str] = ()) -> list[str]:
    """Return the command that runs a Roadstead module; use it with `child_environment`."""
    return [sys.executable, "-P", "-m", module, *arguments]
