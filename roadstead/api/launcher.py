"""The launcher of runs: the actors, which are found by name (docs/decisions/0040)."""

from __future__ import annotations

import logging
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from roadstead.run import Launcher

LAUNCHER: Final = "roadstead.actors.runs.launch:ActorLauncher"
"""MODULE:CLASS, as in the entry point of a console script."""

LOGGER: Final = "roadstead"


def open_launcher() -> Launcher:
    """A launcher of its own. Imports the actors: half a second the first time."""
    quiet_logs()
    launcher: Launcher = resolve_name(LAUNCHER)()
    return launcher


def quiet_logs() -> None:
    """Logs go where --log says. Python prints warnings of a logger that has no handler."""
    logger = logging.getLogger(LOGGER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
