"""The launcher of runs. It loads the actors by name (docs/decisions/0040)."""

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
    """Return a new launcher. The first call imports the actors, which takes half a second."""
    quiet_logs()
    launcher: Launcher = resolve_name(LAUNCHER)()
    return launcher


def quiet_logs() -> None:
    """Keep log records off standard error; `--log` writes them to files.

    Python prints the warnings of a logger without a handler.
    """
    logger = logging.getLogger(LOGGER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
