"""Manifests of pods and nodes in requests to extenders, printed from facts.

Facts hold what scheduling reads, not the whole manifest: annotations, digests of images and the
requests of single containers are missing. The first container has all of the pod's requests.
"""

from __future__ import annotations

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.facts.printing import Json, affinity_part, filled, node_parts, tolerations_part


def node_manifest(facts: NodeFacts) -> Json:
    """Return a v1.Node."""
    metadata = filled({"name": facts.name, "labels": dict(facts.labels)})
    return {"metadata": metadata, **node_parts(facts, _quantity)}


def pod_manifest(identity: PodIdentity, facts: PodFacts) -> Json:
    """Return a v1.Pod."""
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
        "affinity": affinity_part(facts),
        "tolerations": tolerations_part(facts),
    }
    always = {
        "schedulerName": facts.scheduler_name,
        "priority": facts.priority,
        "preemptionPolicy": facts.preemption_policy,
    }
    status = filled({"phase": "Pending", "nominatedNodeName": facts.nominated_node_name})
    return {"metadata": filled(metadata), "spec": filled(spec) | always, "status": status}


def _containers(facts: PodFacts) -> list[Json]:
    requests = {name: _quantity(name, amount) for name, amount in facts.requests}
    first: Json = {"name": "container-0", "resources": {"requests": requests}}
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


def _quantity(name: str, amount: int) -> str:
    return f"{amount}m" if name == "cpu" else str(amount)
