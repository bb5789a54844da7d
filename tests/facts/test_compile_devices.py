"""Manifests of resource.k8s.io become facts; what they leave out has the API server's defaults."""

import pytest

from roadstead.facts.compile import compile_pod
from roadstead.facts.compile_devices import (
    compile_allocation,
    compile_device_claim,
    compile_device_class,
    compile_devices,
    compile_slice,
    compile_taint_rule,
)
from roadstead.facts.devices import (
    ALL_DEVICES,
    EXACT_COUNT,
    AttributeFacts,
    CounterSetFacts,
    DeviceCapacity,
    DeviceConstraint,
    DevicesFacts,
    DeviceStatus,
    DriverConfig,
    ExactRequest,
    Placement,
    RequestPolicy,
)
from roadstead.facts.pod import PodClaim
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint, Toleration
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import validate
from roadstead.protocol.objects.devices import ClaimAllocation
from roadstead.protocol.plain_data import pack, unpack

POOL = {"name": "p", "generation": 2, "resourceSliceCount": 1}


def slice_of(*devices, **spec):
    found = {"driver": "gpu.example.com", "pool": POOL, "devices": [*devices], **spec}
    return validate("ResourceSlice", {"metadata": {"name": "s"}, "spec": found}, source="a.yaml")


def claim(status=None, metadata=None, **spec):
    found = {
        "metadata": {"name": "c", "namespace": "ns", **(metadata or {})},
        "spec": {"devices": spec},
        "status": status or {},
    }
    return compile_device_claim(validate("ResourceClaim", found, source="a.yaml"))


class TestSlices:
    def test_attributes_have_their_kinds_in_the_order_of_names(self):
        values = {
            "c": {"string": "x"},
            "a": {"int": 1},
            "b": {"bool": True},
            "d": {"version": "1.0.0"},
            "e": {},
        }
        (device,) = compile_slice(slice_of({"name": "d0", "attributes": values})).devices
        assert device.attributes == (
            AttributeFacts("a", "int", 1),
            AttributeFacts("b", "bool", True),
            AttributeFacts("c", "string", "x"),
            AttributeFacts("d", "version", "1.0.0"),
            AttributeFacts("e", "", ""),
        )

    def test_capacities_are_canonical_and_keep_their_policy(self):
        policy = {"default": "1024Mi", "validRange": {"min": "1Gi", "step": "1Gi"}}
        capacity = {
            "cores": {"value": "2000m"},
            "memory": {"value": "8192Mi", "requestPolicy": policy},
            "old": "5",
        }
        (device,) = compile_slice(slice_of({"name": "d0", "capacity": capacity})).devices
        assert device.capacity == (
            DeviceCapacity("cores", "2"),
            DeviceCapacity("memory", "8Gi", RequestPolicy("1Gi", (), "1Gi", None, "1Gi")),
            DeviceCapacity("old", "5"),
        )

    def test_counters_are_sorted(self):
        counters = {"b": {"value": "2"}, "a": {"value": "1"}}
        found = compile_slice(
            slice_of(
                {"name": "d0", "consumesCounters": [{"counterSet": "s", "counters": counters}]},
                sharedCounters=[{"name": "s", "counters": counters}],
            )
        )
        expected = (CounterSetFacts("s", (("a", "1"), ("b", "2"))),)
        assert (found.shared_counters, found.devices[0].consumes) == (expected, expected)

    def test_node_selectors_keep_the_order_of_the_manifest(self):
        chosen = [
            {"key": "z", "operator": "In", "values": ["b", "a"]},
            {"key": "a", "operator": "Exists"},
        ]
        terms = {"nodeSelectorTerms": [{"matchExpressions": chosen}]}
        found = compile_slice(slice_of(nodeSelector=terms))
        expected = NodeSelectorTerm(
            (Requirement("z", "In", ("b", "a")), Requirement("a", "Exists"))
        )
        assert found.placement == Placement(terms=(expected,))

    def test_a_term_that_does_not_parse_keeps_its_errors(self):
        terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}
        (term,) = compile_slice(slice_of(nodeSelector=terms)).placement.terms
        assert "Unsupported value" in term.error

    @pytest.mark.parametrize(
        ("spec", "field", "rule"),
        [
            ({"driver": ""}, "spec.driver", "must not be empty"),
            ({"devices": [{}]}, "spec.devices[0].name", "is missing"),
            ({"devices": [{"name": "x"}] * 129}, "spec.devices", "no more than 128 items"),
            ({"pool": {"name": "p"}}, "spec.pool.resourceSliceCount", "is missing"),
            ({"pool": POOL | {"generation": -1}}, "spec.pool.generation", "no less than 0"),
        ],
    )
    def test_a_wrong_field_is_named(self, spec, field, rule):
        with pytest.raises(InputError) as caught:
            slice_of(**spec)
        assert (caught.value.obj, caught.value.field) == ('ResourceSlice "s"', field)
        assert rule in str(caught.value)


