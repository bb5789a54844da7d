"""Objects of resource.k8s.io: what the API server refuses, earlier versions, made claims."""

import io
import json

import pytest

from roadstead.facts.compile_devices import compile_claim_spec, compile_slice
from roadstead.manifests import read_manifests
from roadstead.manifests.creation import create
from roadstead.protocol.errors import InputError

POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
GPU = {"deviceClassName": "gpu"}


def read(*documents, is_strict=False):
    text = "\n".join(json.dumps(each) for each in documents)
    return read_manifests(["-"], stdin=io.BytesIO(text.encode()), is_strict=is_strict)


def thing(kind, spec, version="v1", **metadata):
    head = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind}
    return {**head, "metadata": {"name": "x", **metadata}, "spec": spec}


def a_slice(version="v1", **fields):
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": POOL, "devices": []}
    return thing("ResourceSlice", spec | fields, version)


def device(**fields):
    return a_slice(devices=[{"name": "d0", **fields}])


def a_claim(*requests, version="v1", kind="ResourceClaim", **fields):
    devices = {"requests": [*requests], **fields}
    spec = {"devices": devices}
    return thing(kind, {"spec": spec} if kind.endswith("Template") else spec, version)


def request(name="r", **fields):
    return {"name": name, **(fields or {"exactly": GPU})}


def selecting(expression):
    return {"selectors": [{"cel": {"expression": expression}}]}


NESTED = "true"
for variable in "abcde":
    NESTED = f"device.attributes.all({variable}, {NESTED})"

HOSTILE = [
    (a_slice(driver="UPPER"), "spec.driver", "lowercase RFC 1123"),
    (a_slice(driver="a" * 64), "spec.driver", "no more than 63"),
    (a_slice(pool=POOL | {"name": "a//b"}), "spec.pool.name", "lowercase RFC 1123"),
    (a_slice(pool=POOL | {"resourceSliceCount": 0}), "spec.pool.resourceSliceCount", "greater"),
    (a_slice(pool=POOL | {"generation": -1}), "spec.pool.generation", "no less than 0"),
    (a_slice(nodeName=None), "spec", "exactly one of `nodeName`"),
    (a_slice(allNodes=True), "spec", "exactly one of `nodeName`"),
    (a_slice(devices=[{"name": "d"}] * 2), "spec.devices[1].name", "must be unique"),
    (a_slice(devices=[{"name": "d"}] * 129), "spec.devices", "no more than 128 items"),
    (a_slice(devices=[{"name": "../d"}]), "spec.devices[0].name", "RFC 1123 label"),
    (device(attributes={"a": {}}), "spec.devices[0].attributes.a", "exactly one of `int`"),
    (device(attributes={"a": {"int": "1"}}), "spec.devices[0].attributes.a.int", "whole number"),
    (device(attributes={"a-b": {"int": 1}}), "spec.devices[0].attributes", "C identifier"),
    (
        device(attributes={"a": {"version": "1.0"}}),
        "spec.devices[0].attributes.a.version",
        "semver.org",
    ),
    (device(capacity={"m": {"value": "-1"}}), "spec.devices[0].capacity.m", "negative"),
    (
        device(consumesCounters=[{"counterSet": "no", "counters": {}}]),
        "spec.devices[0].consumesCounters[0].counterSet",
        "is not in sharedCounters",
    ),
    (device(taints=[{"key": "k"}]), "spec.devices[0].taints[0].effect", "is required"),
    (a_claim(request(), request()), "spec.devices.requests[1].name", "must be unique"),
    (
        a_claim({"name": "r"}),
        "spec.devices.requests[0].name",
        "exactly one of `exactly`, `firstAvailable`",
    ),
    (
        a_claim(request(exactly={"deviceClassName": "gpu", "allocationMode": "Some"})),
        "spec.devices.requests[0].exactly.allocationMode",
        "must be one of",
    ),
    (
        a_claim(request(exactly=GPU | {"allocationMode": "All", "count": 2})),
        "spec.devices.requests[0].exactly.count",
        "must not be given",
    ),
    (a_claim(*(request(f"r{n}") for n in range(33))), "spec.devices.requests", "32 items"),
    (
        a_claim(request(), constraints=[{"requests": ["no"], "matchAttribute": "a/b"}]),
        "spec.devices.constraints[0].requests[0]",
        "name of a request",
    ),
    (
        a_claim(request(), constraints=[{"matchAttribute": "b"}]),
        "spec.devices.constraints[0]",
        "fully qualified",
    ),
    (
        a_claim(request(exactly=GPU | selecting("device.driver =="))),
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "Syntax error",
    ),
    (
        a_claim(request(exactly=GPU | selecting("1 + 'a'"))),
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "no matching overload",
    ),
    (
        a_claim(request(exactly=GPU | selecting("'a'")), kind="ResourceClaimTemplate"),
        "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "must evaluate to bool",
    ),
    (
        thing("DeviceClass", selecting(NESTED)),
        "spec.selectors[0].cel.expression",
        "exceeds the limit of 1,000,000",
    ),
    (
        thing("DeviceClass", selecting("a" * 10_241)),
        "spec.selectors[0].cel.expression",
        "no more than 10240 characters",
    ),
    (
        thing("DeviceTaintRule", {"taint": {"key": "", "effect": "NoExecute"}}, "v1alpha3"),
        "spec.taint.key",
        "must not be empty",
    ),
]


