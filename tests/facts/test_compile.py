"""Facts are the values that upstream 1.34 reads from a manifest; equal facts become one object."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts import identity_cache
from roadstead.facts.compile import FactsPool, compile_node, compile_pod, normalized_image
from roadstead.facts.identity_cache import cached_by_identity
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import (
    HostPort,
    Owner,
    PodAffinityTerm,
    PodClaim,
    PodFacts,
    PodIdentity,
    SpreadConstraint,
    Volume,
)
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.facts.taints import Taint, Toleration, tolerated
from roadstead.protocol.objects import Node, Pod, validate

MIB = 1024 * 1024
DEFAULTS = (100, 200 * MIB)


def compiled(manifest: dict[str, Any]) -> tuple[PodIdentity, PodFacts]:
    return compile_pod(cast("Pod", validate("Pod", manifest, source="")))


def facts(*, status: object = None, metadata: object = None, **spec: Any) -> PodFacts:
    meta = {"name": "web", "namespace": "prod"} | cast("dict[str, Any]", metadata or {})
    whole = {"containers": [{"name": "c", "image": "busybox"}]} | spec
    return compiled({"metadata": meta, "spec": whole, "status": status or {}})[1]


def box(name: str = "c", restart: str = "", **amounts: object) -> dict[str, Any]:
    """Return a container by its requests; `gpu` stands for an extended resource."""
    requests = {("x.io/gpu" if key == "gpu" else key): value for key, value in amounts.items()}
    return {"name": name, "restartPolicy": restart, "resources": {"requests": requests}}


def given_to(name: str, requests: object, allocated: object = None) -> dict[str, Any]:
    return {
        "name": name, "resources": {"requests": requests}, "allocatedResources": allocated or {}
    }  # fmt: skip


def test_a_bare_pod_has_defaults_and_an_identity_from_its_name() -> None:
    identity, found = compiled({"metadata": {"name": "web"}, "spec": {"containers": [{}]}})
    assert identity == PodIdentity("default/web", "default", "web")
    assert identity.key == "default/web"
    assert found == PodFacts(
        nonzero_cpu_milli=100,
        nonzero_memory_bytes=200 * MIB,
        images=(":latest",),
        container_count=1,
    )
    assert compiled({"metadata": {"name": "w", "uid": "u"}})[0].uid == "u"


def test_plain_fields_are_copied() -> None:
    found = facts(
        metadata={
            "labels": {"b": "2", "a": "1"}, "deletionTimestamp": "2024-01-01T00:00:00Z",
            "ownerReferences": [
                {"kind": "X", "name": "x"},
                {"kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True},
            ],
        },
        schedulerName="mine", priority=7, preemptionPolicy="Never", nodeName="n1",
        nodeSelector={"z": "1", "a": "2"}, schedulingGates=[{"name": "g"}],
        resourceClaims=[{"name": "claim"}],
        tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}, {}],
        status={"nominatedNodeName": "n2"},
    )  # fmt: skip
    assert found.labels == (("a", "1"), ("b", "2"))
    assert found.is_terminating
    assert found.owner == Owner("ReplicaSet", "rs", "u")
    assert (found.scheduler_name, found.priority, found.preemption_policy) == ("mine", 7, "Never")
    assert (found.node_name, found.nominated_node_name) == ("n1", "n2")
    assert found.node_selector == (("a", "2"), ("z", "1"))
    assert (found.scheduling_gates, found.device_claims) == (("g",), (PodClaim("claim"),))
    assert found.tolerations == (Toleration("k", "Exists", "", "NoSchedule"), Toleration())
    uncontrolled = {"ownerReferences": [{"kind": "X", "name": "x"}]}
    assert facts(metadata=uncontrolled).owner is None


HOST_TERM = {"topologyKey": "h", "labelSelector": {"matchLabels": {"app": "web"}}}
WEIGHTED_TERM = {"weight": 1, "podAffinityTerm": HOST_TERM}
POD_TERMS = {
    "requiredDuringSchedulingIgnoredDuringExecution": [HOST_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [WEIGHTED_TERM],
}
NODE_TERM = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
EVERYTHING: dict[str, Any] = {
    "metadata": {
        "name": "web",
        "namespace": "prod",
        "labels": {"scheduling.x-k8s.io/pod-group": "gang"},
        "deletionTimestamp": "2024-01-01T00:00:00Z",
        "ownerReferences": [{"kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}],
    },
    "spec": {
        "containers": [
            {"name": "c", "image": "busybox", "ports": [{"containerPort": 1, "hostPort": 1}]}
        ],
        "resources": {"requests": {"cpu": "1", "memory": "1Mi"}},
        "schedulerName": "mine",
        "priority": 7,
        "preemptionPolicy": "Never",
        "nodeName": "n1",
        "nodeSelector": {"z": "1"},
        "schedulingGates": [{"name": "g"}],
        "resourceClaims": [{"name": "claim"}],
        "tolerations": [{}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [NODE_TERM]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": NODE_TERM}
                ],
            },
            "podAffinity": POD_TERMS,
            "podAntiAffinity": POD_TERMS,
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    },
    "status": {
        "nominatedNodeName": "n2",
        "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        ],
    },
}
"""A manifest that sets every fact."""


@pytest.mark.parametrize("name", sorted(field.name for field in fields(PodFacts)))
def test_every_fact_of_a_pod_is_compiled_from_its_manifest(name: str) -> None:
    assert getattr(compiled(EVERYTHING)[1], name) != getattr(PodFacts(), name), (
        f"compile {name} in facts/compile.py, and add a value to EVERYTHING in this module"
    )


@pytest.mark.parametrize(
    ("spec", "requests", "nonzero"),
    [
        ({"containers": [box(cpu="0.5", memory="1Ki", gpu="2")]},
         {"cpu": 500, "memory": 1024, "x.io/gpu": 2}, (500, 1024)),
        ({"containers": [box(cpu="0.1m"), box(cpu="0.1m")]}, {"cpu": 1}, (1, 400 * MIB)),
        ({"containers": [box(), box(cpu="1")]}, {"cpu": 1000}, (1100, 400 * MIB)),
        ({"containers": [box(cpu="0", memory="0")]}, {"cpu": 0, "memory": 0}, (0, 0)),
        ({"containers": [box(storage="1Gi", pods="1", plain="1")]}, {}, DEFAULTS),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]}, {}, DEFAULTS),
        ({"containers": [box(cpu="1")], "initContainers": [box(cpu="3")]},
         {"cpu": 3000}, (3000, 200 * MIB)),
        ({"containers": [box(cpu="1")], "initContainers": [box(cpu="2", restart="Always")]},
         {"cpu": 3000}, (3000, 400 * MIB)),
        ({"containers": [box(cpu="1")],
          "initContainers": [box(cpu="2", restart="Always"), box(cpu="4", memory="1Gi")]},
         {"cpu": 6000, "memory": 1024 * MIB}, (6000, 1224 * MIB)),
        ({"containers": [box(cpu="1")],
          "initContainers": [box(cpu="4"), box(cpu="2", restart="Always")]},
         {"cpu": 4000}, (4000, 400 * MIB)),
        ({"containers": [box(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Mi"}},
         {"cpu": 1250, "memory": MIB}, (1250, 201 * MIB)),
    ],
)  # fmt: skip
def test_requests_equal_upstreams(
    spec: dict[str, Any], requests: dict[str, int], nonzero: tuple[int, int]
) -> None:
    found = facts(**spec)
    assert dict(found.requests) == requests
    assert (found.nonzero_cpu_milli, found.nonzero_memory_bytes) == nonzero
    assert found.container_requests is None


def test_pod_level_requests_replace_the_sum_of_their_resources() -> None:
    found = facts(
        containers=[box(cpu="1", gpu="1", **{"hugepages-2Mi": "2Mi"}), box(memory="1Mi")],
        resources={"requests": {"cpu": "5", "hugepages-2Mi": "8Mi", "x.io/gpu": "9"}},
        overhead={"cpu": "1"},
    )
    assert dict(found.requests) == {
        "cpu": 6000, "hugepages-2Mi": 8 * MIB, "memory": MIB, "x.io/gpu": 1
    }  # fmt: skip
    assert (found.nonzero_cpu_milli, found.nonzero_memory_bytes) == (6000, MIB)
    assert found.container_requests is not None
    assert dict(found.container_requests) == {
        "cpu": 2100, "hugepages-2Mi": 2 * MIB, "memory": 201 * MIB, "x.io/gpu": 1
    }  # fmt: skip


def test_pod_level_requests_leave_defaults_for_other_resources() -> None:
    found = facts(containers=[box(), box()], resources={"requests": {"cpu": "1"}})
    assert (found.nonzero_cpu_milli, found.nonzero_memory_bytes) == (1000, 400 * MIB)
    whole = facts(containers=[box()], resources={"requests": {"cpu": "1", "memory": "1Mi"}})
    assert (whole.nonzero_cpu_milli, whole.nonzero_memory_bytes) == (1000, MIB)
    assert facts(containers=[box()], resources={"limits": {"cpu": "1"}}).requests == ()


PENDING = {"type": "PodResizePending", "reason": "Deferred"}
INFEASIBLE = {"type": "PodResizePending", "reason": "Infeasible"}


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({"containerStatuses": [given_to("c", {"cpu": "3"})]}, 3000),
        ({"containerStatuses": [given_to("c", {"cpu": "1"})]}, 2000),
        ({"containerStatuses": [given_to("c", {"cpu": "1"}, {"cpu": "4"})]}, 4000),
        ({"containerStatuses": [given_to("c", {"cpu": "1"})], "conditions": [PENDING]}, 2000),
        ({"containerStatuses": [given_to("c", {"cpu": "1"})], "conditions": [INFEASIBLE]}, 1000),
        ({"containerStatuses": [given_to("c", {"cpu": "1"})], "conditions": [PENDING, INFEASIBLE]},
         2000),
        ({"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "9"}}]}, 2000),
        ({"containerStatuses": [given_to("other", {"cpu": "9"})]}, 2000),
        ({"initContainerStatuses": [given_to("c", {"cpu": "5"})]}, 5000),
    ],
)  # fmt: skip
def test_a_container_resized_in_place_counts_its_allocated_amount(status: object, cpu: int) -> None:
    assert dict(facts(containers=[box(cpu="2")], status=status).requests) == {"cpu": cpu}


def test_sidecars_count_their_allocated_amount_and_init_containers_do_not() -> None:
    status = {"initContainerStatuses": [given_to("s", {"cpu": "3"}), given_to("i", {"cpu": "9"})]}
    init = [box("s", cpu="1", restart="Always"), box("i", cpu="2")]
    found = facts(containers=[box(cpu="1")], initContainers=init, status=status)
    assert dict(found.requests) == {"cpu": 5000}


def port(**fields: object) -> dict[str, Any]:
    return {"name": "c", "ports": [fields]}


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    found = facts(
        containers=[port(hostPort=80), port(containerPort=81), port(hostPort=80, protocol="TCP")],
        initContainers=[
            port(hostPort=9) | {"restartPolicy": "Always"}, port(hostPort=10),
            port(hostPort=7, hostIP="10.0.0.1", protocol="UDP") | {"restartPolicy": "Always"},
        ],
    )  # fmt: skip
    assert found.host_ports == (
        HostPort("0.0.0.0", "TCP", 9),
        HostPort("0.0.0.0", "TCP", 80),
        HostPort("10.0.0.1", "UDP", 7),
    )


@pytest.mark.parametrize(
    ("name", "normalized"),
    [
        ("busybox", "busybox:latest"),
        ("busybox:1", "busybox:1"),
        ("r.io:5000/a", "r.io:5000/a:latest"),
        ("r.io:5000/a:2", "r.io:5000/a:2"),
        ("a@sha256:00", "a@sha256:00"),
        ("", ":latest"),
    ],
)
def test_images_without_a_tag_get_latest(name: str, normalized: str) -> None:
    assert normalized_image(name) == normalized


def test_images_of_init_containers_are_first() -> None:
    found = facts(containers=[{"image": "b"}], initContainers=[{"image": "a:1"}])
    assert found.images == ("a:1", "b:latest")
    assert found.container_count == 2


REQUIRED, PREFERRED = (
    f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred")
)
APP = {"matchLabels": {"app": "web"}}
APP_SELECTOR = LabelSelector((Requirement("app", "In", ("web",)),))


def test_node_affinity_is_compiled_and_an_empty_selector_differs_from_none() -> None:
    term = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    found = facts(
        affinity={
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [term, {}]},
                PREFERRED: [{"weight": 3, "preference": term}],
            }
        }
    )
    assert found.required_node_terms is not None
    assert [each.expressions for each in found.required_node_terms] == [
        (Requirement("a", "Exists"),),
        (),
    ]
    assert [each.weight for each in found.preferred_node_terms] == [3]
    assert facts(affinity={"nodeAffinity": {REQUIRED: {}}}).required_node_terms == ()
    assert facts(affinity={"nodeAffinity": {}}).required_node_terms is None
    assert facts(affinity={}).required_node_terms is None


def affinity_of(term: dict[str, Any]) -> PodAffinityTerm:
    found = facts(affinity={"podAffinity": {REQUIRED: [{"topologyKey": "zone"} | term]}})
    return found.pod_affinity[0]


def test_pod_affinity_selects_the_own_namespace_unless_others_are_named() -> None:
    assert affinity_of({"labelSelector": APP}) == PodAffinityTerm(
        "zone", APP_SELECTOR, ("prod",), None
    )
    assert affinity_of({"namespaces": ["b", "a", "b"]}).namespaces == ("a", "b")
    everywhere = affinity_of({"namespaceSelector": {}})
    assert (everywhere.namespaces, everywhere.namespace_selector) == ((), LabelSelector())
    assert affinity_of({}).selector is None


def test_all_four_kinds_of_pod_affinity_are_distinguished() -> None:
    weighted = [{"weight": 5, "podAffinityTerm": {"topologyKey": "z", "labelSelector": APP}}]
    plain = [{"topologyKey": "h", "labelSelector": APP}]
    found = facts(
        affinity={
            "podAffinity": {REQUIRED: plain, PREFERRED: weighted},
            "podAntiAffinity": {REQUIRED: plain * 2, PREFERRED: weighted * 3},
        }
    )
    counts = (len(found.pod_affinity), len(found.preferred_pod_affinity))
    assert counts == (1, 1)
    assert (len(found.pod_anti_affinity), len(found.preferred_pod_anti_affinity)) == (2, 3)
    assert found.preferred_pod_affinity[0].weight == 5


def test_an_invalid_selector_keeps_its_error() -> None:
    broken = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    term = affinity_of({"labelSelector": broken})
    assert term.selector is None
    assert term.error == '"Near" is not a valid label selector operator'
    assert spread(labelSelector=broken).error == term.error


def spread(**fields: object) -> SpreadConstraint:
    whole = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"} | fields
    return facts(topologySpreadConstraints=[whole]).spread_constraints[0]


def test_spread_constraints_have_the_defaults_of_the_api_server() -> None:
    assert spread(labelSelector=APP) == SpreadConstraint(
        "zone", 2, "ScheduleAnyway", APP_SELECTOR, 1, "Honor", "Ignore", ()
    )
    assert spread(minDomains=3, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor") == (
        SpreadConstraint("zone", 2, "ScheduleAnyway", None, 3, "Ignore", "Honor", ())
    )


def test_keys_to_match_are_added_to_a_selector_or_create_one() -> None:
    labels = {"rev": "1"}
    revision = Requirement("rev", "In", ("1",))
    narrowed = spread(labelSelector=APP, matchLabelKeys=["rev", "missing"])
    assert narrowed.selector == APP_SELECTOR
    assert narrowed.effective_selector(labels) == LabelSelector(
        (revision, *APP_SELECTOR.requirements)
    )
    assert narrowed.effective_selector({}) == APP_SELECTOR
    assert spread(matchLabelKeys=["rev"]).effective_selector(labels) == LabelSelector((revision,))
    assert spread().effective_selector(labels) is None


def test_volumes_have_the_fields_that_scheduling_reads() -> None:
    found = facts(
        volumes=[
            {"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "x"}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "data", "readOnly": False}},
            {"name": "d",
             "rbd": {"monitors": ["m2", "m1"], "pool": "p", "image": "i", "readOnly": True}},
            {"name": "e", "iscsi": {"iqn": "q", "lun": 3}}, {"name": "f", "ephemeral": {}},
            {"name": "g", "awsElasticBlockStore": {"volumeID": "v"}}, {"name": "h", "rbd": None},
            {"name": "i", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ]
    )  # fmt: skip
    monitors = (("image", "i"), ("monitors", "m1"), ("monitors", "m2"), ("pool", "p"))

    def own_claim(volume: str) -> tuple[tuple[str, str], ...]:
        return (("claimName", f"web-{volume}"), ("podName", "web"), ("podUID", "prod/web"))

    assert found.volumes == (
        Volume("c", "persistentVolumeClaim", (("claimName", "data"),)),
        Volume("d", "rbd", (*monitors, ("readOnly", "true"))),
        Volume("e", "iscsi", (("iqn", "q"), ("lun", "3"))),
        Volume("f", "ephemeral", own_claim("f")),
        Volume("g", "awsElasticBlockStore", (("volumeID", "v"),)),
        Volume("i", "ephemeral", own_claim("i")),
    )


def node(**parts: object) -> NodeFacts:
    manifest = {"metadata": {"name": "n", "labels": {"z": "1", "a": "2"}}, **parts}
    return compile_node(cast("Node", validate("Node", manifest, source="")))


def test_node_facts_use_allocatable_amounts() -> None:
    found = node(
        spec={"unschedulable": True, "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]},
        status={
            "allocatable": {"cpu": "3500m", "memory": "1Gi", "pods": "110", "x.io/gpu": "4",
                            "storage": "1", "ephemeral-storage": "1Ki", "kubernetes.io/odd": 1},
            "capacity": {"cpu": "4"},
            "images": [{"names": ["b:1", "a@sha256:0"], "sizeBytes": 5},
                       {"names": ["b:1"], "sizeBytes": 9}, {}],
        },
    )  # fmt: skip
    assert found == NodeFacts(
        name="n", labels=(("a", "2"), ("z", "1")),
        allocatable=(("cpu", 3500), ("ephemeral-storage", 1024), ("kubernetes.io/odd", 1),
                     ("memory", 1024 * MIB), ("x.io/gpu", 4)),
        allocatable_pods=110, taints=(Taint("k", "v", "NoExecute"),), unschedulable=True,
        images=(("a@sha256:0", 5), ("b:1", 5)),
    )  # fmt: skip
    assert node().allocatable_pods == 0


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ""),
        ({"topology.kubernetes.io/zone": "a"}, ":\x00:a"),
        ({"topology.kubernetes.io/region": "r"}, "r:\x00:"),
        (
            {"failure-domain.beta.kubernetes.io/zone": "b", "topology.kubernetes.io/region": "r"},
            "r:\x00:b",
        ),
        (
            {"topology.kubernetes.io/zone": "a", "failure-domain.beta.kubernetes.io/zone": "b"},
            ":\x00:b",
        ),
    ],
)
def test_zones_consist_of_region_and_zone(labels: dict[str, str], zone: str) -> None:
    assert NodeFacts("n", labels=tuple(sorted(labels.items()))).zone == zone


def test_one_matching_toleration_is_enough() -> None:
    taint = Taint("k", "v", "NoSchedule")
    assert tolerated(taint, (Toleration("x"), Toleration(operator="Exists")))
    assert not tolerated(taint, (Toleration("k"), Toleration("k", "Exists", "", "NoExecute")))


def test_equal_facts_become_one_object() -> None:
    pool = FactsPool()
    one, other = facts(priority=1), facts(priority=1)
    assert one is not other
    assert pool.intern(one) is pool.intern(other) is one
    assert pool.intern(facts(priority=2)) is not one
    assert pool.intern(node()) is pool.intern(node())


AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "gpu"]), st.integers(0, 5000).map(lambda n: f"{n}m")
)


@given(st.lists(AMOUNTS, max_size=3), st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=3))
def test_requests_are_the_largest_needs_in_a_pods_life(
    running: list[dict[str, str]], starting: list[tuple[dict[str, str], bool]]
) -> None:
    init = [box(restart="Always" * is_sidecar, **each) for each, is_sidecar in starting]
    found = dict(facts(containers=[box(**each) for each in running], initContainers=init).requests)
    sidecars: list[dict[str, str]] = []
    moments: list[list[dict[str, str]]] = []
    for each, is_sidecar in starting:
        moments.append([*sidecars, each])
        sidecars += [each] if is_sidecar else []
    moments.append([*sidecars, *running])
    needs = [sum(int(each.get("cpu", "0m")[:-1]) for each in moment) for moment in moments]
    assert found.get("cpu", 0) == max(needs)


def test_results_are_cached_by_identity_and_evicted_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(identity_cache, "CACHE_MAX", 2)
    asked: list[tuple[int, ...]] = []

    @cached_by_identity
    def total(part: tuple[int, ...]) -> int:
        asked.append(part)
        return sum(part)

    parts = [(number, 1) for number in range(5)]
    assert [total(part) for part in parts for _ in range(2)] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert asked == parts
    assert total(parts[0]) == 1
    assert asked == [*parts, parts[0]]