class TestClaims:
    def test_requests_have_the_defaults_of_the_api_server(self):
        found = claim(
            requests=[
                {"name": "one", "exactly": {"deviceClassName": "gpu"}},
                {"name": "all", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
            ]
        )
        one, every = found.spec.requests
        assert (one.mode, one.count, one.capacity) == (EXACT_COUNT, 1, None)
        assert (every.mode, every.count) == (ALL_DEVICES, 0)

    def test_alternatives_keep_their_order(self):
        first = {"name": "big", "deviceClassName": "gpu", "count": 2}
        second = {
            "name": "small",
            "deviceClassName": "gpu",
            "selectors": [{"cel": {"expression": "true"}}],
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "capacity": {"requests": {"memory": "1024Mi"}},
        }
        found = claim(requests=[{"name": "r", "firstAvailable": [first, second]}])
        (request,) = found.spec.requests
        tolerations = (Toleration("k", "Exists"),)
        assert request.alternatives == (
            ExactRequest("big", "gpu", count=2),
            ExactRequest(
                *("small", "gpu", ("true",)),
                tolerations=tolerations,
                capacity=(("memory", "1Gi"),),
            ),
        )

    def test_constraints_and_configs_name_their_requests(self):
        found = claim(
            constraints=[{"requests": ["a"], "matchAttribute": "x/y"}, {"distinctAttribute": "z"}],
            config=[{"opaque": {"driver": "d", "parameters": {"b": 1, "a": "é"}}}],
        )
        assert found.spec.constraints == (
            DeviceConstraint(("a",), "x/y"),
            DeviceConstraint((), None, "z"),
        )
        assert found.spec.configs == (DriverConfig("d", '{"b":1,"a":"é"}'),)

    def test_metadata_and_status_that_the_plugin_reads(self):
        found = claim(
            metadata={
                "uid": "u",
                "deletionTimestamp": "2024-01-01T00:00:00Z",
                "finalizers": ["f"],
                "ownerReferences": [{"kind": "Pod", "name": "p", "uid": "pod", "controller": True}],
            },
            status={
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "pod"}],
                "devices": [
                    {
                        "driver": "d",
                        "pool": "p",
                        "device": "x",
                        "conditions": [{"type": "Ready", "status": "True"}],
                    }
                ],
            },
        )
        assert (found.key, found.uid, found.owner_uid, found.owner_kind) == (
            "ns/c", "u", "pod", "Pod",
        )  # fmt: skip
        assert found.is_terminating
        assert found.finalizers == ("f",)
        assert [each.uid for each in found.reserved_for] == ["pod"]
        assert found.statuses == (DeviceStatus("d", "p", "x", None, (("Ready", "True"),)),)

    def test_an_allocation_keeps_its_time_in_milliseconds(self):
        manifest = {
            "devices": {
                "results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}],
                "config": [{"opaque": {"driver": "d", "parameters": {}}, "source": "FromClaim"}],
            },
            "allocationTimestamp": "1970-01-01T00:00:01Z",
        }
        found = compile_allocation(ClaimAllocation.read(manifest))
        assert (found.allocated_ms, found.node_terms) == (1000, None)
        assert found.results[0].id == ("d", "p", "x")
        assert found.configs == (DriverConfig("d", "{}", (), "FromClaim"),)


def test_classes_and_taint_rules():
    selectors = [{"cel": {"expression": "device.driver == 'd'"}}]
    spec = {"selectors": selectors, "extendedResourceName": "example.com/gpu"}
    manifest = {"metadata": {"name": "gpu"}, "spec": spec}
    found = compile_device_class(validate("DeviceClass", manifest, source="a.yaml"))
    assert (found.selectors, found.extended_resource) == (
        ("device.driver == 'd'",),
        "example.com/gpu",
    )
    taint = {"key": "k", "effect": "NoExecute"}
    rule = {"metadata": {"name": "t"}, "spec": {"taint": taint, "deviceSelector": {"pool": "p"}}}
    every = {"metadata": {"name": "t"}, "spec": {"taint": taint}}
    found = compile_taint_rule(validate("DeviceTaintRule", rule, source="a.yaml"))
    assert (found.taint, found.pool, found.driver) == (Taint("k", "", "NoExecute"), "p", None)
    assert compile_taint_rule(validate("DeviceTaintRule", every, source="a.yaml")).pool is None


def test_facts_of_devices_are_sent_as_they_are():
    values = {"a": {"int": 1}, "b": {"bool": True}, "c": {"string": "x"}}
    facts = compile_devices([slice_of({"name": "d0", "attributes": values}, allNodes=True)])
    assert from_wire(DevicesFacts, unpack(pack(to_wire(facts)))) == facts


def test_claims_of_a_pod_are_names_templates_and_claims_made_from_them():
    manifest = {
        "metadata": {"name": "p"},
        "spec": {
            "resourceClaims": [
                {"name": "a", "resourceClaimName": "shared"},
                {"name": "b", "resourceClaimTemplateName": "t"},
                {"name": "c", "resourceClaimTemplateName": "t"},
                {"name": "d", "resourceClaimTemplateName": "t"},
            ]
        },
        "status": {
            "resourceClaimStatuses": [{"name": "b", "resourceClaimName": "p-b-1"}, {"name": "c"}]
        },
    }
    _, facts = compile_pod(validate("Pod", manifest, source="a.yaml"))
    assert facts.device_claims == (
        PodClaim("a", claim_name="shared"),
        PodClaim("b", template_name="t", generated="p-b-1"),
        PodClaim("c", template_name="t", generated=""),
        PodClaim("d", template_name="t"),
    )
