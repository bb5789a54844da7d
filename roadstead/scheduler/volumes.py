"""Volumes of pods on their way: a scheduler's part; `roadstead/cache/volumes.py` says the whole."""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.storage import Binding, StorageChange, StorageState
from roadstead.storage.news import BoundVolumes, StorageNews


class SchedulerVolumes:
    """The storage state of its profiles, and the bindings of its attempts.

    News waits until `catch_up`: in the middle of a batch it would not fit what was asked.
    """

    def __init__(self, storage: StorageState) -> None:
        self._storage = storage
        self._waiting: list[StorageChange] = []
        self.known = 0
        self._bindings: dict[str, tuple[Binding, ...]] = {}

    def take(self, news: StorageNews, bound: Sequence[BoundVolumes] = ()) -> None:
        """Takes what the cache answered; news that came before is skipped."""
        self._waiting += news.changes[max(0, self.known - news.start) :]
        self.known = max(self.known, news.start + len(news.changes))
        self._bindings |= {each.token: each.bindings for each in bound}

    def catch_up(self) -> None:
        """Makes the changes that were taken."""
        for change in self._waiting:
            self._storage.apply(change)
        self._waiting.clear()

    def of(self, tokens: Sequence[str]) -> tuple[BoundVolumes, ...]:
        """The bindings that go to the binder with these attempts."""
        return tuple(
            BoundVolumes(token, self._bindings[token])
            for token in tokens
            if token in self._bindings
        )

    def drop(self, tokens: Sequence[str]) -> None:
        """Attempts that have ended."""
        for token in tokens:
            self._bindings.pop(token, None)
