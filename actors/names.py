"""Names of the actors of a run."""

from __future__ import annotations

QUEUE, CACHE, BINDER = "queue", "cache", "binder"
WORKER, SCHEDULER = "worker", "scheduler"
CONTROL = "control"
"""The process of queue, cache and binder, where they share one."""


def worker_name(index: int) -> str:
    return f"{WORKER}-{index}"


def scheduler_name(index: int) -> str:
    return f"{SCHEDULER}-{index}"
