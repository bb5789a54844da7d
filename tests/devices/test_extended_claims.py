"""The claim that a pod needs on a node for extended resources that classes serve."""

from roadstead.devices.extended_claims import (
    classes_by_resource,
    extended_need,
    is_served_by_class,
)
from roadstead.facts.compile import compile_pod
from roadstead.facts.devices import DeviceClassFacts
from roadstead.protocol.objects import validate

GPU, NIC, OTHER = "example.com/gpu", "example.com/nic", "example.com/other"
MAPPING = classes_by_resource(
    [
        DeviceClassFacts("gpus", extended_resource=GPU),
        DeviceClassFacts("nics", extended_resource=NIC),
    ]
)


def need(*containers, allocatable=(), has_claims=False):
    specs = [
        {"name": f"c{index}", "image": "app", "resources": {"requests": requests}}
        for index, requests in enumerate(containers)
    ]
    pod = validate(
        "Pod", {"metadata": {"name": "pod"}, "spec": {"containers": specs}}, source="test"
    )
    _, facts = compile_pod(pod, {GPU, NIC})
    return extended_need(
        dict(facts.requests), facts.extended_requests, MAPPING, allocatable, has_claims=has_claims
    )


def requests(found):
    return [(each.name, each.device_class, each.count) for each in found.requests]


def test_one_request_per_container_and_resource_named_by_its_place_among_all_resources():
    found = need({"cpu": 1, "memory": 1, GPU: 2}, {"cpu": 1, NIC: 1, GPU: 1})
    assert requests(found) == [
        ("container-0-request-1", "gpus", 2),
        ("container-1-request-1", "gpus", 1),
        ("container-1-request-2", "nics", 1),
    ]


def test_resources_of_the_node_s_device_plugin_need_no_claim():
    assert need({GPU: 1}, allocatable={GPU}).requests is None


def test_a_needed_claim_also_requests_resources_of_the_device_plugin():
    found = need({GPU: 1, NIC: 1}, allocatable={GPU})
    assert [each.device_class for each in found.requests] == ["gpus", "nics"]
    assert requests(need({GPU: 1}, allocatable={GPU}, has_claims=True)) != []


def test_a_resource_that_nothing_serves_does_not_fit():
    assert need({GPU: 1, OTHER: 1}).missing == OTHER
    assert need({GPU: 1, OTHER: 1}, allocatable={OTHER}).missing == ""


def test_zero_and_fractional_amounts_ask_for_nothing():
    assert requests(need({GPU: 0, NIC: "500m"}, {GPU: 1})) == [("container-1-request-0", "gpus", 1)]


def test_the_last_of_two_classes_of_one_resource_serves_it():
    classes = [DeviceClassFacts(name, extended_resource=GPU) for name in ("a", "b")]
    assert classes_by_resource(classes)[GPU] == "b"


def test_the_implicit_resource_of_a_class_is_no_extended_resource_for_the_plugin():
    implicit = "deviceclass.resource.kubernetes.io/gpus"
    assert MAPPING[implicit] == "gpus"
    assert not is_served_by_class({implicit: 1}, MAPPING)
    assert is_served_by_class({GPU: 1}, MAPPING)
    assert not is_served_by_class({GPU: 0, OTHER: 1}, MAPPING)
