"""Explanations of pods on the cluster after a run, on one table and without actors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.explain import Explained, Explanation
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.facts.pod import Pod
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.protocol.errors import InputError, UnsupportedError, cut_short
from roadstead.run import (
    RunInputs,
    RunOutcome,
    RunPlan,
    build_node_search,
    build_profiles,
)


def explain_pod(
    inputs: RunInputs, outcome: RunOutcome | None, plan: RunPlan, pod: Pod
) -> Explanation:
    """Return whether and why a pod fits, for every node, without placing it.

    outcome: of the run of `inputs`; None if nothing was scheduled. Raises InputError for a pod of
    no profile.
    """
    return _Explainer(inputs, outcome, plan).explain(pod)


def explain_pending(
    inputs: RunInputs, outcome: RunOutcome | None, plan: RunPlan, pods: Sequence[Pod]
) -> tuple[Explained, ...]:
    """Explain, for every node, those of the pods that the run did not place.

    Pods with the same facts are explained once. A pod of no profile, or that a plugin does not
    support, has an error in place of an explanation.
    """
    placed = {each.uid for each in outcome.placements} if outcome is not None else set()
    explainer = _Explainer(inputs, outcome, plan)
    groups: dict[Hashable, list[Pod]] = {}
    for pod in pods:
        if pod[0].uid not in placed:
            groups.setdefault(explainer.group_of(pod), []).append(pod)
    return tuple(explainer.explain_group(each) for each in groups.values())


class _Explainer:
    """The cluster after a run, on the table of a cycle on the reference path."""

    def __init__(self, inputs: RunInputs, outcome: RunOutcome | None, plan: RunPlan) -> None:
        self._classes = PodClasses()
        self._profiles = build_profiles(plan, self._classes)
        tie_break = TieBreak(plan.settings.tie_break, plan.settings.seed)
        table, node_search = NodeTable(self._classes), build_node_search(plan)
        self._cycle = PlainCycle(table, self._profiles, tie_break, node_search=node_search)
        _fill(self._cycle, inputs, outcome, self._profiles)

    def group_of(self, pod: Pod) -> Hashable:
        """Return the same value for pods that have the same explanation.

        The signature alone is not enough: it leaves out fields that only PreEnqueue or preemption
        reads.
        """
        identity, facts = pod
        profile = self._profiles.get(facts.scheduler_name)
        pod_class = self._classes.pod_class(facts)
        return pod_class, None if profile is None else profile.signature_of(pod_class, identity.uid)

    def explain(self, pod: Pod) -> Explanation:
        """Explain one pod. InputError for a pod of no profile."""
        try:
            return self._cycle.explain(_in_cycle(pod, self._classes, self._profiles))
        except UnsupportedError as failure:
            # A plugin reads a pod's facts, which do not contain its name.
            obj = failure.obj or f'Pod "{pod[0].key}"'
            raise UnsupportedError(failure.plugin, obj, failure.field) from failure

    def explain_group(self, pods: Sequence[Pod]) -> Explained:
        """Explain the first pod of a group (`group_of`), or return why that fails."""
        try:
            return Explained(tuple(pods), self.explain(pods[0]))
        except InputError as failure:
            error = f"{failure.field}: {failure.value} {failure.rule}"
        except UnsupportedError as failure:
            error = f"{failure.field}: is not supported by the plugin {failure.plugin}"
        return Explained(tuple(pods), None, error)


def _in_cycle(pod: Pod, classes: PodClasses, profiles: Mapping[str, Profile]) -> PodInCycle:
    """Return a pod in the form that the cycle decides. InputError for a pod of no profile."""
    identity, facts = pod
    profile = profiles.get(facts.scheduler_name)
    if profile is None:
        names = ", ".join(sorted(profiles))
        raise InputError(
            f"is not a profile of the configuration (must be one of {names})",
            obj=f'Pod "{identity.key}"',
            field="spec.schedulerName",
            value=cut_short(facts.scheduler_name),
        )
    pod_class = classes.pod_class(facts)
    return PodInCycle(
        identity.uid, identity.key, pod_class, profile.signature_of(pod_class, identity.uid)
    )


def _fill(
    cycle: PlainCycle,
    inputs: RunInputs,
    outcome: RunOutcome | None,
    profiles: Mapping[str, Profile],
) -> None:
    """Put nodes, pods and claims on the cycle's table as they are after the run."""
    table = cycle.table
    for each in inputs.nodes:
        table.add_node(each)
    evicted = {each.uid for each in outcome.preempted} if outcome is not None else set()
    for who, facts, node_name in inputs.running:
        if who.uid not in evicted and table.has_node(node_name):
            pod_class = table.classes.pod_class(facts)
            table.add_pod(node_name, pod_class, uid=who.uid, key=who.key, started_s=who.started_s)
    placed = {each.uid: each.node for each in outcome.placements} if outcome is not None else {}
    for who, facts in inputs.pending:
        node_name = placed.get(who.uid, "")
        if node_name:
            pod = _in_cycle((who, facts), table.classes, profiles)
            table.add_pod(node_name, pod.pod_class, uid=who.uid, key=who.key)
            cycle.bind_claims(pod, node_name)
        elif facts.nominated_node_name:
            table.nominate(facts.nominated_node_name, table.classes.pod_class(facts))
