"""Partitions: which parts of the nodes are a scheduler's own, and which pods go to them alone.

    pod ─ local? ─ yes ─► own nodes ─ feasible ─► assumed, bound
            │                  └───── not ──┐
            └─ no ──► all nodes ◄───────────┘ (overflow: the optimistic part)

`latency-first` looks at own nodes first, `quality-first` at all of them, `adaptive` at own ones
while the queue is long. Partitions change hands at an interval, each to the next scheduler, so that
no two own the same partition in the same turn.

A scheduler holds all nodes, so that what looks across them is judged by all of them; only the pod
goes to one of its own. Pods whose hard constraints look across nodes go to all of them at once (a
spread over zones, of which a partition has few, would be passed on again and again), and so do
pods that were tried before. Raw scores are normalized over the feasible nodes of the partition.

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


def owned(partitions: int, rank: int, schedulers: int, turn: int) -> tuple[int, ...]:
    """The partitions of the scheduler at `rank` among `schedulers`, after so many turns."""
    assert 0 <= rank < schedulers <= partitions, (
        f"{schedulers} schedulers cannot own {partitions} partitions"
    )
    return tuple(
        partition for partition in range(partitions) if (partition + turn) % schedulers == rank
    )


def looks_across(facts: PodFacts) -> bool:
    """Whether a pod by itself says that pods on other nodes matter to where it may be."""
    hard = any(each.when_unsatisfiable == "DoNotSchedule" for each in facts.spread_constraints)
    return hard or bool(facts.pod_affinity or facts.pod_anti_affinity or facts.volumes)


class OwnNodes(FilterPlugin):
    """Leaves the nodes of some partitions. partition_of: node name → partition, for every row."""

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

    def known_state(self, pod: PodClass) -> Hashable:
        return self.own


class Partition:
    """A scheduler's part of the nodes, `nodes`.

    index: of the scheduler among all of the run; those of one profile share the partitions.
    partition_of: node name → partition, kept up to date by its owner.
    """

    def __init__(self, settings: Settings, index: int, partition_of: Mapping[str, int]) -> None:
        profiles = settings.scheduler_profiles
        self._partitions = settings.partitions
        self._policy: Policy = settings.partition_policy
        self._long_queue_pods = settings.partition_long_queue_pods
        self._rank = profiles[:index].count(profiles[index])
        self._schedulers = profiles.count(profiles[index])
        self._is_long = True
        self._passed_on: set[tuple[str, int]] = set()
        self.nodes = OwnNodes(
            partition_of, owned(self._partitions, self._rank, self._schedulers, 0)
        )

    def leased(self, waiting: int, turn: int) -> None:
        """A new lease: how many pods wait behind it, and whose turn it is."""
        self._is_long = waiting > self._long_queue_pods
        self._passed_on.clear()
        self.nodes.own = owned(self._partitions, self._rank, self._schedulers, turn)

    def is_local(self, pod: PodInCycle) -> bool:
        """Whether a pod is to go to one of the own nodes."""
        if self._policy == "quality-first" or (self._policy == "adaptive" and not self._is_long):
            return False
        if pod.attempt > 1 or (pod.uid, pod.attempt) in self._passed_on:
            return False
        return not looks_across(pod.info.facts)

    def pass_on(self, pod: PodInCycle) -> None:
        """No own node is feasible for a pod: it is decided on all."""
        self._passed_on.add((pod.uid, pod.attempt))
