"""Two pods, or nodes, are one class exactly if what scheduling reads of them is equal."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields, replace
from typing import Any, cast

import pytest

from roadstead.facts.compile import FactsPool, compile_node, compile_pod
from roadstead.facts.node import (
    HOSTNAME_LABEL,
    NAME_PLACEHOLDER,
    NodeFacts,
    class_of_node,
    renamed_node,
)
from roadstead.facts.pod import PodFacts
from roadstead.facts.wire import decode_unknown_facts, encode_facts
from roadstead.protocol.objects import Node, Pod, validate
from tests.plugins.test_signatures import VALUES

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def expression(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def node_terms(*expressions: object) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}


def near(app: str, **more: object) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}, **more}


BASE: dict[str, Any] = {
    "metadata": {
        "name": "web-1",
        "namespace": "prod",
        "uid": "u-1",
        "labels": {"app": "web", "tier": "front"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "r", "controller": True}],
    },
    "spec": {
        "schedulerName": "default-scheduler",
        "nodeSelector": {"disk": "ssd", "arch": "arm64"},
        "containers": [
            {
                "name": "main",
                "image": "web:v1",
                "ports": [{"containerPort": 80, "hostPort": 8080}],
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi", "x.io/gpu": "1"}},
            },
            {"name": "side", "image": "side:v1"},
        ],
        "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "value": "1"}],
        "affinity": {
            "nodeAffinity": {
                REQUIRED: node_terms(expression("k", "1", "2"), expression("l", "3")),
                PREFERRED: [{"weight": 5, "preference": {"matchExpressions": [expression("m")]}}],
            },
            "podAffinity": {REQUIRED: [near("db", namespaces=["x", "y"])]},
            "podAntiAffinity": {PREFERRED: [{"weight": 2, "podAffinityTerm": near("web")}]},
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    },
    "status": {},
}


def changed(manifest: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Return a copy with one value; path: keys and indices, separated by dots."""
    copy = deepcopy(manifest)
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    place: Any = copy
    for key in parents:
        place = place[key] if isinstance(key, int) else place.setdefault(key, {})
    place[last] = value
    return copy


def facts_of(manifest: dict[str, Any]) -> PodFacts:
    return compile_pod(cast("Pod", validate("Pod", manifest, source="")))[1]


def different_fields(one: Any, other: Any) -> set[str]:
    return {
        each.name for each in fields(one) if getattr(one, each.name) != getattr(other, each.name)
    }


