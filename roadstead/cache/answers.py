"""What the cache answers to schedulers."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.storage.news import NO_NEWS, BoundVolumes, StorageNews


@dataclass(frozen=True, slots=True)
class Assumed:
    """Which tokens were refused, each with why, and which change the table must have reached.

    volumes: of the attempts with claims that are not settled. storage: what the scheduler lacks.
    """

    refused: tuple[tuple[str, str], ...]
    seq: int
    volumes: tuple[BoundVolumes, ...] = ()
    storage: StorageNews = NO_NEWS
