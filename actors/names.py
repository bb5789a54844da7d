"""Names of the actors of a run."""

from __future__ import annotations

from roadstead.config.settings import Settings

QUEUE, CACHE, BINDER = "queue", "cache", "binder"
WORKER, SCHEDULER = "worker", "scheduler"
JOURNAL_COPY = "journal-copy"
CONTROL = "control"
"""The process that queue, cache and binder share with `control: together`."""


def worker_name(index: int) -> str:
    return f"{WORKER}-{index}"


def index_of(name: str) -> int:
    """Return the index of a worker or scheduler from its name."""
    return int(name.rpartition("-")[2])


def scheduler_name(index: int) -> str:
    return f"{SCHEDULER}-{index}"


def process_names(settings: Settings) -> list[str]:
    """Return the names of the processes of a run."""
    control = [CONTROL] if settings.control == "together" else [QUEUE, CACHE, BINDER]
    copies = [] if settings.journal_copy is None else [JOURNAL_COPY]
    return [*control, *copies, *follower_names(settings)]


def follower_names(settings: Settings) -> list[str]:
    """Return the names of the actors that receive the cache's changes: schedulers and workers."""
    schedulers = map(scheduler_name, range(settings.scheduler_count))
    return [*schedulers, *map(worker_name, range(settings.workers))]
