"""Answers of the cache to schedulers."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.storage.news import NO_NEWS, BoundVolumes, StorageNews


@dataclass(frozen=True, slots=True)
class Assumed:
    """Answer to assumptions, their ends, and nominations.

    refused: (token, reason). seq: number of the change that the scheduler's table must have reached
    before the next decision. volumes: uncommitted bindings of the assumed pods' claims. storage:
    changes of claims that the scheduler does not have yet.
    """

    refused: tuple[tuple[str, str], ...]
    seq: int
    volumes: tuple[BoundVolumes, ...] = ()
    storage: StorageNews = NO_NEWS
