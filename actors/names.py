"""Names of the actors of a run."""

from __future__ import annotations

QUEUE, CACHE, BINDER = "queue", "cache", "binder"


def worker_name(index: int) -> str:
    return f"worker-{index}"


def scheduler_name(index: int) -> str:
    return f"scheduler-{index}"
