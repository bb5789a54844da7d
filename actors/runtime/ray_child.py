"""Runs a program of Ray's in a process that ends with its raylet: `ray_child.py PROGRAM …`.

Without a program, an actor's process. Left to themselves, Ray's agents look for their servers for a
minute after all else is gone. The kernel of Linux ends such a process when its parent ends; on
other systems Ray starts a process that does.
"""

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1
_WORKER = "ray._private.workers.default_worker"


def end_with_parent(parent: int) -> None:
    """The system kills this process once its parent ends. parent: its process id."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            # It ended before the system was asked.
            os._exit(1)


def main() -> None:
    """Runs what the command line says, as if it had been started itself."""
    end_with_parent(int(os.environ["RAY_RAYLET_PID"]))
    if sys.argv[1].endswith(".py"):
        del sys.argv[0]
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        runpy.run_module(_WORKER, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
