"""Partitions: which shards are a scheduler's own, and which pods it decides on them alone.

    pod ─ local? ─ yes ─► own shards ─ feasible ─► assumed, bound
            │                  └────── not ──┐
            └─ no ──► all shards ◄───────────┘ (overflow: the optimistic part)

`latency-first` looks at own nodes first, `quality-first` at all of them, `adaptive` at own ones
while the queue is long. Partitions change hands at an interval, each to the next scheduler, so that
no two own the same shard in the same turn.

What looks across nodes cannot be judged by a part of them: pods with required (anti-)affinity, hard
spread or volumes go to all shards at once, others where a plugin turns out to count something. So
do pods that were tried before. Soft scores are those of the partition.

Upstream: none; ParSync (Feng et al., USENIX ATC 2021, sections 4 and 5).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

from roadstead.config.settings import Settings
from roadstead.cycle.batch import PodInCycle
from roadstead.facts.pod import PodFacts

Policy = Literal["latency-first", "quality-first", "adaptive"]


def owned(shards: int, rank: int, schedulers: int, turn: int) -> tuple[int, ...]:
    """The shards of the scheduler at `rank` among `schedulers`, after so many turns."""
    assert 0 <= rank < schedulers <= shards, f"{schedulers} schedulers cannot own {shards} shards"
    return tuple(shard for shard in range(shards) if (shard + turn) % schedulers == rank)


def looks_across(facts: PodFacts) -> bool:
    """Whether a pod by itself says that pods on other nodes matter to where it may be."""
    hard = any(each.when_unsatisfiable == "DoNotSchedule" for each in facts.spread_constraints)
    return hard or bool(facts.pod_affinity or facts.pod_anti_affinity or facts.volumes)


class Partition:
    """A scheduler's part of the nodes. own: its shards in this turn.

    index: of the scheduler among all of the run; those of one profile share the shards.
    """

    def __init__(self, settings: Settings, index: int) -> None:
        profiles = settings.scheduler_profiles
        self._shards = settings.shards
        self._policy: Policy = settings.partition_policy
        self._long_queue_pods = settings.partition_long_queue_pods
        self._rank = profiles[:index].count(profiles[index])
        self._schedulers = profiles.count(profiles[index])
        self._is_long = True
        self._passed_on: set[tuple[str, int]] = set()
        self._everywhere: set[Hashable] = set()
        self.own = owned(self._shards, self._rank, self._schedulers, 0)

    def leased(self, waiting: int, turn: int) -> None:
        """A new lease: how many pods wait behind it, and whose turn it is."""
        self._is_long = waiting > self._long_queue_pods
        self._passed_on.clear()
        self._everywhere.clear()
        self.own = owned(self._shards, self._rank, self._schedulers, turn)

    def is_local(self, pod: PodInCycle) -> bool:
        """Whether a pod is to be decided on the own shards."""
        if self._policy == "quality-first" or (self._policy == "adaptive" and not self._is_long):
            return False
        if pod.attempt > 1 or (pod.uid, pod.attempt) in self._passed_on:
            return False
        return pod.signature not in self._everywhere and not looks_across(pod.info.facts)

    def pass_on(self, pod: PodInCycle) -> None:
        """No own node is feasible for a pod: it is decided on all."""
        self._passed_on.add((pod.uid, pod.attempt))

    def pass_all_on(self, signature: Hashable) -> None:
        """A class cannot be judged by a part of the nodes."""
        self._everywhere.add(signature)
