"""Partitions: which nodes are a scheduler's own, and which pods are tried on these first.

    pod ─ tries own nodes first? ─ yes ─► own nodes ─ feasible ─► assumed, bound
                  │                           └───── not ──┐
                  └─ no ──► all nodes ◄────────────────────┘ (as without partitions)

`latency-first` tries own nodes first, `quality-first` all nodes, `adaptive` own nodes while the
queue is long. At regular intervals, each partition moves to the next scheduler: a new *turn*
begins. In a turn no two schedulers own the same partition. A scheduler's *rank* is its position
among the schedulers of its profile, which divide the partitions.

A scheduler's table has all nodes, so that plugins that read other nodes read all of them; only the
choice is limited to own nodes. Pods whose hard constraints read other nodes are decided on all
nodes immediately (a spread over zones, of which a partition has few, would be passed on again and
again), and so are pods that were tried before. Raw scores are normalized over the feasible nodes of
the partition.

Upstream: none; ParSync (Feng et al., USENIX ATC 2021, sections 4 and 5).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Literal

import numpy as np

from roadstead.config.settings import Settings
from roadstead.cycle.batch import PodInCycle
from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import FilterPlugin, FilterResult, Reads
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.protocol.status import unresolvable

Policy = Literal["latency-first", "quality-first", "adaptive"]

_OF_OTHERS = unresolvable("node(s) were of another scheduler's partition")


def partitions_of(partitions: int, rank: int, schedulers: int, turn: int) -> tuple[int, ...]:
    """Return the partitions of the scheduler at `rank` (from 0) of `schedulers` in a turn."""
    assert 0 <= rank < schedulers <= partitions, (
        f"{schedulers} schedulers cannot own {partitions} partitions"
    )
    return tuple(
        partition for partition in range(partitions) if (partition + turn) % schedulers == rank
    )


def reads_other_nodes(facts: PodFacts) -> bool:
    """Whether a pod's own hard constraints or claims depend on other nodes."""
    hard = any(each.when_unsatisfiable == "DoNotSchedule" for each in facts.spread_constraints)
    return hard or bool(facts.pod_affinity or facts.pod_anti_affinity or facts.may_bind_claims)


class OwnNodes(FilterPlugin):
    """Refuse nodes of other partitions. partition_of: node → partition, for every row."""

    name = "OwnNodes"
    reads = Reads.NODE
    shares_by_shape = True

    def __init__(self, partition_of: Mapping[str, int], own: tuple[int, ...]) -> None:
        self._partition_of = partition_of
        self.own = own

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        partitions = np.array([self._partition_of[name] for name in table.names], dtype=np.int64)
        return FilterResult.refuse(~np.isin(partitions, self.own), _OF_OTHERS)

    def sign(self, pod: PodFacts) -> Hashable:
        return ()

    def state_version(self, pod: PodClass) -> Hashable:
        return self.own


class Partition:
    """The partitions of one scheduler. nodes: the filter for its own nodes.

    index: of the scheduler in the run; schedulers of one profile divide the partitions.
    partition_of: node name → partition, kept up to date by its owner.
    """

    def __init__(self, settings: Settings, index: int, partition_of: Mapping[str, int]) -> None:
        profiles = settings.scheduler_profiles
        self._partitions = settings.partitions
        self._policy: Policy = settings.partition_policy
        self._long_queue_pods = settings.partition_long_queue_pods
        self._rank = profiles[:index].count(profiles[index])
        self._schedulers = profiles.count(profiles[index])
        self._is_queue_long = True
        self._passed_on: set[tuple[str, int]] = set()
        self.nodes = OwnNodes(
            partition_of, partitions_of(self._partitions, self._rank, self._schedulers, 0)
        )

    def record_lease(self, waiting: int, turn: int) -> None:
        """Record a new lease: the number of pods that still wait, and the turn."""
        self._is_queue_long = waiting > self._long_queue_pods
        self._passed_on.clear()
        self.nodes.own = partitions_of(self._partitions, self._rank, self._schedulers, turn)

    def tries_own_nodes_first(self, pod: PodInCycle) -> bool:
        """Whether a pod is tried on own nodes first."""
        if self._policy == "quality-first":
            return False
        if self._policy == "adaptive" and not self._is_queue_long:
            return False
        if pod.attempt > 1 or (pod.uid, pod.attempt) in self._passed_on:
            return False
        return not reads_other_nodes(pod.pod_class.facts)

    def pass_on(self, pod: PodInCycle) -> None:
        """Record that no own node is feasible for a pod: it is decided on all nodes."""
        self._passed_on.add((pod.uid, pod.attempt))
