"""Traces printed as manifests: each fact in the field that Kubernetes has for it."""

import json
from dataclasses import fields, replace

import pytest
import yaml

from roadstead.facts.compile import compile_node, compile_pod
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import HostPort, Owner, PodFacts, PodIdentity, PreferredNodeTerm
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint, Toleration
from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.manifests import (
    manifests_text,
    node_manifest,
    pod_manifest,
    quantity,
    trace_to_manifests,
)
from roadstead.fleet.trace import NEVER_MS, TraceBuilder
from roadstead.protocol import objects
from roadstead.protocol.errors import InputError
from tests.plugins.test_signatures import VALUES
from tests.ten_shapes import ten_shapes

PLAIN = PodFacts(images=("a:1",), container_count=1)
NO_TIMES = (0, NEVER_MS, NEVER_MS)
TERM = NodeSelectorTerm(
    expressions=(Requirement("disk", "In", ("ssd",)), Requirement("gpu", "DoesNotExist")),
    fields=(Requirement("metadata.name", "In", ("n-0",)),),
)
TERM_MANIFEST = {
    "matchExpressions": [
        {"key": "disk", "operator": "In", "values": ["ssd"]},
        {"key": "gpu", "operator": "DoesNotExist"},
    ],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n-0"]}],
}


def spec_of(**changes):
    identity = PodIdentity("u", "default", "p")
    return pod_manifest(identity, replace(PLAIN, **changes), NO_TIMES)["spec"]


def refusal_of(facts):
    builder = TraceBuilder("test")
    builder.add_pod("p", "u", facts)
    with pytest.raises(InputError) as caught:
        trace_to_manifests(builder.build())
    return str(caught.value)


def test_a_plain_pod_has_only_required_fields():
    assert spec_of() == {
        "containers": [{"name": "main", "image": "a:1"}],
        "priority": 0,
        "schedulerName": "default-scheduler",
    }


def test_requests_become_quantities_of_one_container():
    spec = spec_of(requests=(("cpu", 1500), ("example.com/x", 7), ("memory", 3 << 20)))
    requests = spec["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "1500m", "example.com/x": "7", "memory": "3Mi"}


def test_memory_that_is_not_an_integer_of_mi_is_printed_in_bytes():
    assert quantity("memory", (1 << 20) + 1) == "1048577"


def test_node_affinity_has_required_and_preferred_terms():
    affinity = spec_of(
        required_node_terms=(TERM,), preferred_node_terms=(PreferredNodeTerm(5, TERM),)
    )["affinity"]["nodeAffinity"]
    required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert required == {"nodeSelectorTerms": [TERM_MANIFEST]}
    assert preferred == [{"weight": 5, "preference": TERM_MANIFEST}]


def test_ports_tolerations_selector_gates_and_names_are_printed():
    spec = spec_of(
        host_ports=(HostPort("0.0.0.0", "TCP", 80), HostPort("10.0.0.1", "UDP", 53)),
        tolerations=(Toleration("pool", "Exists"), Toleration("a", "Equal", "b", "NoExecute")),
        node_selector=(("disk", "ssd"),),
        scheduling_gates=("wait",),
        node_name="n-0",
        scheduler_name="mine",
        preemption_policy="Never",
        priority=7,
    )
    assert spec["containers"][0]["ports"] == [
        {"containerPort": 80, "hostPort": 80, "protocol": "TCP"},
        {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"},
    ]
    assert spec["tolerations"] == [
        {"key": "pool", "operator": "Exists"},
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"},
    ]
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["schedulingGates"] == [{"name": "wait"}]
    assert (spec["nodeName"], spec["schedulerName"]) == ("n-0", "mine")
    assert (spec["preemptionPolicy"], spec["priority"]) == ("Never", 7)


def test_a_bound_pod_is_running():
    identity = PodIdentity("u", "default", "p")
    bound = pod_manifest(identity, replace(PLAIN, node_name="n-0"), NO_TIMES)
    assert bound["status"] == {"phase": "Running"}


def test_times_become_annotations_and_no_deletion_is_omitted():
    identity = PodIdentity("u", "default", "p")
    both = pod_manifest(identity, PLAIN, (3_000, 9_250, 5_000))["metadata"]["annotations"]
    assert both == {
        "roadstead/creation-s": "3",
        "roadstead/deletion-s": "9.25",
        "roadstead/duration-s": "5",
    }
    times_ms = (3_000, NEVER_MS, NEVER_MS)
    alive = pod_manifest(identity, PLAIN, times_ms)["metadata"]["annotations"]
    assert alive == {"roadstead/creation-s": "3"}


def test_a_node_is_printed_with_taints_images_and_capacity():
    facts = NodeFacts(
        name="n-0",
        labels=(("a", "b"),),
        allocatable=(("cpu", 4000), ("memory", 1 << 30)),
        allocatable_pods=110,
        taints=(Taint("pool", "spot", "NoSchedule"), Taint("gone", "", "NoExecute")),
        unschedulable=True,
        images=(("a:1", 500),),
    )
    amounts = {"cpu": "4000m", "memory": "1024Mi", "pods": "110"}
    assert node_manifest(facts) == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n-0", "uid": "node-n-0", "labels": {"a": "b"}},
        "spec": {
            "taints": [
                {"key": "pool", "value": "spot", "effect": "NoSchedule"},
                {"key": "gone", "effect": "NoExecute"},
            ],
            "unschedulable": True,
        },
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "images": [{"names": ["a:1"], "sizeBytes": 500}],
        },
    }


