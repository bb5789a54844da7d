"""Daemon sets: one pod for each node that may run it (upstream pkg/controller/daemon)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import partial
from typing import Final

from roadstead.facts.compile import DEFAULT_NAMESPACE, compile_pod
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.taints import tolerated
from roadstead.manifests.names import PodNames, joined_name, template_hash
from roadstead.manifests.templates import pod_of
from roadstead.protocol.generated_names import suffix_of
from roadstead.protocol.objects import (
    Affinity,
    DaemonSet,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    SelectorRequirement,
    Toleration,
)

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
_CONDITION_PREFIX = "node.kubernetes.io/"
_CONTROLLER_TOLERATIONS = (
    Toleration(key=f"{_CONDITION_PREFIX}not-ready", operator="Exists", effect=NO_EXECUTE),
    Toleration(key=f"{_CONDITION_PREFIX}unreachable", operator="Exists", effect=NO_EXECUTE),
    Toleration(key=f"{_CONDITION_PREFIX}disk-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key=f"{_CONDITION_PREFIX}memory-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key=f"{_CONDITION_PREFIX}pid-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key=f"{_CONDITION_PREFIX}unschedulable", operator="Exists", effect=NO_SCHEDULE),
)
# Added only to pods of the host network.
_NETWORK_UNAVAILABLE = Toleration(
    key=f"{_CONDITION_PREFIX}network-unavailable", operator="Exists", effect=NO_SCHEDULE
)


def daemon_pods(
    daemon: DaemonSet, nodes: Sequence[NodeFacts], nodes_with_pod: Set[str], names: PodNames
) -> Iterator[Pod]:
    """Yield a pod for each eligible node that has none of this daemon set.

    nodes_with_pod: names of the nodes that have one.
    """
    namespace = daemon.metadata.namespace or DEFAULT_NAMESPACE
    template = daemon_pod(daemon)
    _, facts = compile_pod(template)
    for node in nodes:
        if node.name not in nodes_with_pod and should_run(facts, node):
            name = names.allocate(namespace, partial(_name, daemon.metadata.name, node.name))
            yield _pod_for_node(template, name, node.name)


def _name(daemon: str, node: str, collisions: int) -> str:
    text = f"{daemon}/{node}/{collisions}" if collisions else f"{daemon}/{node}"
    return joined_name(daemon, suffix_of(text))


def node_of(pod: Pod) -> str:
    """Return the node on which a daemon pod runs, or the one that its affinity names."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    names = [
        value
        for term in (required.node_selector_terms if required else ())
        for each in term.match_fields
        for value in each.values or ()
    ]
    return pod.spec.node_name or (names[0] if names else "")


def daemon_pod(daemon: DaemonSet) -> Pod:
    """Return a pod of the daemon set that is not for a certain node yet."""
    return _with_controller_tolerations(_pod_from_template(daemon))


def _pod_from_template(daemon: DaemonSet) -> Pod:
    labels = {
        "controller-revision-hash": template_hash(daemon.spec.template),
        "pod-template-generation": "1",
    }
    return pod_of(daemon, daemon.spec.template, daemon.metadata.name, labels)


def _with_controller_tolerations(pod: Pod) -> Pod:
    """Add the tolerations that the controller adds (AddOrUpdateDaemonPodTolerations)."""
    added = [*_CONTROLLER_TOLERATIONS, *([_NETWORK_UNAVAILABLE] if pod.spec.host_network else [])]
    before = pod.spec.tolerations
    tolerations = (*before, *(each for each in added if each not in before))
    return pod.model_copy(update={"spec": pod.spec.model_copy(update={"tolerations": tolerations})})


def should_run(pod: PodFacts, node: NodeFacts) -> bool:
    """Whether a daemon set with this pod runs one on the node (NodeShouldRunDaemonPod)."""
    return _selects_node(pod, node) and _tolerates(pod, node, (NO_SCHEDULE, NO_EXECUTE))


def may_continue(pod: PodFacts, node: NodeFacts) -> bool:
    """Whether a daemon set leaves such a pod on the node (also of NodeShouldRunDaemonPod)."""
    return _selects_node(pod, node) and _tolerates(pod, node, (NO_EXECUTE,))


def _selects_node(pod: PodFacts, node: NodeFacts) -> bool:
    if pod.node_name not in ("", node.name):
        return False
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in pod.node_selector):
        return False
    terms = pod.required_node_terms
    return terms is None or any(term.matches(labels, node.name) for term in terms)


def _tolerates(pod: PodFacts, node: NodeFacts, effects: tuple[str, ...]) -> bool:
    return all(
        tolerated(taint, pod.tolerations) for taint in node.taints if taint.effect in effects
    )


def _pod_for_node(pod: Pod, name: str, node: str) -> Pod:
    """Return the pod for one node: its required node affinity becomes the node's name."""
    term = NodeSelectorTerm(
        match_fields=(SelectorRequirement(key="metadata.name", operator="In", values=[node]),)
    )
    affinity = pod.spec.affinity or Affinity()
    node_affinity = (affinity.node_affinity or NodeAffinity()).model_copy(
        update={
            "required_during_scheduling_ignored_during_execution": NodeSelector(
                node_selector_terms=(term,)
            )
        }
    )
    spec = pod.spec.model_copy(
        update={"affinity": affinity.model_copy(update={"node_affinity": node_affinity})}
    )
    metadata = pod.metadata.model_copy(update={"name": name})
    return pod.model_copy(update={"spec": spec, "metadata": metadata})
