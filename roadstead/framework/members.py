"""How many pods of each gang exist, and how many of them are bound.

The process of the queue knows, and PreEnqueue asks it. Schedulers are told with each lease how many
pods of its gangs are bound, by whomever. Upstream's Coscheduling lists pods in PreFilter and in
Permit; here only the queue sees every pod that comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import GroupKey, group_key


class GroupMembers:
    """UIDs by group. `is_known`: somebody keeps count; without it nobody can tell."""

    __slots__ = ("_bound", "_group_of", "_heard", "_listeners", "_told", "_uids", "is_known")

    def __init__(self, *, is_known: bool = False) -> None:
        self.is_known = is_known
        self._uids: dict[GroupKey, set[str]] = {}
        self._group_of: dict[str, GroupKey] = {}
        self._bound: dict[GroupKey, set[str]] = {}
        self._told: dict[GroupKey, int] = {}
        self._heard: dict[GroupKey, int] = {}
        self._listeners: list[Callable[[GroupKey], None]] = []

    def add(self, uid: str, facts: PodFacts) -> bool:
        """A pod exists; whether it is a new member of a group."""
        key = group_key(facts)
        if key is None:
            return False
        members = self._uids.setdefault(key, set())
        before = len(members)
        members.add(uid)
        self._group_of[uid] = key
        return len(members) > before

    def remove(self, uid: str) -> None:
        """A pod is gone."""
        key = self._group_of.pop(uid, None)
        if key is not None:
            for uids in (self._uids, self._bound):
                if key in uids:
                    uids[key].discard(uid)
                    if not uids[key]:
                        del uids[key]

    def group_of(self, uid: str) -> GroupKey | None:
        """The group of a pod; None if it is nobody's member."""
        return self._group_of.get(uid)

    def of(self, key: GroupKey) -> list[str]:
        """The pods of a group by UID, sorted."""
        return sorted(self._uids.get(key, ()))

    def groups(self) -> tuple[GroupKey, ...]:
        """All groups that have pods, in the order in which they came."""
        return tuple(self._uids)

    def count(self, key: GroupKey) -> int:
        return len(self._uids.get(key, ()))

    def bind(self, uids: Iterable[str]) -> None:
        """Pods are bound; they stay members until they are gone."""
        for uid in uids if self._group_of else ():
            key = self._group_of.get(uid)
            if key is not None:
                self._bound.setdefault(key, set()).add(uid)

    def listen(self, heard: Callable[[GroupKey], None]) -> None:
        """Call this whenever somebody says how many of a group are bound."""
        self._listeners.append(heard)

    def hear(self, key: GroupKey, bound: int) -> None:
        """So many of a group are bound, says who knows."""
        self._heard[key] = self.times_heard(key) + 1
        if bound:
            self._told[key] = bound
        else:
            self._told.pop(key, None)
        for heard in self._listeners:
            heard(key)

    def bound(self, key: GroupKey) -> int:
        """How many pods of a group are bound, as far as is known here."""
        return self._told.get(key, 0) or len(self._bound.get(key, ()))

    def times_heard(self, key: GroupKey) -> int:
        """How often somebody said how many of a group are bound."""
        return self._heard.get(key, 0)

    @property
    def is_empty(self) -> bool:
        """No pod is of any group."""
        return not self._group_of
