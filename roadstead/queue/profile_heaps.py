"""ProfileHeaps: a heap of pods that also returns the first pods of each profile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.lazyheap import LazyHeap, SortKey
from roadstead.queue.pods import EventT, PodEntry


class ProfileHeaps(LazyHeap[PodEntry[EventT]]):
    """Heap of all pods, and one heap for each profile.

    A pod stays in the heap of the profile that it had when it was put. The names of items are UIDs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._of_profile: dict[str, LazyHeap[PodEntry[EventT]]] = {}
        self._profile_of: dict[str, str] = {}

    def put(self, name: str, key: SortKey, seq: int, item: PodEntry[EventT]) -> None:
        super().put(name, key, seq, item)
        profile = self._profile_of[name] = item.facts.scheduler_name
        self._of_profile.setdefault(profile, LazyHeap()).put(name, key, seq, item)

    def put_all(self, key: SortKey, items: Sequence[tuple[str, int, PodEntry[EventT]]]) -> None:
        for name, seq, item in items:
            self.put(name, key, seq, item)

    def remove_all(self, names: Iterable[str]) -> None:
        names = tuple(names)
        super().remove_all(names)
        for name in names:
            self._of_profile[self._profile_of.pop(name)].remove(name)

    def of(self, profile: str) -> LazyHeap[PodEntry[EventT]]:
        """Return the heap of a profile; callers must not change it."""
        return self._of_profile.get(profile) or LazyHeap()
