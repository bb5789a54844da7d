"""The console script: the command line, with actors to carry out its runs."""

from __future__ import annotations


def main() -> None:
    """Entry point of `roadstead`."""
    from roadstead.cli.main import build_cli

    build_cli(_launcher)(prog_name="roadstead")


def _launcher() -> object:
    from roadstead.actors.launch import ActorLauncher

    return ActorLauncher()
