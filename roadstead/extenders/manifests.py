"""Pods and nodes as an extender is told of them: manifests of what scheduling knows.

Facts hold all that scheduling looks at, not all that was written: annotations, images' digests and
the split of a pod's requests over its containers are not among it. A pod's requests stand in its
first container.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Toleration

Json = dict[str, object]


def node_manifest(facts: NodeFacts) -> Json:
    """A v1.Node."""
    spec: Json = {}
    if facts.taints:
        spec["taints"] = [
            _filled({"key": taint.key, "value": taint.value, "effect": taint.effect})
            for taint in facts.taints
        ]
    if facts.unschedulable:
        spec["unschedulable"] = True
    allocatable = {**_quantities(facts.allocatable), "pods": str(facts.allocatable_pods)}
    status: Json = {"allocatable": allocatable, "capacity": allocatable}
    if facts.images:
        status["images"] = [{"names": [name], "sizeBytes": size} for name, size in facts.images]
    return {
        "metadata": _filled({"name": facts.name, "labels": dict(facts.labels)}),
        "spec": spec,
        "status": status,
    }


def pod_manifest(identity: PodIdentity, facts: PodFacts) -> Json:
    """A v1.Pod."""
    metadata = {
        "name": identity.name,
        "namespace": identity.namespace,
        "uid": identity.uid,
        "labels": dict(facts.labels),
    }
    spec = {
        "containers": _containers(facts),
        "nodeName": facts.node_name,
        "nodeSelector": dict(facts.node_selector),
        "affinity": _affinity(facts),
        "tolerations": [_toleration(each) for each in facts.tolerations],
    }
    always = {
        "schedulerName": facts.scheduler_name,
        "priority": facts.priority,
        "preemptionPolicy": facts.preemption_policy,
    }
    status = _filled({"phase": "Pending", "nominatedNodeName": facts.nominated_node_name})
    return {"metadata": _filled(metadata), "spec": _filled(spec) | always, "status": status}


def _containers(facts: PodFacts) -> list[Json]:
    first: Json = {"name": "container-0", "resources": {"requests": _quantities(facts.requests)}}
    if facts.host_ports:
        first["ports"] = [
            {
                "hostIP": port.ip,
                "hostPort": port.port,
                "containerPort": port.port,
                "protocol": port.protocol,
            }
            for port in facts.host_ports
        ]
    others: list[Json] = [{"name": f"container-{i}"} for i in range(1, len(facts.images))]
    containers = [first, *others]
    for container, image in zip(containers, facts.images, strict=False):
        container["image"] = image
    return containers


def _affinity(facts: PodFacts) -> Json:
    node: Json = {}
    if facts.required_node_terms is not None:
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [_term(term) for term in facts.required_node_terms]
        }
    if facts.preferred_node_terms:
        node["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": each.weight, "preference": _term(each.term)}
            for each in facts.preferred_node_terms
        ]
    return {"nodeAffinity": node} if node else {}


def _term(term: NodeSelectorTerm) -> Json:
    return _filled(
        {
            "matchExpressions": [_requirement(each) for each in term.expressions],
            "matchFields": [_requirement(each) for each in term.fields],
        }
    )


def _requirement(requirement: Requirement) -> Json:
    return {
        "key": requirement.key,
        "operator": requirement.operator,
        "values": list(requirement.values),
    }


def _toleration(toleration: Toleration) -> Json:
    return _filled(
        {
            "key": toleration.key,
            "operator": toleration.operator,
            "value": toleration.value,
            "effect": toleration.effect,
        }
    )


def _quantities(amounts: Iterable[tuple[str, int]]) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts}


def _filled(fields: Mapping[str, object]) -> Json:
    """The fields that say something, as `omitempty` has it."""
    return {name: value for name, value in fields.items() if value}
