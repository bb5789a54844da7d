"""Explain one pod on the cluster as a run left it, on one table and without actors."""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.explain import Explanation
from roadstead.cycle.plain import PlainCycle
from roadstead.facts.pod import Pod
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_info import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.protocol.errors import InputError, cut_short
from roadstead.run import (
    RunInputs,
    RunOutcome,
    RunPlan,
    build_narrower,
    build_profiles,
)


def explain_pod(
    inputs: RunInputs, outcome: RunOutcome | None, plan: RunPlan, pod: Pod
) -> Explanation:
    """What every node says of a pod; places nothing.

    outcome: of the run of `inputs`; None where nothing was scheduled. Raises InputError for a pod
    of no profile.
    """
    classes = PodClasses()
    profiles = build_profiles(plan, classes)
    asked = _in_cycle(pod, classes, profiles)
    tie_break = TieBreak(plan.settings.tie_break, plan.settings.seed)
    narrower = build_narrower(plan)
    cycle = PlainCycle(NodeTable(classes), profiles, tie_break, narrower=narrower)
    _fill(cycle, inputs, outcome, profiles)
    return cycle.explain(asked)


def _in_cycle(pod: Pod, classes: PodClasses, profiles: Mapping[str, Profile]) -> PodInCycle:
    identity, facts = pod
    profile = profiles.get(facts.scheduler_name)
    if profile is None:
        raise InputError(
            "is the name of no profile of the configuration",
            obj=f'Pod "{identity.key}"',
            field="spec.schedulerName",
            value=cut_short(facts.scheduler_name),
        )
    info = classes.info(facts)
    return PodInCycle(identity.uid, identity.key, info, profile.class_of(info, identity.uid))


def _fill(
    cycle: PlainCycle,
    inputs: RunInputs,
    outcome: RunOutcome | None,
    profiles: Mapping[str, Profile],
) -> None:
    """Put nodes, pods and claims on the cycle's table as they stand after the run."""
    table = cycle.table
    for each in inputs.nodes:
        table.add_node(each)
    evicted = {each.uid for each in outcome.preempted} if outcome is not None else set()
    for who, facts, node_name in inputs.running:
        if who.uid not in evicted and table.has_node(node_name):
            info = table.classes.info(facts)
            table.add_pod(node_name, info, uid=who.uid, key=who.key, started_s=who.started_s)
    placed = {each.uid: each.node for each in outcome.placements} if outcome is not None else {}
    for who, facts in inputs.pending:
        node_name = placed.get(who.uid, "")
        if node_name:
            pod = _in_cycle((who, facts), table.classes, profiles)
            table.add_pod(node_name, pod.info, uid=who.uid, key=who.key)
            cycle.bind_volumes(pod, node_name)
        elif facts.nominated_node_name:
            table.nominate(facts.nominated_node_name, table.classes.info(facts))
