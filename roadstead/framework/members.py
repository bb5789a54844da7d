"""How many pods of each gang exist: known in the process of the queue, and asked by PreEnqueue.

Upstream's Coscheduling lists pods in PreFilter; here only the queue sees every pod that comes.
"""

from __future__ import annotations

from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import GroupKey, group_key


class GroupMembers:
    """UIDs by group. `is_known`: somebody keeps count; without it nobody can tell."""

    __slots__ = ("_uids", "is_known")

    def __init__(self, *, is_known: bool = False) -> None:
        self.is_known = is_known
        self._uids: dict[GroupKey, set[str]] = {}

    def add(self, uid: str, facts: PodFacts) -> bool:
        """A pod exists; whether it is a new member of a group."""
        key = group_key(facts)
        if key is None:
            return False
        members = self._uids.setdefault(key, set())
        before = len(members)
        members.add(uid)
        return len(members) > before

    def remove(self, uid: str, facts: PodFacts) -> None:
        """A pod is gone."""
        key = group_key(facts)
        members = self._uids.get(key, set()) if key is not None else set()
        members.discard(uid)
        if key is not None and not members:
            self._uids.pop(key, None)

    def count(self, key: GroupKey) -> int:
        return len(self._uids.get(key, ()))
