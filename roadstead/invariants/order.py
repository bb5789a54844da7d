"""Order among pods that ask for the same, as far as a journal shows it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace

from roadstead.facts.pod import PodFacts

Waiting = dict[int, OrderedDict[str, None]]
"""Priority → UIDs in the order in which they were accepted."""


@dataclass(slots=True)
class Order:
    """Pods that wait, those that differ in nothing but their priority together.

    A pod that is bound while an equal one of higher priority, or of the same and accepted earlier,
    waits has overtaken it. That breaks no rule by itself: the other one may have been tried where
    there was no room yet, or be in the hands of another scheduler. So it is counted.
    """

    overtaken: int = 0
    _alike: dict[PodFacts, Waiting] = field(default_factory=dict)
    _where: dict[str, Waiting] = field(default_factory=dict)
    _priority: dict[str, int] = field(default_factory=dict)
    _classes: dict[int, tuple[PodFacts, Waiting]] = field(default_factory=dict)

    def wait(self, uid: str, facts: PodFacts) -> None:
        """A pod waits from now on; one that has other facts by now starts behind its like."""
        group = self._group(facts)
        if self._where.get(uid) is group and self._priority[uid] == facts.priority:
            return
        self.leave(uid)
        self._where[uid], self._priority[uid] = group, facts.priority
        group.setdefault(facts.priority, OrderedDict())[uid] = None

    def bind(self, uid: str) -> None:
        """A pod is bound."""
        group = self._where.get(uid)
        if group is not None:
            own = self._priority[uid]
            is_behind = next(iter(group[own])) != uid
            if is_behind or any(group[each] for each in group if each > own):
                self.overtaken += 1
        self.leave(uid)

    def leave(self, uid: str) -> None:
        """A pod waits no more."""
        group = self._where.pop(uid, None)
        if group is not None:
            del group[self._priority.pop(uid)][uid]

    def _group(self, facts: PodFacts) -> Waiting:
        # Of equal facts a journal's reader makes one object: nothing is hashed twice.
        known = self._classes.get(id(facts))
        if known is None:
            group = self._alike.setdefault(replace(facts, priority=0), {})
            known = self._classes[id(facts)] = facts, group
        return known[1]