@pytest.mark.parametrize("make", [generate_fleet, ten_shapes])
def test_json_and_yaml_have_the_same_contents(make):
    trace = make(5, 20, 0)
    document = trace_to_manifests(trace)
    assert json.loads(manifests_text(trace, "json")) == document
    assert yaml.safe_load(manifests_text(trace, "yaml")) == document
    kinds = [item["kind"] for item in document["items"]]
    assert kinds == ["Namespace"] + ["Node"] * 5 + ["Pod"] * 20


@pytest.mark.parametrize("make", [generate_fleet, ten_shapes])
def test_manifests_compile_to_the_facts_from_which_they_were_printed(make):
    trace = make(30, 200, 0)
    items = trace_to_manifests(trace)["items"]
    nodes = [item for item in items if item["kind"] == "Node"]
    pods = [item for item in items if item["kind"] == "Pod"]
    assert [compile_node(objects.Node.model_validate(node)) for node in nodes] == trace.nodes()
    assert [compile_pod(objects.Pod.model_validate(pod)) for pod in pods] == list(trace.pods())


def test_facts_that_can_not_be_printed_are_refused_by_field():
    owned = replace(PLAIN, owner=Owner("Job", "j", "u"))
    assert refusal_of(owned) == "pod class: owner: cannot be printed as a manifest yet"


FOLLOWS_FROM_REQUESTS = {"nonzero_cpu_milli", "nonzero_memory_bytes"}


def printed_and_read(facts):
    """Print facts and read the result; None if they are refused."""
    builder = TraceBuilder("test")
    builder.add_pod("p", "u", facts)
    try:
        *_, printed = trace_to_manifests(builder.build())["items"]
    except InputError:
        return None
    return compile_pod(objects.Pod.model_validate(printed))[1]


@pytest.mark.parametrize("name", sorted(each.name for each in fields(PodFacts)))
def test_every_fact_of_a_pod_is_printed_or_refused(name):
    """`VALUES` has values of each fact."""
    for value in VALUES.get(name, ("another",)):
        again = printed_and_read(replace(PLAIN, **{name: value}))
        assert again is None or name in FOLLOWS_FROM_REQUESTS or getattr(again, name) == value, (
            f"print {name} in fleet/manifests.py or add it to UNPRINTED there"
        )


def test_pods_of_several_containers_are_refused():
    assert "has 2 containers" in refusal_of(replace(PLAIN, container_count=2))


def test_an_invalid_term_is_refused():
    broken = NodeSelectorTerm(error="values: Invalid value")
    assert "does not parse" in refusal_of(replace(PLAIN, required_node_terms=(broken,)))
