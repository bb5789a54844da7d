"""Order among pods with equal facts, as far as a journal shows it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace

from roadstead.facts.pod import PodFacts

Waiting = dict[int, OrderedDict[str, None]]
"""Priority → UIDs in the order in which they were accepted."""


@dataclass(slots=True)
class PendingOrder:
    """Pending pods, grouped by facts without the priority.

    A pod overtakes an equal one if it is bound while the other waits and has a higher priority, or
    the same and was accepted earlier. That violates no rule by itself, so it is only counted: the
    other one may have been tried before there was room, or be leased to another scheduler.

    overtaken: number of binds by which a pod overtook another. _group_of, _priority: of each
    pending pod, by UID. _group_by_id: the same groups as in _by_facts, by `id` of facts.
    """

    overtaken: int = 0
    _by_facts: dict[PodFacts, Waiting] = field(default_factory=dict)
    _group_of: dict[str, Waiting] = field(default_factory=dict)
    _priority: dict[str, int] = field(default_factory=dict)
    _group_by_id: dict[int, tuple[PodFacts, Waiting]] = field(default_factory=dict)

    def wait(self, uid: str, facts: PodFacts) -> None:
        """Add a pending pod; one with new facts goes to the end of its new group."""
        group = self._group(facts)
        if self._group_of.get(uid) is group and self._priority[uid] == facts.priority:
            return
        self.leave(uid)
        self._group_of[uid], self._priority[uid] = group, facts.priority
        group.setdefault(facts.priority, OrderedDict())[uid] = None

    def bind(self, uid: str) -> None:
        """Remove a pod that is bound; count it if it overtakes another."""
        group = self._group_of.get(uid)
        if group is not None:
            own = self._priority[uid]
            is_behind = next(iter(group[own])) != uid
            if is_behind or any(group[each] for each in group if each > own):
                self.overtaken += 1
        self.leave(uid)

    def leave(self, uid: str) -> None:
        """Remove a pod that no longer waits."""
        group = self._group_of.pop(uid, None)
        if group is not None:
            del group[self._priority.pop(uid)][uid]

    def _group(self, facts: PodFacts) -> Waiting:
        # The journal's reader returns one object for equal facts, so each is hashed only once.
        entry = self._group_by_id.get(id(facts))
        if entry is None:
            group = self._by_facts.setdefault(replace(facts, priority=0), {})
            entry = self._group_by_id[id(facts)] = facts, group
        return entry[1]
