"""The console script: the command line, with actors to carry out its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.cli.main import build_cli

if TYPE_CHECKING:
    from roadstead.run import Launcher


def open_launcher() -> Launcher:
    """Loads the actors when the first run is wanted: help and checks must not wait for them."""
    from roadstead.actors.launch import ActorLauncher

    return ActorLauncher()


def main() -> None:
    """Entry point of `roadstead`."""
    build_cli(open_launcher)(prog_name="roadstead")
