"""How many pods of each gang exist: known in the process of the queue, and asked by PreEnqueue.

Upstream's Coscheduling lists pods in PreFilter; here only the queue sees every pod that comes.
"""

from __future__ import annotations

from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import GroupKey, group_key


class GroupMembers:
    """UIDs by group. `is_known`: somebody keeps count; without it nobody can tell."""

    __slots__ = ("_group_of", "_uids", "is_known")

    def __init__(self, *, is_known: bool = False) -> None:
        self.is_known = is_known
        self._uids: dict[GroupKey, set[str]] = {}
        self._group_of: dict[str, GroupKey] = {}

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
            self._uids[key].remove(uid)
            if not self._uids[key]:
                del self._uids[key]

    def group_of(self, uid: str) -> GroupKey | None:
        """The group of a pod; None if it is nobody's member."""
        return self._group_of.get(uid)

    def count(self, key: GroupKey) -> int:
        return len(self._uids.get(key, ()))
