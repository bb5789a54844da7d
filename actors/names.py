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


def holder_names(settings: Settings) -> list[list[str]]:
    """Shard → the actors that hold its nodes: a worker, or all schedulers where they hold all.

    Workers that score for these follow the same changes, and keep what is of their own nodes.
    """
    if not settings.has_workers:
        schedulers = [scheduler_name(index) for index in range(settings.scheduler_count)]
        return [[*schedulers, *map(worker_name, range(settings.workers))]]
    return [[worker_name(index)] for index in range(settings.shards)]
