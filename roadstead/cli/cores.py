"""The number of CPUs that this process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the number of CPUs that this process may use: those of its affinity mask."""
    # Some systems have no sched_getaffinity.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
