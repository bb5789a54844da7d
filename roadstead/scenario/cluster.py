"""Everything of a scenario's cluster but its nodes: pods of the manifests, budgets, namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from roadstead.config.scenario.values import Percentage, percentage
from roadstead.facts.cluster import NAME_LABEL, ClusterFacts
from roadstead.facts.compile import DEFAULT_NAMESPACE, compile_node, name_in_errors
from roadstead.facts.compile_devices import compile_claim_spec
from roadstead.facts.devices import ClaimSpec, DevicesFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.parse_selectors import SelectorError, parse_label_selector
from roadstead.facts.pod import Labels
from roadstead.facts.pod_groups import pod_groups
from roadstead.inputs.cluster_facts import cluster_facts
from roadstead.inputs.loaded import split_pods
from roadstead.inputs.manifest_inputs import (
    compile_pods,
    lost_notes,
    manifest_notes,
    on_known_nodes,
)
from roadstead.manifests import Manifests
from roadstead.manifests.creation import create
from roadstead.manifests.templates import namespaced_name
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.objects import PodDisruptionBudget
from roadstead.scenario.controllers import ControllerObjects, share_of
from roadstead.scenario.templates import Templates
from roadstead.simulator.scenario import BudgetPlan, InitialPod
from roadstead.simulator.share import Share

COUNT_MAX: Final = 2**31 - 1
"""Upper limit of a budget's minAvailable and maxUnavailable: int32, as upstream."""


@dataclass(frozen=True, slots=True)
class ScenarioCluster:
    """Facts of the cluster, its pods at the start and its budgets. notes: for the user."""

    facts: ClusterFacts
    pods: tuple[InitialPod, ...]
    budgets: tuple[BudgetPlan, ...]
    notes: tuple[str, ...]


def manifest_nodes(cluster: Manifests) -> list[NodeFacts]:
    """Return the nodes of manifests, sorted by name as by the API server."""
    nodes = sorted(cluster.nodes, key=lambda each: each.metadata.name.encode())
    return [compile_node(each) for each in nodes]


def compile_cluster_part(
    manifests: Manifests,
    added: ControllerObjects,
    namespaces: Sequence[tuple[str, Labels]],
    nodes: Iterable[NodeFacts],
    templates: Templates,
    trace_devices: DevicesFacts,
) -> ScenarioCluster:
    """Compile the manifests with the objects that the workload adds.

    added: those objects. namespaces, trace_devices: those of traces. nodes: all at the start.
    templates: interns facts, so that equal pods of manifests and workload share one object. Raises
    InputError.
    """
    with_added = replace(manifests, stateful_sets=(*manifests.stateful_sets, *added.stateful_sets))
    created = create(manifests, manifests.pods, added.claims)
    running, pending = split_pods(compile_pods(created.pods, templates.served))
    # Pods whose node does not exist are left out, as upstream, with a note.
    placed, lost = on_known_nodes(running, {node.name for node in nodes})
    lifecycle_of = {
        (pod.metadata.namespace or DEFAULT_NAMESPACE, pod.metadata.name): templates.lifecycle_of(
            pod
        )
        for pod in created.pods
    }
    pods = [
        InitialPod(
            identity,
            templates.intern(facts),
            node,
            lifecycle_of[identity.namespace, identity.name],
        )
        for identity, facts, node in (*placed, *((*each, "") for each in pending))
    ]
    facts = cluster_facts(
        with_added,
        created_replica_sets=added.replica_sets,
        claims=created.claims,
        pods=created.pods,
        device_claims=created.device_claims,
    )
    return ScenarioCluster(
        facts=replace(
            facts,
            namespaces=_joined(facts.namespaces, added.namespaces, namespaces),
            pod_groups=pod_groups(manifests.pod_groups, (each for _, each, _ in placed)),
            devices=replace(
                facts.devices,
                slices=(*facts.devices.slices, *trace_devices.slices),
                classes=(*facts.devices.classes, *trace_devices.classes),
                templates=(*_claim_templates(manifests), *trace_devices.templates),
            ),
        ),
        pods=tuple(pods),
        budgets=tuple(_budget(each) for each in manifests.pod_disruption_budgets),
        notes=(
            *lost_notes(lost, pending=0),
            *manifest_notes((manifests,), has_nodes=True),
            *created.notes,
            *(
                f"Not created: {name_in_errors(each.manifest)}: {each.reason}"
                for each in created.refused
            ),
        ),
    )


def _joined(
    of_manifests: Sequence[tuple[str, Labels]],
    named: Iterable[str],
    of_traces: Iterable[tuple[str, Labels]],
) -> tuple[tuple[str, Labels], ...]:
    """Join namespaces; those of manifests are first and override others of the same name.

    named: names of the namespaces of the workload's pods; such a one has only the label with its
    name, unless manifests or traces have it, too.
    """
    unlabelled = ((name, ((NAME_LABEL, name),)) for name in sorted(named))
    joined: dict[str, Labels] = dict(of_manifests)
    for name, labels in (*of_traces, *unlabelled):
        joined.setdefault(name, labels)
    return tuple(joined.items())


def _budget(budget: PodDisruptionBudget) -> BudgetPlan:
    try:
        selector = parse_label_selector(budget.spec.selector)
    except SelectorError as error:
        raise InputError(str(error), obj=name_in_errors(budget), field="spec.selector") from error
    return BudgetPlan(
        budget.metadata.namespace or DEFAULT_NAMESPACE,
        budget.metadata.name,
        selector,
        min_available=_share(budget, "minAvailable", budget.spec.min_available),
        max_unavailable=_share(budget, "maxUnavailable", budget.spec.max_unavailable),
    )


def _share(budget: PodDisruptionBudget, field: str, value: int | str | None) -> Share | None:
    if value is None:
        return None
    try:
        number = percentage(value)
    except ValueError as error:
        raise _refused(budget, field, value, str(error)) from error
    if isinstance(number, Percentage):
        return share_of(number, Share())
    if not isinstance(number, int) or not 0 <= number <= COUNT_MAX:
        raise _refused(budget, field, value, f"must be 0 to {COUNT_MAX}")
    return Share(number)


def _refused(budget: PodDisruptionBudget, field: str, value: object, problem: str) -> InputError:
    where = f"spec.{field}"
    return InputError(problem, obj=name_in_errors(budget), field=where, value=cut_short(value))


def _claim_templates(manifests: Manifests) -> tuple[tuple[str, ClaimSpec], ...]:
    """Return the spec of each ResourceClaimTemplate, by `namespace/name`."""
    return tuple(
        ("/".join(namespaced_name(each)), compile_claim_spec(each.spec.spec))
        for each in manifests.resource_claim_templates
    )