MAIN = BASE["spec"]["containers"][0]
SIDE = BASE["spec"]["containers"][1]
SAME: dict[str, tuple[str, object]] = {
    "its name": ("metadata.name", "web-2"),
    "its UID": ("metadata.uid", "u-2"),
    "the time of its creation": ("metadata.creationTimestamp", "2024-01-01T00:00:00Z"),
    "an annotation": ("metadata.annotations", {"note": "x"}),
    "an owner that is no controller": (
        "metadata.ownerReferences",
        [*BASE["metadata"]["ownerReferences"], {"kind": "X", "name": "x", "uid": "x"}],
    ),
    "the order of its labels": ("metadata.labels", {"tier": "front", "app": "web"}),
    "its start": ("status.startTime", "2024-01-01T00:00:00Z"),
    "its phase": ("status.phase", "Running"),
    "a condition that is no disruption": (
        "status.conditions",
        [{"type": "Ready", "status": "True", "reason": "PreemptionByScheduler"}],
    ),
    "the order of its node selector": ("spec.nodeSelector", {"arch": "arm64", "disk": "ssd"}),
    "another spelling of an amount": (
        "spec.containers.0.resources.requests",
        {"cpu": "0.5", "memory": "1024Mi", "x.io/gpu": 1},
    ),
    "limits beside requests": ("spec.containers.0.resources.limits", {"cpu": "8"}),
    "a container's name": ("spec.containers.1.name", "other"),
    "a container's command": ("spec.containers.0.command", ["sleep"]),
    "a port that is not the node's": (
        "spec.containers.1.ports",
        [{"containerPort": 99, "protocol": "UDP"}],
    ),
    "a host port that names the default protocol and address": (
        "spec.containers.0.ports",
        [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP", "hostIP": "0.0.0.0"}],
    ),
    "an image whose tag is the default": ("spec.containers.1.image", "side:v1"),
    "a volume that no plugin reads": (
        "spec.volumes",
        [{"name": "tmp", "emptyDir": {}}, *BASE["spec"]["volumes"]],
    ),
    "the order of values and expressions of a term": (
        f"spec.affinity.nodeAffinity.{REQUIRED}",
        node_terms(expression("l", "3", "3"), expression("k", "2", "1")),
    ),
    "the order of the namespaces of a term": (
        f"spec.affinity.podAffinity.{REQUIRED}",
        [near("db", namespaces=["y", "x", "y"])],
    ),
    "a term that names the pod's own namespace": (
        f"spec.affinity.podAntiAffinity.{PREFERRED}",
        [{"weight": 2, "podAffinityTerm": near("web", namespaces=["prod"])}],
    ),
    "a selector in the form of expressions": (
        f"spec.affinity.podAffinity.{REQUIRED}",
        [
            near("", namespaces=["x", "y"])
            | {"labelSelector": {"matchExpressions": [expression("app", "db")]}}
        ],
    ),
    "defaults of a spread constraint": (
        "spec.topologySpreadConstraints",
        [
            BASE["spec"]["topologySpreadConstraints"][0]
            | {"minDomains": 1, "nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}
        ],
    ),
    "the default preemption policy": ("spec.preemptionPolicy", "PreemptLowerPriority"),
    "priority 0": ("spec.priority", 0),
    "fields that scheduling does not know": ("spec.terminationGracePeriodSeconds", 30),
}


@pytest.mark.parametrize("what", SAME)
def test_pods_of_one_class_may_differ_in(what: str) -> None:
    one, other = facts_of(BASE), facts_of(changed(BASE, *SAME[what]))

    assert different_fields(one, other) == set(), f"{what} makes no other class"
    pool = FactsPool()
    assert pool.intern(one) is pool.intern(other)
    assert encode_facts(one) == encode_facts(other), "nor other bytes"


PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
OTHER: dict[str, tuple[str, object, set[str]]] = {
    "a label's value": ("metadata.labels.app", "db", {"labels"}),
    "one more label": ("metadata.labels.more", "", {"labels"}),
    "the controller": ("metadata.ownerReferences.0.uid", "s", {"owner"}),
    "the kind of the controller": ("metadata.ownerReferences.0.kind", "Job", {"owner"}),
    "a deletion": ("metadata.deletionTimestamp", "2024-01-01T00:00:00Z", {"is_terminating"}),
    "a gang": (
        "metadata.annotations",
        {"scheduling.x-k8s.io/pod-group": "gang"},
        {"pod_group"},
    ),
    "the scheduler": ("spec.schedulerName", "mine", {"scheduler_name"}),
    "the priority": ("spec.priority", -1, {"priority"}),
    "the preemption policy": ("spec.preemptionPolicy", "Never", {"preemption_policy"}),
    "the node": ("spec.nodeName", "n1", {"node_name"}),
    "the nominated node": ("status.nominatedNodeName", "n1", {"nominated_node_name"}),
    "a scheduling gate": ("spec.schedulingGates", [{"name": "g"}], {"scheduling_gates"}),
    "the node selector": ("spec.nodeSelector.disk", "hdd", {"node_selector"}),
    "an amount of cpu": (
        "spec.containers.0.resources.requests.cpu",
        "501m",
        {"requests", "nonzero_cpu_milli"},
    ),
    "an amount of memory": (
        "spec.containers.0.resources.requests.memory",
        "1025Mi",
        {"requests", "nonzero_memory_bytes"},
    ),
    "an amount of an extended resource": (
        "spec.containers.0.resources.requests",
        {"cpu": "500m", "memory": "1Gi", "x.io/gpu": "2"},
        {"requests"},
    ),
    "requests of the default amounts, which Filter counts": (
        "spec.containers.1.resources",
        {"requests": {"cpu": "100m", "memory": "200Mi"}},
        {"requests"},
    ),
    "requests of the pod as a whole": (
        "spec.resources",
        {"requests": {"memory": "1Gi"}},
        # As upstream, a container then gets no default of cpu if another one requests it.
        {"nonzero_cpu_milli", "nonzero_memory_bytes", "container_requests"},
    ),
    "overhead": (
        "spec.overhead",
        {"cpu": "1m"},
        {"requests", "nonzero_cpu_milli"},
    ),
    "an image": ("spec.containers.1.image", "side:v2", {"images"}),
    "the order of its containers": ("spec.containers", [SIDE, MAIN], {"images"}),
    "a small init container": (
        "spec.initContainers",
        [{"name": "init", "image": "init:v1"}],
        {"images", "container_count"},
    ),
    "a host port": ("spec.containers.0.ports.0.hostPort", 8081, {"host_ports"}),
    "the protocol of a host port": ("spec.containers.0.ports.0.protocol", "UDP", {"host_ports"}),
    "the address of a host port": ("spec.containers.0.ports.0.hostIP", "10.0.0.1", {"host_ports"}),
    "a toleration's effect": ("spec.tolerations.0.effect", "NoExecute", {"tolerations"}),
    "the order of its tolerations": (
        "spec.tolerations",
        BASE["spec"]["tolerations"][::-1],
        {"tolerations"},
    ),
    "required node affinity": (
        f"spec.affinity.nodeAffinity.{REQUIRED}",
        node_terms(expression("k", "1")),
        {"required_node_terms"},
    ),
    "the weight of preferred node affinity": (
        f"spec.affinity.nodeAffinity.{PREFERRED}.0.weight",
        6,
        {"preferred_node_terms"},
    ),
    "the topology key of pod affinity": (
        f"spec.affinity.podAffinity.{REQUIRED}.0.topologyKey",
        "rack",
        {"pod_affinity"},
    ),
    "the namespaces of pod affinity": (
        f"spec.affinity.podAffinity.{REQUIRED}.0.namespaceSelector",
        {},
        {"pod_affinity"},
    ),
    "required pod anti-affinity": (
        f"spec.affinity.podAntiAffinity.{REQUIRED}",
        [near("web")],
        {"pod_anti_affinity"},
    ),
    "preferred pod affinity": (
        f"spec.affinity.podAffinity.{PREFERRED}",
        [{"weight": 1, "podAffinityTerm": near("web")}],
        {"preferred_pod_affinity"},
    ),
    "the weight of preferred pod anti-affinity": (
        f"spec.affinity.podAntiAffinity.{PREFERRED}.0.weight",
        3,
        {"preferred_pod_anti_affinity"},
    ),
    "the skew of a spread constraint": (
        "spec.topologySpreadConstraints.0.maxSkew",
        2,
        {"spread_constraints"},
    ),
    "the nodes that a spread constraint counts": (
        "spec.topologySpreadConstraints.0.nodeTaintsPolicy",
        "Honor",
        {"spread_constraints"},
    ),
    "a claim of a volume": (
        "spec.volumes.0.persistentVolumeClaim.claimName",
        "other",
        {"volumes"},
    ),
    "the name of a volume": ("spec.volumes.0.name", "other", {"volumes"}),
    "a claim of devices": (
        "spec.resourceClaims",
        [{"name": "gpu", "resourceClaimName": "gpu"}],
        {"device_claims", "claims_as"},
    ),
}


@pytest.mark.parametrize("what", OTHER)
def test_another_class_is_made_by(what: str) -> None:
    path, value, names = OTHER[what]

    found = different_fields(facts_of(BASE), facts_of(changed(BASE, path, value)))

    assert found == names, f"{what} changes these facts and no others"


def test_the_namespace_is_a_fact_also_where_terms_select_it() -> None:
    found = different_fields(facts_of(BASE), facts_of(changed(BASE, "metadata.namespace", "dev")))

    assert found == {"namespace", "preferred_pod_anti_affinity"}


def test_a_preemption_is_a_fact_of_a_pod_that_is_being_deleted() -> None:
    deleted = changed(BASE, "metadata.deletionTimestamp", "2024-01-01T00:00:00Z")
    by_preemption = changed(deleted, "status.conditions", [PREEMPTED])
    only_planned = changed(BASE, "status.conditions", [PREEMPTED])

    assert different_fields(facts_of(deleted), facts_of(by_preemption)) == {"is_preempted"}
    assert facts_of(only_planned) == facts_of(BASE), "without a deletion it is not yet preempted"


@pytest.mark.parametrize(
    "condition",
    [
        PREEMPTED | {"status": "False"},
        PREEMPTED | {"reason": "DeletionByTaintManager"},
        PREEMPTED | {"type": "Other"},
    ],
)
def test_a_deletion_for_another_reason_is_no_preemption(condition: object) -> None:
    deleted = changed(BASE, "metadata.deletionTimestamp", "2024-01-01T00:00:00Z")

    assert not facts_of(changed(deleted, "status.conditions", [condition])).is_preempted


def test_only_the_first_condition_of_a_disruption_counts() -> None:
    deleted = changed(BASE, "metadata.deletionTimestamp", "2024-01-01T00:00:00Z")
    both = [PREEMPTED | {"status": "False"}, PREEMPTED]

    assert not facts_of(changed(deleted, "status.conditions", both)).is_preempted
    assert facts_of(changed(deleted, "status.conditions", both[::-1])).is_preempted


def test_each_fact_of_a_pod_is_changed_by_one_of_these_changes() -> None:
    """Namespace and preemption have tests of their own."""
    tested = {name for _, _, names in OTHER.values() for name in names}

    missing = {each.name for each in fields(PodFacts)} - tested

    assert missing == {"namespace", "is_preempted"}, "add an entry to OTHER for each new fact"


def test_pods_that_own_claims_of_devices_are_classes_of_their_own() -> None:
    """Such a pod must own the claim that was made from a template: its name is a fact."""
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    one = changed(BASE, "spec.resourceClaims", claims)

    assert different_fields(facts_of(one), facts_of(changed(one, "metadata.name", "web-2"))) == {
        "claims_as"
    }


def test_pods_with_ephemeral_volumes_are_classes_of_their_own() -> None:
    one = changed(BASE, "spec.volumes", [{"name": "e", "ephemeral": {}}])

    assert different_fields(facts_of(one), facts_of(changed(one, "metadata.uid", "u-2"))) == {
        "volumes"
    }


@pytest.mark.parametrize("name", sorted(VALUES))
def test_each_value_of_a_fact_has_its_own_bytes_and_survives_them(name: str) -> None:
    each = [replace(PodFacts(), **{name: value}) for value in VALUES[name]]

    encoded = [encode_facts(facts) for facts in each]

    assert len(set(encoded)) == len(set(each)), "different facts have different bytes"
    assert [decode_unknown_facts(data) for data in encoded] == each


NODE: dict[str, Any] = {
    "metadata": {"name": "n1", "labels": {HOSTNAME_LABEL: "n1", "zone": "a"}},
    "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", "x.io/gpu": "2"},
        "capacity": {"cpu": "8"},
        "images": [{"names": ["web:v1"], "sizeBytes": 5}],
    },
}


