"""The console script: the command line, with a `Launcher` that executes runs on actors."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import TYPE_CHECKING

from roadstead.cli.main import build_cli

if TYPE_CHECKING:
    from roadstead.run import Launcher


def open_launcher() -> Launcher:
    """Return what executes runs; imported late, so that help and checks start faster."""
    from roadstead.actors.runs.on_demand import OnDemandLauncher

    return OnDemandLauncher()


def main() -> None:
    """Entry point of `roadstead`."""
    try:
        build_cli(open_launcher)(prog_name="roadstead")
    except SystemExit as end:
        if isinstance(end.code, int) and end.code:
            _end_at_once(end.code)
        raise
    finally:
        # An interpreter that ends searches all objects for cycles: 1 s after a run of 10,000 pods.
        gc.freeze()


def _end_at_once(status: int) -> None:
    """End the process without waiting for threads that start or shut down Ray; Ray ends too."""
    if "roadstead.actors.runtime.ray_session" in sys.modules:
        from roadstead.actors.runtime.ray_session import RaySession

        RaySession.abandon()
    for stream in (sys.stdout, sys.stderr):
        # ValueError: it is closed.
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
