"""Faults: when a scenario's node events occur and end, and when nodes fail at random.

A node event loses, drains, cordons, taints, adds or removes nodes, once or repeatedly. A failure is
a rule of the scenario for random failures, by its index; an outage is one failure of one node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from roadstead.facts.node import NodeFacts
from roadstead.simulator.node_events import NodeEventPlan
from roadstead.simulator.scenario import CompiledScenario
from roadstead.simulator.times import NEVER_US


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence of an event.

    number: from 0. ends_us: when it is undone, NEVER_US if it is not. next_us: when the next one
    occurs, NEVER_US after the last one.
    """

    event: NodeEventPlan
    number: int
    ends_us: int
    next_us: int


class NodeFaults:
    """The events of a scenario, and the random failures of each node."""

    def __init__(self, scenario: CompiledScenario, seed: int) -> None:
        self._scenario, self._seed = scenario, seed
        # (failure, node) → its next outages; see `FailurePlan.outages`.
        self._outages: dict[tuple[int, str], Iterator[tuple[int, int]]] = {}

    def first_times(self) -> Iterator[tuple[int, int]]:
        """Yield (event, time of its first occurrence) of the events that occur."""
        for each in self._scenario.node_events:
            if (at_us := next(iter(each.times(self._scenario.horizon_us)), None)) is not None:
                yield each.index, at_us

    def occurrence(self, index: int, number: int) -> Occurrence:
        """Return occurrence `number` (from 0) of the event with an index."""
        event = self._scenario.node_events[index]
        at_us = event.at_us + number * event.every_us
        ends_us = NEVER_US if event.for_us == NEVER_US else at_us + event.for_us
        next_us = at_us + event.every_us
        until_us = self._scenario.horizon_us
        if event.until_us != NEVER_US:
            until_us = min(until_us, event.until_us)
        is_last = not event.every_us or next_us >= until_us
        return Occurrence(event, number, ends_us, NEVER_US if is_last else next_us)

    def add_node(self, node: NodeFacts, now_us: int) -> Iterator[tuple[int, int, int]]:
        """Begin the random failures of a node; yield (failure, first outage, its end) of each."""
        for each in self._scenario.failures:
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
        if begin_us < self._scenario.horizon_us:
            return begin_us, end_us
        del self._outages[failure, node]
        return None

    def drop_node(self, name: str) -> None:
        """End the random failures of a node that was removed."""
        for each in self._scenario.failures:
            self._outages.pop((each.index, name), None)
