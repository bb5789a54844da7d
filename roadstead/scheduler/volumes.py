"""Volumes of pods before their commit: a scheduler's part; see `roadstead/cache/volumes.py`."""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.storage import StorageChange, StorageState
from roadstead.storage.claim_messages import AttemptBindings, NumberedStorageChanges


class SchedulerVolumes:
    """The storage state of a scheduler's profiles, and the claim bindings of its attempts.

    Changes wait until `catch_up`: during a batch they would contradict results computed before.
    known: number of changes received from the cache.
    """

    def __init__(self, storage: StorageState) -> None:
        self._storage = storage
        self._waiting: list[StorageChange] = []
        self.known = 0
        self._bindings: dict[str, AttemptBindings] = {}

    def store_changes(
        self, numbered: NumberedStorageChanges, bound: Sequence[AttemptBindings] = ()
    ) -> None:
        """Store changes and bindings of the cache's answer; skip changes that are known.

        numbered: consecutive changes, the first with number `start`. bound: bindings of attempts
        that the cache accepted.
        """
        self._waiting += numbered.changes[max(0, self.known - numbered.start) :]
        self.known = max(self.known, numbered.start + len(numbered.changes))
        self._bindings |= {each.token: each for each in bound}

    def catch_up(self) -> None:
        """Apply the stored changes; undo allocations of this scheduler that are not among them."""
        self._storage.catch_up(self._waiting)
        self._waiting.clear()

    def of(self, tokens: Sequence[str]) -> tuple[AttemptBindings, ...]:
        """Return the bindings to send to the binder with these attempts."""
        return tuple(self._bindings[token] for token in tokens if token in self._bindings)

    def drop(self, tokens: Sequence[str]) -> None:
        """Discard the bindings of attempts that have ended."""
        for token in tokens:
            self._bindings.pop(token, None)
