"""LocalShards: all shards in this process, every message packed and unpacked as between actors.

The ground for parity runs, property tests and `explain`: the sharded protocol without a runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from roadstead.cycle.batch import BatchRun, Decision, PodInCycle
from roadstead.cycle.explain import Explanation, explain
from roadstead.cycle.messages import EvaluateRequest, ShardAnswer, ShardView
from roadstead.cycle.narrowing import LocalRoster, Narrower
from roadstead.cycle.shard import ShardCore
from roadstead.cycle.sharded import MAX_ROUNDS, NarrowTask, ShardedCycle
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.nodes.sharding import Sharding
from roadstead.nodes.snapshots import is_behind, take_snapshot
from roadstead.nodes.table import NodeTable
from roadstead.protocol.codec import from_wire, pack, to_wire, unpack

ProfilesOf = Callable[[PodClasses], Mapping[str, Profile]]


class LocalShards:
    """A fleet cut into shards, and a scheduler over them.

    profiles_of: builds the profiles for one process' classes (called per shard, as workers would).
    """

    def __init__(
        self,
        shards: int,
        profiles_of: ProfilesOf,
        tie_break: TieBreak,
        *,
        name_best: bool = False,
        narrower: Narrower | None = None,
    ) -> None:
        self._nodes = LocalRoster()
        self.sharding = Sharding(shards)
        self._arrivals = 0
        self.shards: list[ShardCore] = []
        for _ in range(shards):
            table = NodeTable(PodClasses())
            self.shards.append(ShardCore(table, profiles_of(table.classes)))
        classes = PodClasses()
        self.profiles = profiles_of(classes)
        self.cycle = ShardedCycle(
            classes, self.profiles, tie_break, name_best=name_best, narrower=narrower
        )

    def add_nodes(self, nodes: Iterable[NodeFacts]) -> None:
        for facts in nodes:
            self.shards[self.sharding.place(facts)].table.add_node(facts, self._arrivals)
            self._nodes.add(facts, self._arrivals)
            self._arrivals += 1

    def remove_node(self, name: str) -> None:
        self.shards[self.sharding.remove(name)].table.remove_node(name)
        self._nodes.remove(name)

    def add_pod(self, node_name: str, facts: PodFacts) -> None:
        """A pod is on a node: bound before, or just now."""
        table = self._table_of(node_name)
        table.add_pod(node_name, table.classes.info(facts))

    def remove_pod(self, node_name: str, facts: PodFacts) -> None:
        table = self._table_of(node_name)
        table.remove_pod(node_name, table.classes.info(facts))

    def _table_of(self, node_name: str) -> NodeTable:
        return self.shards[self.sharding.shard_of(node_name)].table

    def _take_snapshot(self) -> None:
        for shard in self.shards:
            take_snapshot(shard.table, self._arrivals)

    def decide(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        """Decisions for the first pods of a batch, as many as one evaluation settles (≥ 1)."""
        pods = self.cycle.together(pods)
        batch = self.begin(pods)
        decisions: list[Decision] = []
        for pod in pods:
            self._take_snapshot()
            decision = batch.decide(pod)
            if decision is None:
                break
            decisions.append(decision)
            if decision.node_name is not None:
                self.add_pod(decision.node_name, pod.info.facts)
                if is_behind(
                    self._table_of(decision.node_name), decision.node_name, self._arrivals
                ):
                    # The next snapshot of this row says more than what was asked of the shards.
                    break
        self.cycle.settled(len(pods), len(decisions))
        assert decisions or not pods, "a fresh evaluation settles at least one pod"
        return decisions

    def begin(self, pods: Sequence[PodInCycle]) -> BatchRun:
        """All rounds with the shards, up to a batch that is ready to decide."""
        self._take_snapshot()
        if any(map(self.cycle.narrows, pods)):
            self.cycle.roster = self._nodes.take()
        request = self.cycle.begin(pods)
        for _ in range(MAX_ROUNDS):
            answers = [self._ask(shard, request) for shard in self.shards]
            following = self.cycle.absorb(answers)
            if isinstance(following, BatchRun):
                return following
            if isinstance(following, NarrowTask):
                following = self.cycle.narrowed(following.run())
            request = following
        raise AssertionError("the shards never agreed")

    def explain(self, pod: PodInCycle) -> Explanation:
        """Every node's answer for one pod, as all shards give it; places nothing."""
        batch = self.begin([pod])
        ask = self.cycle.merged_ask(pod.signature)
        node_count = sum(len(shard.table) for shard in self.shards)
        views = [shard.view(ask, node_count) for shard in self.shards]
        arrived = [from_wire(ShardView, unpack(pack(to_wire(view)))) for view in views]
        profile = self.profiles[pod.info.facts.scheduler_name]
        filters, scores = batch.summaries(pod.signature)
        narrowing = self.cycle.narrowing(pod.signature)
        return explain(profile, pod, arrived, filters, scores, narrowing)

    def _ask(self, shard: ShardCore, request: EvaluateRequest) -> ShardAnswer:
        arrived = from_wire(EvaluateRequest, unpack(pack(to_wire(request))))
        answer = shard.evaluate(arrived)
        return from_wire(ShardAnswer, unpack(pack(to_wire(answer))))
