"""Names of the actors of a run."""

from __future__ import annotations

from roadstead.config.settings import Settings

QUEUE, CACHE, BINDER = "queue", "cache", "binder"
WORKER, SCHEDULER = "worker", "scheduler"
CONTROL = "control"
"""The process of queue, cache and binder, where they share one."""


def worker_name(index: int) -> str:
    return f"{WORKER}-{index}"


def index_of(name: str) -> int:
    """The number of a worker or a scheduler."""
    return int(name.rpartition("-")[2])


def scheduler_name(index: int) -> str:
    return f"{SCHEDULER}-{index}"


def follower_names(settings: Settings) -> list[str]:
    """The actors that follow the cache's changes: schedulers, and workers that score for them."""
    schedulers = map(scheduler_name, range(settings.scheduler_count))
    return [*schedulers, *map(worker_name, range(settings.workers))]
