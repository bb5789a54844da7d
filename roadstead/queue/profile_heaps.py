"""A heap of pods from which the first of each profile can be had as cheaply as the first of all."""

from __future__ import annotations

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

    def take(self, name: str) -> None:
        super().take(name)
        self._of_profile[self._profile_of.pop(name)].take(name)

    def first_of(self, profile: str) -> PodEntry[EventT] | None:
        """The first pod of a profile, left in place; None where there is none."""
        heap = self._of_profile.get(profile)
        return None if heap is None else heap.first()
