"""Run a program of Ray in a process that ends with its raylet: `ray_child.py PROGRAM …`.

Without a program it runs an actor's process, with `idle` nothing. By default Ray's agents look for
their servers for a minute after everything else has ended. On Linux the kernel kills this process
when its parent ends; on other systems Ray starts a process that does.
"""

import ctypes
import os
import runpy
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_WORKER = "ray._private.workers.default_worker"

IDLE = "idle"
"""In place of a program: wait until the parent ends."""


def end_with_parent(parent: int) -> None:
    """Make the kernel kill this process when its parent ends. parent: its process id."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            # The parent ended before the call.
            os._exit(1)


def wait_for_end(parent: int) -> None:
    """Return when the parent has ended."""
    while os.getppid() == parent:
        time.sleep(1.0)


def main() -> None:
    """Run the program of the command line as if it had been started directly."""
    parent = int(os.environ["RAY_RAYLET_PID"])
    end_with_parent(parent)
    if sys.argv[1] == IDLE:
        wait_for_end(parent)
    elif sys.argv[1].endswith(".py"):
        del sys.argv[0]
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        runpy.run_module(_WORKER, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
