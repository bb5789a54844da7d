"""A heap of pods from which the first of each profile can be had as cheaply as the first of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.lazyheap import LazyHeap, SortKey
from roadstead.queue.pods import EventT, PodEntry


class ProfileHeaps(LazyHeap[PodEntry[EventT]]):
    """All pods, and those of each profile by themselves.

    A pod stays with the profile that it had when it came here.
    """

    def __init__(self) -> None:
        super().__init__()
        self._of_profile: dict[str, LazyHeap[PodEntry[EventT]]] = {}
        self._profile_of: dict[str, str] = {}

    def put(self, name: str, key: SortKey, seq: int, item: PodEntry[EventT]) -> None:
        super().put(name, key, seq, item)
        profile = self._profile_of[name] = item.facts.scheduler_name
        self._of_profile.setdefault(profile, LazyHeap()).put(name, key, seq, item)

    def put_line(self, key: SortKey, items: Sequence[tuple[str, int, PodEntry[EventT]]]) -> None:
        for name, seq, item in items:
            self.put(name, key, seq, item)

    def take_all(self, names: Iterable[str]) -> None:
        names = tuple(names)
        super().take_all(names)
        for name in names:
            self._of_profile[self._profile_of.pop(name)].take(name)

    def of(self, profile: str) -> LazyHeap[PodEntry[EventT]]:
        """The pods of a profile; not to be changed."""
        return self._of_profile.get(profile) or LazyHeap()
