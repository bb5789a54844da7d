"""The number of pods of each gang (a pod group), and how many of them are bound.

The process of the queue counts the pods, and PreEnqueue reads the counts there. With each lease, a
scheduler receives for every gang in it how many of the gang's pods are bound, by any scheduler.
Upstream's Coscheduling lists pods in PreFilter and in Permit; here only the queue has every
submitted pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import GroupKey, group_key


class GroupMembers:
    """The pods of each group by UID, and the reported numbers of bound pods.

    counts_pods: this is the process of the queue, which counts the pods of groups (`add`, `remove`,
    `bind`). Another process only receives its numbers of bound pods, the reports (`record_bound`).
    """

    __slots__ = (
        "_bound",
        "_group_of",
        "_listeners",
        "_reported_bound",
        "_reports",
        "_uids",
        "counts_pods",
    )

    def __init__(self, *, counts_pods: bool = False) -> None:
        self.counts_pods = counts_pods
        # UIDs of pods, and of bound pods, that this process counts; and the group of each UID.
        self._uids: dict[GroupKey, set[str]] = {}
        self._bound: dict[GroupKey, set[str]] = {}
        self._group_of: dict[str, GroupKey] = {}
        # The latest reported number of bound pods, and the number of reports.
        self._reported_bound: dict[GroupKey, int] = {}
        self._reports: dict[GroupKey, int] = {}
        self._listeners: list[Callable[[GroupKey], None]] = []

    def add(self, uid: str, facts: PodFacts) -> bool:
        """Add a pod, or update its group; return whether it is a new member of a group."""
        key = group_key(facts)
        if self._group_of.get(uid, key) != key:
            self.remove(uid)
        if key is None:
            return False
        members = self._uids.setdefault(key, set())
        before = len(members)
        members.add(uid)
        self._group_of[uid] = key
        return len(members) > before

    def remove(self, uid: str) -> None:
        """Remove a pod."""
        key = self._group_of.pop(uid, None)
        if key is not None:
            for by_group in (self._uids, self._bound):
                if key in by_group:
                    by_group[key].discard(uid)
                    if not by_group[key]:
                        del by_group[key]

    def group_of(self, uid: str) -> GroupKey | None:
        """Return the group of a pod; None if it is a member of none."""
        return self._group_of.get(uid)

    def of(self, key: GroupKey) -> list[str]:
        """Return the sorted UIDs of the pods of a group."""
        return sorted(self._uids.get(key, ()))

    def groups(self) -> tuple[GroupKey, ...]:
        """Return all groups that have pods, in order of arrival."""
        return tuple(self._uids)

    def count(self, key: GroupKey) -> int:
        """Return how many pods of a group exist, as counted here."""
        return len(self._uids.get(key, ()))

    def bind(self, uids: Iterable[str]) -> None:
        """Count pods as bound; they stay members until they are removed."""
        for uid in uids if self._group_of else ():
            key = self._group_of.get(uid)
            if key is not None:
                self._bound.setdefault(key, set()).add(uid)

    def listen(self, callback: Callable[[GroupKey], None]) -> None:
        """Register a function that every later `record_bound` calls with its group."""
        self._listeners.append(callback)

    def record_bound(self, key: GroupKey, bound: int) -> None:
        """Record a received number of bound pods of a group, and call the registered functions."""
        self._reports[key] = self.times_reported(key) + 1
        if bound:
            self._reported_bound[key] = bound
        else:
            self._reported_bound.pop(key, None)
        for callback in self._listeners:
            callback(key)

    def bound(self, key: GroupKey) -> int:
        """Return how many pods of a group are bound: the latest report, or else the count here."""
        return self._reported_bound.get(key, 0) or len(self._bound.get(key, ()))

    def times_reported(self, key: GroupKey) -> int:
        """Return how many times `record_bound` was called for a group.

        A plugin compares it to know whether the latest report is newer than a bind.
        """
        return self._reports.get(key, 0)

    @property
    def is_empty(self) -> bool:
        """Whether no pod is in a group."""
        return not self._group_of
