"""A trace printed as Kubernetes manifests: one `List` of Namespaces, Nodes and Pods.

Times become annotations, since a manifest has no place for them.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Literal

from roadstead.config.yaml_text import yaml_text
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import HostPort, PodFacts, PodIdentity
from roadstead.facts.printing import Json, affinity_part, filled, node_parts, tolerations_part
from roadstead.fleet.trace import NEVER_MS, S_MS, Trace
from roadstead.protocol.errors import InputError

CREATION_ANNOTATION = "roadstead/creation-s"
DELETION_ANNOTATION = "roadstead/deletion-s"
DURATION_ANNOTATION = "roadstead/duration-s"
MIB_BYTES = 1 << 20
ANY_IP = "0.0.0.0"  # noqa: S104

# Fields of `PodFacts` that this module cannot print yet.
UNPRINTED = (
    *("nominated_node_name", "is_terminating", "is_preempted", "volumes", "device_claims"),
    *("claims_as", "owner", "container_requests", "pod_group"),
    *("pod_affinity", "pod_anti_affinity", "preferred_pod_affinity"),
    *("preferred_pod_anti_affinity", "spread_constraints"),
)
_DEFAULT_OF = {field.name: field.default for field in fields(PodFacts)}


def trace_to_manifests(trace: Trace) -> Json:
    """Convert the trace to a `List`, namespaces first, then nodes and pods in the trace's order.

    Raises InputError for facts that no importer or generator of Roadstead produces (see UNPRINTED).
    """
    for facts in trace.pod_classes:
        _check_printable(facts)
    columns = (trace.creation_ms, trace.deletion_ms, trace.duration_ms)
    times = zip(*(column.tolist() for column in columns), strict=True)
    items: list[Json] = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": dict(labels)},
        }
        for name, labels in trace.namespaces
    ]
    items.extend(node_manifest(facts) for facts in trace.nodes())
    for (identity, facts), times_ms in zip(trace.pods(), times, strict=True):
        items.append(pod_manifest(identity, facts, times_ms))
    return {"apiVersion": "v1", "kind": "List", "items": items}


def manifests_text(trace: Trace, output_format: Literal["json", "yaml"]) -> str:
    """Print `trace_to_manifests` as text."""
    document = trace_to_manifests(trace)
    if output_format == "json":
        return json.dumps(document, indent=1) + "\n"
    return yaml_text(document, sort_keys=False)


def node_manifest(facts: NodeFacts) -> Json:
    """Return the manifest of a node."""
    metadata = {"name": facts.name, "uid": f"node-{facts.name}", "labels": dict(facts.labels)}
    parts = node_parts(facts, quantity)
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, **parts}


def pod_manifest(identity: PodIdentity, facts: PodFacts, times_ms: tuple[int, int, int]) -> Json:
    """Return the manifest of a pod, in which one container requests everything.

    times_ms: creation, deletion and duration, as in a trace.
    """
    named = zip(
        (CREATION_ANNOTATION, DELETION_ANNOTATION, DURATION_ANNOTATION), times_ms, strict=True
    )
    annotations = {name: _seconds_text(time) for name, time in named if time != NEVER_MS}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": identity.name,
            "namespace": identity.namespace,
            "uid": identity.uid,
            "labels": dict(facts.labels),
            "annotations": annotations,
        },
        "spec": _pod_spec(facts),
        "status": {"phase": "Running" if facts.node_name else "Pending"},
    }


def _seconds_text(time_ms: int) -> str:
    return str(time_ms / S_MS if time_ms % S_MS else time_ms // S_MS)


def quantity(resource: str, amount: int) -> str:
    """Format an amount as a quantity: cpu in m, memory in Mi if it is a whole number of them."""
    if resource == "cpu":
        return f"{amount}m"
    if resource == "memory" and amount % MIB_BYTES == 0:
        return f"{amount // MIB_BYTES}Mi"
    return str(amount)


def _check_printable(facts: PodFacts) -> None:
    for name in UNPRINTED:
        if getattr(facts, name) != _DEFAULT_OF[name]:
            raise InputError("cannot be printed as a manifest yet", obj="pod class", field=name)
    if any(term.error for term in facts.required_node_terms or ()):
        raise InputError("does not parse", obj="pod class", field="required_node_terms")
    if facts.container_count != 1 or len(facts.images) != 1:
        problem = f"has {facts.container_count} containers; only pods with one can be printed"
        raise InputError(problem, obj="pod class")


def _pod_spec(facts: PodFacts) -> Json:
    policy = facts.preemption_policy
    optional: Json = {
        "preemptionPolicy": "" if policy == _DEFAULT_OF["preemption_policy"] else policy,
        "nodeName": facts.node_name,
        "nodeSelector": dict(facts.node_selector),
        "affinity": affinity_part(facts),
        "tolerations": tolerations_part(facts),
        "schedulingGates": [{"name": gate} for gate in facts.scheduling_gates],
    }
    return {
        "containers": [_container(facts)],
        "priority": facts.priority,
        "schedulerName": facts.scheduler_name,
        **filled(optional),
    }


def _container(facts: PodFacts) -> Json:
    requests = {resource: quantity(resource, amount) for resource, amount in facts.requests}
    optional: Json = {
        "resources": {"requests": requests} if requests else {},
        "ports": [_port(port) for port in facts.host_ports],
    }
    return {"name": "main", "image": facts.images[0], **filled(optional)}


def _port(port: HostPort) -> Json:
    printed: Json = {
        "containerPort": port.port,
        "hostPort": port.port,
        "protocol": port.protocol,
    }
    return printed if port.ip == ANY_IP else printed | {"hostIP": port.ip}
