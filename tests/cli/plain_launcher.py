"""A launcher without actors: one table, pods one after another, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roadstead.config.settings import Settings
from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.cycle.explain import Explained, Explanation
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.facts.pod import Pod
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.protocol.errors import UnsupportedError
from roadstead.report.result import PendingPod, PlacedPod
from roadstead.run import Progress, RunInputs, RunOutcome, RunPlan, build_profiles

ReportProgress = Callable[[Progress], None]


class PlainLauncher:
    """A launcher that keeps its arguments: `plan` and `inputs` of the last run."""

    plan: RunPlan
    inputs: RunInputs

    def room_for_workers(self, settings):
        return None

    def prepare(self, settings: Settings, log_dir: str) -> None:
        self.prepared = settings

    def run(self, inputs: RunInputs, plan: RunPlan, progress: ReportProgress) -> RunOutcome:
        self.plan, self.inputs = plan, inputs
        world = World(inputs, plan)
        placements: list[PlacedPod] = []
        pending: list[PendingPod] = []
        order = sorted(inputs.pending, key=lambda pod: -pod[1].priority)
        for pod in order:
            counts = (len(placements), len(pending), len(order))
            progress(Progress("scheduling", *counts))
            decision = world.decide(pod)
            if decision.node_name is not None:
                placements.append(PlacedPod(pod[0].key, pod[0].uid, decision.node_name))
            else:
                pending.append(_pending(pod, decision))
        progress(Progress("scheduling", len(placements), len(pending), len(order)))
        timings_s = {"start actors": 0.5, "schedule": 0.25}
        return RunOutcome(tuple(placements), tuple(pending), 0.25, timings_s)

    def finish(self, plan: RunPlan) -> None:
        self.finished = plan

    def explain(
        self, inputs: RunInputs, plan: RunPlan, pod: Pod, progress: ReportProgress
    ) -> Explanation:
        self.plan, self.inputs = plan, inputs
        world = World(inputs, plan)
        for each in inputs.pending:
            world.decide(each)
        return world.cycle.explain(world.in_cycle(pod))

    def explain_pending(
        self, inputs: RunInputs, plan: RunPlan, pods: Sequence[Pod], progress: ReportProgress
    ) -> tuple[Explained, ...]:
        self.plan, self.inputs = plan, inputs
        world = World(inputs, plan)
        placed = {
            each[0].uid for each in inputs.pending if world.decide(each).node_name is not None
        }
        return tuple(
            Explained((pod,), world.cycle.explain(world.in_cycle(pod)))
            for pod in pods
            if pod[0].uid not in placed
        )


class World:
    """The inputs as a table, and the profiles of the plan."""

    def __init__(self, inputs: RunInputs, plan: RunPlan) -> None:
        self.classes = PodClasses()
        self.profiles = build_profiles(plan, self.classes)
        table = NodeTable(self.classes)
        for node in inputs.nodes:
            table.add_node(node)
        for _, facts, name in inputs.running:
            table.add_pod(name, self.classes.pod_class(facts))
        tie_break = TieBreak(plan.settings.tie_break, plan.settings.seed)
        self.cycle = PlainCycle(table, self.profiles, tie_break)

    def in_cycle(self, pod: Pod) -> PodInCycle:
        identity, facts = pod
        pod_class = self.classes.pod_class(facts)
        signature = self.profiles[facts.scheduler_name].signature_of(pod_class, identity.uid)
        return PodInCycle(identity.uid, identity.key, pod_class, signature)

    def decide(self, pod: Pod) -> Decision:
        try:
            return self.cycle.decide(self.in_cycle(pod))
        except UnsupportedError as missing:
            obj = f'Pod "{pod[0].key}"'
            raise UnsupportedError(missing.plugin, obj, missing.field) from missing


def _pending(pod: Pod, decision: Decision) -> PendingPod:
    diagnosis = decision.diagnosis
    assert diagnosis is not None
    reasons = tuple(sorted(diagnosis.reasons().items()))
    return PendingPod(pod[0].key, pod[0].uid, diagnosis.message(), reasons, diagnosis.plugins)
