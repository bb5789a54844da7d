"""LocalShards: all shards in this process, every message packed and unpacked as between actors.

The ground for parity runs, property tests and `explain`: the sharded protocol without a runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from roadstead.cycle.batch import Accelerator, BatchRun, Decision, PodInCycle
from roadstead.cycle.explain import Explanation, explain, with_post_filter
from roadstead.cycle.messages import DryRunAsk, EvaluateRequest, ShardAnswer, ShardView
from roadstead.cycle.narrowing import LocalRoster, Narrower
from roadstead.cycle.preempting import conclude, wanted
from roadstead.cycle.preempting_outside import ask_extenders
from roadstead.cycle.shard import ShardCore
from roadstead.cycle.sharded import MAX_ROUNDS, NarrowTask, ShardedCycle
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import NOBODY, PodFacts, PodIdentity
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.framework.victims import DryRun, Tried
from roadstead.nodes.pod_info import PodClasses
from roadstead.nodes.sharding import Sharding
from roadstead.nodes.snapshots import is_behind, take_snapshot
from roadstead.nodes.table import NodeTable
from roadstead.preemption.dry_run import merge
from roadstead.protocol.codec import from_wire, pack, to_wire, unpack
from roadstead.storage import StorageChange, VolumeLedger

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
        accelerator: Accelerator | None = None,
    ) -> None:
        self._nodes = LocalRoster()
        self.sharding = Sharding(shards)
        self.tie_break = tie_break
        self._arrivals = 0
        self.shards: list[ShardCore] = []
        for _ in range(shards):
            table = NodeTable(PodClasses())
            self.shards.append(ShardCore(table, profiles_of(table.classes)))
        classes = PodClasses()
        self.profiles = profiles_of(classes)
        self.cycle = ShardedCycle(
            classes,
            self.profiles,
            tie_break,
            name_best=name_best,
            narrower=narrower,
            accelerator=accelerator,
        )
        self._volumes = VolumeLedger(next(iter(self.profiles.values())).storage)

    def add_nodes(self, nodes: Iterable[NodeFacts]) -> None:
        for facts in nodes:
            self.shards[self.sharding.place(facts)].table.add_node(facts, self._arrivals)
            self._nodes.add(facts, self._arrivals)
            self._arrivals += 1

    def remove_node(self, name: str) -> None:
        self.shards[self.sharding.remove(name)].table.remove_node(name)
        self._nodes.remove(name)

    def add_pod(self, node_name: str, facts: PodFacts, who: PodIdentity = NOBODY) -> None:
        """A pod is on a node: bound before, or just now."""
        table = self._table_of(node_name)
        info = table.classes.info(facts)
        table.add_pod(node_name, info, uid=who.uid, key=who.key, started_s=who.started_s)

    def remove_pod(self, node_name: str, facts: PodFacts, who: PodIdentity = NOBODY) -> None:
        table = self._table_of(node_name)
        table.remove_pod(node_name, table.classes.info(facts), uid=who.uid)

    def nominate(self, node_name: str, facts: PodFacts) -> None:
        """A pod that waits is to come to a node, be it known or not."""
        for shard in self.shards:
            shard.table.nominate(node_name, shard.table.classes.info(facts))

    def withdraw(self, node_name: str, facts: PodFacts) -> None:
        """A nomination ends."""
        for shard in self.shards:
            shard.table.withdraw(node_name, shard.table.classes.info(facts))

    def forget(self, pod: PodInCycle, node_name: str) -> None:
        """Takes back a placement, and the volumes that it took."""
        table = self._table_of(node_name)
        table.remove_pod(node_name, table.classes.info(pod.info.facts), uid=pod.uid)
        self._tell(self._volumes.forget(pod.uid))

    def _take_volumes(self, pod: PodInCycle, node_name: str) -> None:
        """Binds a placed pod's claims, here and on every shard."""
        if not self.profiles[pod.info.facts.scheduler_name].binds_volumes:
            return
        table = self._table_of(node_name)
        node = table.facts(table.row_of(node_name))
        reserved = self._volumes.assume(pod.uid, pod.info.facts, node)
        if reserved is not None:
            self._tell(reserved.changes)

    def _tell(self, changes: Iterable[StorageChange]) -> None:
        for change in changes:
            for shard in self.shards:
                shard.storage.apply(from_wire(StorageChange, unpack(pack(to_wire(change)))))

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
        taken: list[tuple[PodInCycle, str]] = []
        run: list[Decision] = []
        for pod in pods:
            self._take_snapshot()
            run = run or batch.decide_run(pods[len(decisions) :])[::-1]
            decision = run.pop() if run else batch.decide(pod)
            if decision is None:
                break
            decision, has_tried = self._after(decision)
            decisions.append(decision)
            if has_tried:
                # What follows from it changes the tables on which the next pod is decided.
                break
            if decision.node_name is not None:
                self._place(decision.node_name, pod)
                taken.append((pod, decision.node_name))
                if is_behind(
                    self._table_of(decision.node_name), decision.node_name, self._arrivals
                ):
                    # The next snapshot of this row says more than what was asked of the shards.
                    break
        for pod, node_name in taken:
            self._take_volumes(pod, node_name)
        self.cycle.settled(len(pods), len(decisions))
        assert decisions or not pods, "a fresh evaluation settles at least one pod"
        return decisions

    def _place(self, node_name: str, pod: PodInCycle) -> None:
        facts = pod.info.facts
        table = self._table_of(node_name)
        table.add_pod(node_name, table.classes.info(facts), uid=pod.uid, key=pod.key)
        if facts.nominated_node_name:
            self.withdraw(facts.nominated_node_name, facts)

    def _after(self, decision: Decision) -> tuple[Decision, bool]:
        """The decision with PostFilter's answer, and whether preemption was tried for it."""
        if decision.diagnosis is None:
            return decision, False
        pod, diagnosis = decision.pod, decision.diagnosis
        profile = self.profiles[pod.info.facts.scheduler_name]
        ask = wanted(profile, pod, diagnosis, self.tie_break)
        tried = None if ask is None else self._try(pod, ask)
        result = conclude(profile, pod, diagnosis, self.tie_break, tried)
        return decision._replace(post_filter=result), ask is not None

    def _try(self, pod: PodInCycle, ask: DryRun) -> Tried:
        question = pack(to_wire(self.cycle.dry_run_ask(pod.signature, ask)))
        answers = [each.dry_run(from_wire(DryRunAsk, unpack(question))) for each in self.shards]
        parts = [from_wire(Tried, unpack(pack(to_wire(each)))) for each in answers]
        return ask_extenders(self.cycle.extenders, pod, merge(parts, ask))

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
        found = explain(profile, pod, arrived, filters, scores, narrowing, self.tie_break)
        if found.dry_run is None:
            return found
        tried = self._try(pod, found.dry_run)
        return with_post_filter(found, profile, pod, self.tie_break, tried)

    def _ask(self, shard: ShardCore, request: EvaluateRequest) -> ShardAnswer:
        arrived = from_wire(EvaluateRequest, unpack(pack(to_wire(request))))
        answer = shard.evaluate(arrived)
        return from_wire(ShardAnswer, unpack(pack(to_wire(answer))))