@pytest.mark.parametrize(
    ("document", "field", "rule"), HOSTILE, ids=[f"{n}" for n in range(len(HOSTILE))]
)
def test_objects_that_the_api_server_refuses_fail_with_object_and_field(document, field, rule):
    with pytest.raises(InputError) as caught:
        read(document)

    assert caught.value.obj == f'{document["kind"]} "x"'
    assert caught.value.field.startswith(field)
    assert rule in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_misspelled_field_is_left_out_with_a_warning():
    document = a_claim(request(exactly=GPU | {"allocationmode": "All"}))

    (warning,) = read(document).unknown

    assert "allocationMode" in warning
    with pytest.raises(InputError, match="allocationmode"):
        read(document, is_strict=True)


def test_an_alternative_has_no_admin_access():
    found = read(a_claim(request(firstAvailable=[GPU | {"name": "a", "adminAccess": True}])))

    (warning,) = found.unknown
    assert 'firstAvailable[0]: "adminAccess" is no field' in warning
    (one,) = compile_claim_spec(found.resource_claims[0].spec).requests
    assert not one.alternatives[0].has_admin_access
    found = read(a_claim(request(exactly=GPU | {"adminAccess": True})))
    assert compile_claim_spec(found.resource_claims[0].spec).requests[0].has_admin_access


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1"])
def test_earlier_versions_are_read_as_v1(version):
    flat = version == "v1beta1"
    values = {"attributes": {"a": {"int": 1}}}
    one = {"name": "d0", "basic": values} if flat else {"name": "d0", **values}
    exact = GPU | {"count": 2}
    wanted = {"name": "r", **exact} if flat else {"name": "r", "exactly": exact}

    found = read(
        a_slice(version, devices=[one]),
        a_claim(wanted, version=version),
        a_claim(wanted, version=version, kind="ResourceClaimTemplate"),
    )

    (facts,) = found.resource_slices
    assert compile_slice(facts).devices[0].attributes[0].value == 1
    specs = found.resource_claims[0].spec, found.resource_claim_templates[0].spec.spec
    assert [compile_claim_spec(each).requests[0].count for each in specs] == [2, 2]


def test_another_version_is_refused():
    with pytest.raises(InputError, match=r"want resource\.k8s\.io/v1"):
        read(a_slice("v1alpha2"))


def pod(name, *claims, **status):
    spec = {"containers": [{"name": "c"}], "resourceClaims": list(claims)}
    meta = {"name": name, "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


FROM_TEMPLATE = {"name": "g", "resourceClaimTemplateName": "x"}


def created(*documents):
    manifests = read(*documents)
    return create(manifests, manifests.pods, ())


def test_claims_are_made_from_templates_for_each_pod():
    template = a_claim(request(), kind="ResourceClaimTemplate")
    template["spec"]["metadata"] = {"labels": {"a": "b"}}

    found = created(template, pod("p", FROM_TEMPLATE), pod("q", FROM_TEMPLATE))
    again = created(template, pod("p", FROM_TEMPLATE), pod("q", FROM_TEMPLATE))

    assert found.device_claims == again.device_claims, "names are derived, not drawn"
    first, second = found.device_claims
    assert first.metadata.name.startswith("p-g-")
    assert first.metadata.labels == {"a": "b"}
    assert first.metadata.annotations == {"resource.kubernetes.io/pod-claim-name": "g"}
    assert (first.metadata.controller.kind, first.metadata.controller.uid) == ("Pod", "uid-p")
    names = [pod.status.resource_claim_statuses[0].resource_claim_name for pod in found.pods]
    assert names == [first.metadata.name, second.metadata.name]


def test_a_pod_without_its_template_has_no_claim():
    found = created(pod("p", FROM_TEMPLATE))
    assert found.device_claims == ()
    assert found.pods[0].status.resource_claim_statuses == ()


def test_a_claim_that_was_made_before_is_used_again():
    template = a_claim(request(), kind="ResourceClaimTemplate")
    (claim,) = created(template, pod("p", FROM_TEMPLATE)).device_claims
    document = {
        "apiVersion": "resource.k8s.io/v1",
        **claim.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True),
        "kind": "ResourceClaim",
    }

    found = created(template, document, pod("p", FROM_TEMPLATE))

    assert [each.metadata.name for each in found.device_claims] == [claim.metadata.name]
    (status,) = found.pods[0].status.resource_claim_statuses
    assert status.resource_claim_name == claim.metadata.name


def test_a_status_of_the_manifest_is_kept():
    template = a_claim(request(), kind="ResourceClaimTemplate")
    status = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "given"}]}
    found = created(template, pod("p", FROM_TEMPLATE, **status))
    assert found.device_claims == ()
