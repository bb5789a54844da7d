"""Rules that read only the chosen node and the pods on it; `claim_shared` reads all pods."""

from __future__ import annotations

from collections.abc import Iterator

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, Volume
from roadstead.facts.resources import STANDARD_RESOURCES, is_counted_resource
from roadstead.facts.selectors import NodeSelectorTerm
from roadstead.facts.storage import READ_WRITE_ONCE_POD
from roadstead.facts.taints import Taint
from roadstead.invariants.devices import served_by_classes
from roadstead.invariants.world import World, meets
from roadstead.protocol.names import is_extended_resource

_ANY_IP = "0.0.0.0"  # noqa: S104
_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def overfull(world: World, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    """I1: requests and number of pods are within what the node can allocate."""
    pods = world.on(node.name)
    if len(pods) + 1 > node.allocatable_pods:
        yield f"{len(pods) + 1} pods on a node for {node.allocatable_pods}"
    offered = dict(node.allocatable)
    for resource, amount in pod.requests:
        if not amount or not is_counted_resource(resource):
            continue
        if resource not in offered and _is_left_to_devices(world, pod, resource):
            continue
        used = sum(dict(each.requests).get(resource, 0) for each in pods)
        if used + amount > offered.get(resource, 0):
            yield f"{resource}: {used} + {amount} of {offered.get(resource, 0)}"


def _is_left_to_devices(world: World, pod: PodFacts, resource: str) -> bool:
    """Whether a pod may be on a node that does not offer a resource, as in kube-scheduler 1.34.

    Never without DRAExtendedResource (`World.leaves_to_devices`). With it, the pod may be there if
    a device class serves the resource: allocations of devices are checked instead. It may also if
    it requests no extended resource at all, since kube-scheduler then compares only the standard
    resources, and others that the node offers.
    """
    if not world.leaves_to_devices or resource in STANDARD_RESOURCES:
        return False
    served = set(served_by_classes(world.cluster.devices.classes))
    extended = [name for name, amount in pod.requests if amount and is_extended_resource(name)]
    return resource in served if extended else True


def port_in_use(world: World, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    """I1: no two pods of a node use the same host port."""
    for other in world.on(node.name):
        for used in other.host_ports:
            for wanted in pod.host_ports:
                same_ip = wanted.ip == used.ip or _ANY_IP in (wanted.ip, used.ip)
                if same_ip and (wanted.protocol, wanted.port) == (used.protocol, used.port):
                    yield f"port {wanted.protocol} {wanted.port} is taken"


def other_node_name(world: World, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    if pod.node_name and pod.node_name != node.name:
        yield f"the pod asks for node {pod.node_name}"


def unschedulable(world: World, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    if node.unschedulable and not tolerates(pod, _UNSCHEDULABLE):
        yield "the node is cordoned"


def tainted(world: World, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    for taint in node.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not tolerates(pod, taint):
            yield f"taint {taint.key}={taint.value}:{taint.effect}"


def tolerates(pod: PodFacts, taint: Taint) -> bool:
    """Whether any toleration of the pod matches this taint."""
    for each in pod.tolerations:
        has_effect = each.effect in ("", taint.effect)
        has_key = each.key in ("", taint.key)
        has_value = each.operator in ("", "Equal") and each.value == taint.value
        if has_effect and has_key and (each.operator == "Exists" or has_value):
            return True
    return False


def unmatched_node_affinity(world: World, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    if not matches_node_affinity(pod, node):
        yield "node selector or required node affinity"


def matches_node_affinity(pod: PodFacts, node: NodeFacts) -> bool:
    """Whether the node matches the node selector and at least one required node affinity term."""
    labels = dict(node.labels)
    if any(labels.get(key) != wanted for key, wanted in pod.node_selector):
        return False
    terms = pod.required_node_terms
    return terms is None or any(_matches(term, labels, node.name) for term in terms)


def _matches(term: NodeSelectorTerm, labels: dict[str, str], name: str) -> bool:
    if term.error or not (term.expressions or term.fields):
        return False
    fields = {"metadata.name": name}
    by_label = all(meets(labels.get(each.key), each) for each in term.expressions)
    return by_label and all(meets(fields.get(each.key, ""), each) for each in term.fields)


def claim_shared(world: World, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    """I2: a ReadWriteOncePod claim is used by one pod in the whole cluster."""
    exclusive = {
        (claim.namespace, claim.name)
        for claim in world.cluster.storage.claims
        if READ_WRITE_ONCE_POD in claim.access_modes
    }
    wanted = exclusive & _claims(pod)
    for _, other in world.running() if wanted else ():
        for namespace, name in sorted(wanted & _claims(other)):
            yield f"claim {namespace}/{name} is for one pod alone"


def _claims(pod: PodFacts) -> set[tuple[str, str]]:
    claims = set()
    for volume in pod.volumes:
        if volume.kind == "persistentVolumeClaim":
            claims.add((pod.namespace, dict(volume.source).get("claimName", "")))
    return claims


_DISKS = {
    "gcePersistentDisk": "pdName",
    "awsElasticBlockStore": "volumeID",
    "iscsi": "iqn",
    "rbd": "image",
}
"""In-tree volumes that two pods of a node must not share, and the field that identifies each."""


def disk_shared(world: World, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    """I2: two pods of a node share a disk only if both mount it read-only; EBS disks never."""
    for other in world.on(node.name):
        for used in other.volumes:
            for own in pod.volumes:
                if own.kind == used.kind and own.kind in _DISKS and _conflict(own, used):
                    yield f"{own.kind} {dict(own.source).get(_DISKS[own.kind], '')} is in use"


def _conflict(one: Volume, other: Volume) -> bool:
    """Whether two disks of one kind are the same and must not be mounted by two pods."""
    name, of_one, of_other = _DISKS[one.kind], dict(one.source), dict(other.source)
    if of_one.get(name, "") != of_other.get(name, ""):
        return False
    if one.kind == "awsElasticBlockStore":
        return True
    if of_one.get("readOnly") == of_other.get("readOnly") == "true":
        return False
    if one.kind != "rbd":
        return True
    # A source has one entry ("monitors", address) for each monitor.
    shared = {m for m in one.source if m[0] == "monitors"} & set(other.source)
    return bool(shared) and of_one.get("pool", "") == of_other.get("pool", "")
