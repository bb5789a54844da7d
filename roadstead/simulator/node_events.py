"""Node events and random failures of a scenario: when they occur, and on which nodes."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal

from roadstead.facts.node import ZONE_LABELS, NodeFacts, renamed_node
from roadstead.facts.selectors import LabelSelector
from roadstead.facts.taints import Taint
from roadstead.fleet.generate import raw_stream
from roadstead.simulator.share import Share
from roadstead.simulator.times import NEVER_US

NodeAction = Literal["lose", "drain", "cordon", "taint", "add", "remove"]
"""What an event does with its nodes; `lose` stops their machines."""


@dataclass(frozen=True, slots=True)
class NodeTarget:
    """The nodes of an event: those that meet all conditions, or a random share of them.

    zone: value of the zone label, "" for any. names: empty for any. share: how many of the matching
    nodes; None for all of them.
    """

    zone: str = ""
    names: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    share: Share | None = None

    def matches(self, node: NodeFacts) -> bool:
        """Whether a node meets all conditions; the share is not regarded."""
        labels = dict(node.labels)
        if self.zone and self.zone not in (labels.get(key) for key in ZONE_LABELS):
            return False
        if self.names and node.name not in self.names:
            return False
        return self.selector is None or self.selector.matches(labels)

    def choose(self, nodes: Iterable[NodeFacts], seed: int, purpose: str) -> tuple[str, ...]:
        """Return the names of the chosen nodes, in the order of `nodes`.

        purpose: of the random choice, such as "event 3 occurrence 0"; choices for different
        purposes are independent. Percentages are rounded up.
        """
        matching = [node.name for node in nodes if self.matches(node)]
        if self.share is None:
            return tuple(matching)
        wanted = min(len(matching), self.share.of(len(matching), rounds_up=True))
        # In the order of their random numbers, the first nodes are a sample without repetition.
        drawn = raw_stream(seed, purpose, len(matching)).argsort(kind="stable")[:wanted]
        return tuple(matching[index] for index in sorted(drawn.tolist()))


@dataclass(frozen=True, slots=True)
class NodeEventPlan:
    """A node event: its action on the nodes of its target, once or repeatedly.

    index: its place in `CompiledScenario.node_events`. at_us: time of the first occurrence.
    every_us: time between occurrences, 0 for one only. for_us: from an occurrence until it is
    undone, NEVER_US if it is not. until_us: no occurrence from then on. nodes: those that `add`
    adds. taint: that `taint` adds.
    """

    index: int
    action: NodeAction
    at_us: int
    every_us: int = 0
    for_us: int = NEVER_US
    until_us: int = NEVER_US
    target: NodeTarget = NodeTarget()
    nodes: tuple[NodeFacts, ...] = ()
    taint: Taint | None = None

    def times(self, horizon_us: int) -> range:
        """Return the times of its occurrences before the horizon."""
        end_us = horizon_us if self.until_us == NEVER_US else min(horizon_us, self.until_us)
        # An event that occurs once: the step reaches the end, so that the range has one time.
        return range(self.at_us, end_us, self.every_us or max(1, end_us - self.at_us))

    def chosen(self, nodes: Iterable[NodeFacts], seed: int, occurrence: int) -> tuple[str, ...]:
        """Return the names of an occurrence's nodes. nodes: all that exist at its time."""
        return self.target.choose(nodes, seed, f"event {self.index} occurrence {occurrence}")

    def added(self, occurrence: int) -> tuple[NodeFacts, ...]:
        """Return the nodes that an occurrence of `add` adds; all but the first number the names."""
        if not occurrence:
            return self.nodes
        return tuple(renamed_node(node, f"{node.name}-{occurrence}") for node in self.nodes)


@dataclass(frozen=True, slots=True)
class FailurePlan:
    """Random failures of each node, with exponential times up to a failure and to its repair.

    index: its place in `CompiledScenario.failures`. mtbf_us, mttr_us: means of the two times.
    """

    index: int
    mtbf_us: int
    mttr_us: int
    target: NodeTarget = NodeTarget()

    def outages(self, seed: int, node: str, since_us: int) -> Iterator[tuple[int, int]]:
        """Yield (time of failure, end of repair) of a node without end. since_us: its creation."""
        now_us = since_us
        for block in count():
            # A hash, not a stream: a fleet has many nodes, and most of them draw once or twice.
            purpose = f"{seed} failures {self.index} of {node} block {block}"
            drawn = iter(struct.unpack("<8Q", hashlib.blake2b(purpose.encode()).digest()))
            # Two of the eight numbers for each outage: the iterator is read twice in each round.
            for up_bits, down_bits in zip(drawn, drawn, strict=True):
                failed_us = now_us + _exponential(up_bits, self.mtbf_us)
                now_us = failed_us + _exponential(down_bits, self.mttr_us)
                yield failed_us, now_us


def _exponential(bits: int, mean_us: int) -> int:
    """Return an exponential time in whole milliseconds, but at least 1 us, from 64 random bits."""
    uniform = ((bits >> 11) + 0.5) / 2**53
    return max(1, round(-math.log(uniform) * mean_us / 1_000) * 1_000)
