"""A trace printed as Kubernetes manifests: one `List` of Namespaces, Nodes and Pods.

Times become annotations, since a manifest has no place for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Literal, TypeAlias

import yaml

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import HostPort, PodFacts, PodIdentity
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint, Toleration
from roadstead.fleet.trace import NEVER_S, Trace
from roadstead.protocol.errors import InputError

Manifest: TypeAlias = dict[str, object]

CREATION_ANNOTATION = "roadstead/creation-s"
DELETION_ANNOTATION = "roadstead/deletion-s"
MIB_BYTES = 1 << 20
ANY_IP = "0.0.0.0"  # noqa: S104

UNPRINTED = (
    *("nominated_node_name", "is_terminating", "is_preempted", "volumes", "resource_claims"),
    *("owner", "container_requests", "pod_group"),
    *("pod_affinity", "pod_anti_affinity", "preferred_pod_affinity"),
    *("preferred_pod_anti_affinity", "spread_constraints"),
)
_DEFAULT_OF = {field.name: field.default for field in fields(PodFacts)}


def trace_to_manifests(trace: Trace) -> Manifest:
    """The trace as a `List`, namespaces first, then nodes and pods in the order of the trace.

    Raises InputError for facts that no importer or generator of ours produces (see UNPRINTED).
    """
    for facts in trace.pod_classes:
        _check_printable(facts)
    times = zip(trace.creation_s.tolist(), trace.deletion_s.tolist(), strict=True)
    items: list[Manifest] = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": dict(labels)},
        }
        for name, labels in trace.namespaces
    ]
    items.extend(node_manifest(facts) for facts in trace.nodes())
    for (identity, facts), (creation_s, deletion_s) in zip(trace.pods(), times, strict=True):
        items.append(pod_manifest(identity, facts, creation_s, deletion_s))
    return {"apiVersion": "v1", "kind": "List", "items": items}


def manifests_text(trace: Trace, form: Literal["json", "yaml"]) -> str:
    """`trace_to_manifests` as text."""
    document = trace_to_manifests(trace)
    if form == "json":
        return json.dumps(document, indent=1) + "\n"
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(document, Dumper=dumper, sort_keys=False)
    return text


def node_manifest(facts: NodeFacts) -> Manifest:
    amounts = {resource: quantity(resource, amount) for resource, amount in facts.allocatable}
    amounts["pods"] = str(facts.allocatable_pods)
    spec: Manifest = {}
    if facts.taints:
        spec["taints"] = [_taint(taint) for taint in facts.taints]
    if facts.unschedulable:
        spec["unschedulable"] = True
    status: Manifest = {"allocatable": amounts, "capacity": dict(amounts)}
    if facts.images:
        status["images"] = [{"names": [name], "sizeBytes": size} for name, size in facts.images]
    metadata = {"name": facts.name, "uid": f"node-{facts.name}", "labels": dict(facts.labels)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def pod_manifest(
    identity: PodIdentity, facts: PodFacts, creation_s: int, deletion_s: int
) -> Manifest:
    """One container asks for all that the pod asks for."""
    annotations = {CREATION_ANNOTATION: str(creation_s)}
    if deletion_s != NEVER_S:
        annotations[DELETION_ANNOTATION] = str(deletion_s)
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


def quantity(resource: str, amount: int) -> str:
    """An amount as a quantity: cpu in m, memory in Mi where it is a whole number of them."""
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
        rule = f"has {facts.container_count} containers; only pods with one can be printed"
        raise InputError(rule, obj="pod class")


def _pod_spec(facts: PodFacts) -> Manifest:
    policy = facts.preemption_policy
    optional: Manifest = {
        "preemptionPolicy": "" if policy == _DEFAULT_OF["preemption_policy"] else policy,
        "nodeName": facts.node_name,
        "nodeSelector": dict(facts.node_selector),
        "affinity": _affinity(facts),
        "tolerations": [_toleration(toleration) for toleration in facts.tolerations],
        "schedulingGates": [{"name": gate} for gate in facts.scheduling_gates],
    }
    return {
        "containers": [_container(facts)],
        "priority": facts.priority,
        "schedulerName": facts.scheduler_name,
        **_present(optional),
    }


def _container(facts: PodFacts) -> Manifest:
    requests = {resource: quantity(resource, amount) for resource, amount in facts.requests}
    optional: Manifest = {
        "resources": {"requests": requests} if requests else {},
        "ports": [_port(port) for port in facts.host_ports],
    }
    return {"name": "main", "image": facts.images[0], **_present(optional)}


def _affinity(facts: PodFacts) -> Manifest:
    node_affinity: Manifest = {}
    if facts.required_node_terms is not None:
        terms = [_term(term) for term in facts.required_node_terms]
        node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": terms
        }
    if facts.preferred_node_terms:
        node_affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": preferred.weight, "preference": _term(preferred.term)}
            for preferred in facts.preferred_node_terms
        ]
    return {"nodeAffinity": node_affinity} if node_affinity else {}


def _term(term: NodeSelectorTerm) -> Manifest:
    return _present(
        {
            "matchExpressions": _requirements(term.expressions),
            "matchFields": _requirements(term.fields),
        }
    )


def _requirements(requirements: Iterable[Requirement]) -> list[Manifest]:
    return [
        {"key": requirement.key, "operator": requirement.operator}
        | _present({"values": list(requirement.values)})
        for requirement in requirements
    ]


def _toleration(toleration: Toleration) -> Manifest:
    return _present(
        {name: getattr(toleration, name) for name in ("key", "operator", "value", "effect")}
    )


def _taint(taint: Taint) -> Manifest:
    return {"key": taint.key, **_present({"value": taint.value}), "effect": taint.effect}


def _port(port: HostPort) -> Manifest:
    wanted: Manifest = {
        "containerPort": port.port,
        "hostPort": port.port,
        "protocol": port.protocol,
    }
    return wanted if port.ip == ANY_IP else wanted | {"hostIP": port.ip}


def _present(manifest: Manifest) -> Manifest:
    """Without the keys whose value is empty."""
    return {key: value for key, value in manifest.items() if value}
