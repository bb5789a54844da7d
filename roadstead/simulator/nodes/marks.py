"""NodeMarks: cordons and taints that a run adds to nodes (marks), each until its cause ends.

Two events may cordon one node at the same time; it is schedulable again when both are over. A taint
that a node had from the start is there again when an event that replaced it is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from roadstead.facts.node import NodeFacts
from roadstead.facts.taints import Taint
from roadstead.manifests.daemons import NO_EXECUTE

Cause = tuple[str | int, ...]
"""The reason of a mark, such as one occurrence of a node event of the scenario."""


@dataclass(slots=True)
class _Marks:
    """The marks of a node.

    unmarked: its facts without marks. cordons: their causes. taints: by cause and effect.
    """

    unmarked: NodeFacts
    cordons: dict[Cause, None] = field(default_factory=dict)
    taints: dict[tuple[Cause, str], Taint] = field(default_factory=dict)

    def facts(self) -> NodeFacts:
        # Key and effect identify a taint; the value of the last one added counts.
        taints = {(each.key, each.effect): each for each in self.unmarked.taints}
        taints.update(((each.key, each.effect), each) for each in self.taints.values())
        return replace(
            self.unmarked,
            taints=tuple(taints.values()),
            unschedulable=self.unmarked.unschedulable or bool(self.cordons),
        )


class NodeMarks:
    """The marks of all nodes.

    The methods that change a node's marks return its new facts, or None if they are as before; None
    also for a node that was not added.
    """

    def __init__(self) -> None:
        self._marks: dict[str, _Marks] = {}
        # With marks, as they were returned last.
        self._facts: dict[str, NodeFacts] = {}

    def add(self, facts: NodeFacts) -> None:
        """Add a node. facts: without marks."""
        self._marks[facts.name] = _Marks(facts)
        self._facts[facts.name] = facts

    def __contains__(self, name: str) -> bool:
        return name in self._marks

    def drop(self, name: str) -> None:
        """Remove a node and its marks."""
        self._marks.pop(name, None)
        self._facts.pop(name, None)

    def cordon(self, name: str, cause: Cause) -> NodeFacts | None:
        """Make a node unschedulable."""
        if name not in self._marks:
            return None
        self._marks[name].cordons[cause] = None
        return self._facts_if_changed(name)

    def taint(self, name: str, cause: Cause, taint: Taint) -> NodeFacts | None:
        """Taint a node; one cause may add one taint of each effect."""
        if name not in self._marks:
            return None
        self._marks[name].taints[cause, taint.effect] = taint
        return self._facts_if_changed(name)

    def remove_marks(self, name: str, cause: Cause) -> NodeFacts | None:
        """Remove the cordon and all taints of a cause."""
        marks = self._marks.get(name)
        if marks is None:
            return None
        marks.cordons.pop(cause, None)
        marks.taints = {key: taint for key, taint in marks.taints.items() if key[0] != cause}
        return self._facts_if_changed(name)

    def remove_taint(self, name: str, cause: Cause, effect: str) -> NodeFacts | None:
        """Remove the one taint of a cause that has an effect."""
        marks = self._marks.get(name)
        if marks is None:
            return None
        marks.taints.pop((cause, effect), None)
        return self._facts_if_changed(name)

    def _facts_if_changed(self, name: str) -> NodeFacts | None:
        facts = self._marks[name].facts()
        if facts == self._facts[name]:
            return None
        self._facts[name] = facts
        return facts


def no_execute_taints(facts: NodeFacts) -> tuple[Taint, ...]:
    """Return the NoExecute taints of a node."""
    return tuple(each for each in facts.taints if each.effect == NO_EXECUTE)
