"""Faults: when a scenario's events of nodes occur and end, and when nodes fail at random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from roadstead.facts.node import NodeFacts
from roadstead.simulator.scenario import NEVER_US, CompiledScenario, NodeEventPlan


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence of an event, and when the next one is; NEVER_US for the last one.

    ends_us: when it is undone, NEVER_US if it is not.
    """

    plan: NodeEventPlan
    number: int
    ends_us: int
    next_us: int


class Faults:
    """The events of a scenario, and the random failures of each node."""

    def __init__(self, plan: CompiledScenario, seed: int) -> None:
        self._plan, self._seed = plan, seed
        self._outages: dict[tuple[int, str], Iterator[tuple[int, int]]] = {}

    def first_us(self) -> Iterator[tuple[int, int]]:
        """Yield (event, time of its first occurrence) of the events that occur."""
        for each in self._plan.node_events:
            if (at_us := next(each.times(self._plan.horizon_us), None)) is not None:
                yield each.index, at_us

    def occurrence(self, event: int, number: int) -> Occurrence:
        """Return occurrence `number` (from 0) of an event that occurs more often than that."""
        plan = self._plan.node_events[event]
        at_us = plan.at_us + number * plan.every_us
        ends_us = NEVER_US if plan.for_us == NEVER_US else at_us + plan.for_us
        next_us = at_us + plan.every_us
        until_us = self._plan.horizon_us
        if plan.until_us != NEVER_US:
            until_us = min(until_us, plan.until_us)
        is_last = not plan.every_us or next_us >= until_us
        return Occurrence(plan, number, ends_us, NEVER_US if is_last else next_us)

    def add_node(self, node: NodeFacts, now_us: int) -> Iterator[tuple[int, int, int]]:
        """Begin the random failures of a node; yield (failure, first outage, its end) of each."""
        for each in self._plan.failures:
            if each.target.matches(node):
                self._outages[each.index, node.name] = each.outages(self._seed, node.name, now_us)
                if (outage := self.next_outage(each.index, node.name)) is not None:
                    yield each.index, *outage

    def next_outage(self, failure: int, node: str) -> tuple[int, int] | None:
        """Return begin and end of a node's next outage; None if it has none before the horizon."""
        outages = self._outages.get((failure, node))
        if outages is None:
            return None
        begin_us, end_us = next(outages)
        if begin_us < self._plan.horizon_us:
            return begin_us, end_us
        del self._outages[failure, node]
        return None

    def drop_node(self, name: str) -> None:
        """End the random failures of a node that was removed."""
        for each in self._plan.failures:
            self._outages.pop((each.index, name), None)