def node_class_of(manifest: dict[str, Any]) -> NodeFacts:
    return class_of_node(compile_node(cast("Node", validate("Node", manifest, source=""))))


def renamed(name: str, hostname: str) -> dict[str, Any]:
    return changed(
        changed(NODE, "metadata.name", name),
        "metadata.labels",
        {HOSTNAME_LABEL: hostname, "zone": "a"},
    )


@pytest.mark.parametrize(
    "manifest",
    [
        renamed("n2", "n2"),
        changed(NODE, "metadata.uid", "u"),
        changed(NODE, "metadata.annotations", {"note": "x"}),
        changed(NODE, "status.capacity", {"cpu": "16"}),
        changed(NODE, "status.conditions", [{"type": "Ready", "status": "False"}]),
        changed(NODE, "status.allocatable.memory", "8192Mi"),
        changed(NODE, "spec.providerID", "p"),
        changed(NODE, "spec.unschedulable", False),
    ],
    ids=["name", "UID", "annotation", "capacity", "condition", "spelling", "provider", "default"],
)
def test_nodes_of_one_class_may_differ_in_fields_that_scheduling_does_not_read(
    manifest: Any,
) -> None:
    assert node_class_of(manifest) == node_class_of(NODE)


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        ("metadata.labels.zone", "b", "labels"),
        ("status.allocatable.cpu", "3999m", "allocatable"),
        ("status.allocatable.x.io/gpu", "1", "allocatable"),
        ("status.allocatable.pods", "109", "allocatable_pods"),
        ("spec.taints.0.effect", "NoExecute", "taints"),
        ("spec.unschedulable", True, "unschedulable"),
        ("status.images.0.sizeBytes", 6, "images"),
        (
            "metadata.annotations",
            {
                "scheduler.alpha.kubernetes.io/preferAvoidPods": '{"preferAvoidPods": [{"podSig'
                'nature": {"podController": {"kind": "ReplicaSet", "uid": "u"}}}]}'
            },
            "avoids",
        ),
    ],
)
def test_another_class_of_nodes_is_made_by(path: str, value: object, name: str) -> None:
    if path.endswith("x.io/gpu"):
        amounts = NODE["status"]["allocatable"] | {"x.io/gpu": value}
        path, value = "status.allocatable", amounts

    found = different_fields(node_class_of(NODE), node_class_of(changed(NODE, path, value)))

    assert found == {name}


def test_a_hostname_that_is_not_the_nodes_name_belongs_to_the_class() -> None:
    own, other = node_class_of(NODE), node_class_of(renamed("n1", "elsewhere"))

    assert dict(own.labels)[HOSTNAME_LABEL] == NAME_PLACEHOLDER
    assert dict(other.labels)[HOSTNAME_LABEL] == "elsewhere"
    assert own != other


@pytest.mark.parametrize("hostname", ["n1", "elsewhere"])
def test_a_renamed_node_has_the_other_name_where_it_had_its_own(hostname: str) -> None:
    facts = compile_node(cast("Node", validate("Node", renamed("n1", hostname), source="")))

    found = renamed_node(facts, "n2")

    assert found.name == "n2"
    assert dict(found.labels)[HOSTNAME_LABEL] == ("n2" if hostname == "n1" else hostname)
    assert class_of_node(found) == class_of_node(facts), "the class is the same"
    assert renamed_node(found, "n1") == facts, "and the way back is the inverse"
