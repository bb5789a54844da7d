"""Answers of the cache to schedulers."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.storage.claim_messages import (
    NO_STORAGE_CHANGES,
    AttemptBindings,
    NumberedStorageChanges,
)


@dataclass(frozen=True, slots=True)
class CacheAnswer:
    """Answer to assumptions, their ends, and nominations.

    refused: (token, reason). seq: number of the change that the scheduler's table must have reached
    before the next decision. volumes: uncommitted bindings of the assumed pods' claims. storage:
    changes of claims that the scheduler does not have yet.
    """

    refused: tuple[tuple[str, str], ...]
    seq: int
    volumes: tuple[AttemptBindings, ...] = ()
    storage: NumberedStorageChanges = NO_STORAGE_CHANGES
