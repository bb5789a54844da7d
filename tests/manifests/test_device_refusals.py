"""Devices, classes, claims and pods with claims that an API server of 1.34 refuses.

Rules: pkg/apis/resource/validation/validation.go and pkg/apis/core/validation/validation.go.
"""

import pytest

from roadstead.protocol.errors import InputError
from tests.manifests.test_devices import GPU, a_claim, a_slice, device, pod, read, request, thing

TEN = {"value": "10"}
SET = {"name": "s", "counters": {"m": TEN}}


def capacity(value="10", *, shared=True, **policy):
    found = {"value": value, "requestPolicy": policy}
    return device(allowMultipleAllocations=shared, capacity={"m": found})


def selecting(*terms):
    return a_slice(nodeName=None, nodeSelector={"nodeSelectorTerms": list(terms)})


def term(**requirement):
    return {"matchExpressions": [{"key": "a", **requirement}]}


def tolerating(**toleration):
    return a_claim(request(exactly=GPU | {"tolerations": [toleration]}))


def configured(**opaque):
    return a_claim(request(), config=[{"opaque": {"driver": "d.x", **opaque}}])


def consuming(*counters, shared=(SET,)):
    return a_slice(
        sharedCounters=list(shared), devices=[{"name": "d", "consumesCounters": list(counters)}]
    )


def consumed(counters):
    return {"counterSet": "s", "counters": counters}


def using(*containers, claims=({"name": "g", "resourceClaimName": "c"},)):
    found = pod("x", *claims)
    found["spec"]["containers"] = [
        {"name": f"c{n}", "resources": {"claims": each}} for n, each in enumerate(containers)
    ] or [{"name": "c"}]
    return found


def served(name):
    return thing("DeviceClass", {"extendedResourceName": name})


D0, R0, POLICY = "spec.devices[0]", "spec.devices.requests[0].exactly", "capacity.m.requestPolicy"
STEPS = {"min": "2", "max": "8", "step": "3"}

REFUSED = [
    (device(bindingConditions=["a"]), f"{D0}.bindingFailureConditions", "is required with"),
    (device(bindingFailureConditions=["a"]), f"{D0}.bindingConditions", "is required with"),
    (
        device(bindingConditions=["-- x"], bindingFailureConditions=["a"]),
        f"{D0}.bindingConditions[0]",
        "name part must consist of",
    ),
    (
        device(bindingConditions=["a", "a"], bindingFailureConditions=["b"]),
        f"{D0}.bindingConditions[1]",
        "must be unique",
    ),
    (
        device(bindingConditions=["a"], bindingFailureConditions=["a"]),
        f"{D0}.bindingFailureConditions[0]",
        "must be unique",
    ),
    (a_slice(sharedCounters=[SET | {"name": "UP/.."}]), "spec.sharedCounters[0].name", "RFC 1123"),
    (
        a_slice(sharedCounters=[{"name": "s", "counters": {}}]),
        "spec.sharedCounters[0].counters",
        "is required",
    ),
    (
        a_slice(sharedCounters=[{"name": "s", "counters": {"a b": TEN}}]),
        "spec.sharedCounters[0].counters",
        "RFC 1123",
    ),
    (consuming(consumed({})), f"{D0}.consumesCounters[0].counters", "is required"),
    (
        consuming(consumed({"m": TEN}), consumed({"m": TEN})),
        f"{D0}.consumesCounters[1].counterSet",
        "must be unique",
    ),
    (capacity(shared=False, default="1"), f"{D0}.{POLICY}", "allowMultipleAllocations must be"),
    (capacity(default="1", validValues=["1"], validRange={"min": "1"}), f"{D0}.{POLICY}", "only"),
    (capacity(validValues=["1"]), f"{D0}.{POLICY}.default", "is required"),
    (capacity(validRange={"min": "1"}), f"{D0}.{POLICY}.default", "is required"),
    (capacity(default="1", validValues=["2"]), f"{D0}.{POLICY}.validValues", "one of the values"),
    (
        capacity(default="1", validValues=["1", "1"]),
        f"{D0}.{POLICY}.validValues[1]",
        "unique, in ascending order",
    ),
    (capacity(default="1", validValues=["1", "11"]), f"{D0}.{POLICY}.validValues[1]", "capacity"),
    (capacity(default="1", validRange={}), f"{D0}.{POLICY}.validRange.min", "is required"),
    (capacity(default="1", validRange={"min": "2"}), f"{D0}.{POLICY}.validRange.min", "default"),
    (capacity(default="11", validRange={"min": "11"}), f"{D0}.{POLICY}.validRange.min", "capacity"),
    (
        capacity(default="5", validRange={"min": "5", "max": "1"}),
        f"{D0}.{POLICY}.validRange.max",
        "no less than the minimum",
    ),
    (
        capacity(default="9", validRange={"min": "5", "max": "7"}),
        f"{D0}.{POLICY}.validRange.max",
        "no less than the default",
    ),
    (
        capacity(default="1", validRange={"min": "1", "step": "0"}),
        f"{D0}.{POLICY}.validRange.step",
        "greater than zero",
    ),
    (
        capacity(default="1", validRange={"min": "1", "step": "10"}),
        f"{D0}.{POLICY}.validRange.step",
        "one step",
    ),
    (capacity(default="3", validRange=STEPS), f"{D0}.{POLICY}.validRange.step", "a number of st"),
    (
        capacity(default="5", validRange=STEPS | {"max": "9"}),
        f"{D0}.{POLICY}.validRange.step",
        "a number of steps",
    ),
    (device(taints=[{"key": "k", "effect": "None"}]), f"{D0}.taints[0].effect", "must be one of"),
    (a_slice(nodeName="N 1"), "spec.nodeName", "RFC 1123"),
    (selecting(term(operator="Foo")), "spec.nodeSelector.nodeSelectorTerms[0]", "Unsupported"),
    (selecting(term(operator="In")), "spec.nodeSelector.nodeSelectorTerms[0]", "values"),
    (tolerating(key="a", operator="Exists", value="x"), f"{R0}.tolerations[0].value", "empty"),
    (tolerating(key="a b", operator="Exists"), f"{R0}.tolerations[0].key", "name part"),
    (tolerating(key="a", value="a b"), f"{R0}.tolerations[0].value", "valid label"),
    (
        tolerating(operator="Exists", effect="PreferNoSchedule"),
        f"{R0}.tolerations[0].effect",
        "NoSchedule or NoExecute",
    ),
    (
        a_claim(request(), constraints=[{"requests": ["r", "r"], "matchAttribute": "a.b/c"}]),
        "spec.devices.constraints[0].requests[1]",
        "must be unique",
    ),
    (configured(), "spec.devices.config[0].opaque.parameters", "is required"),
    (
        configured(parameters={"a": "x" * 10_240}),
        "spec.devices.config[0].opaque.parameters",
        "no more than 10240 bytes",
    ),
    (served("not valid"), "spec.extendedResourceName", "valid extended resource name"),
    (served("cpu"), "spec.extendedResourceName", "valid extended resource name"),
    (served("kubernetes.io/foo"), "spec.extendedResourceName", "valid extended resource name"),
    (
        using(claims=[{"name": "g", "resourceClaimName": "c"}] * 2),
        "spec.resourceClaims[1].name",
        "must be unique",
    ),
    (
        using(claims=[{"name": "g", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}]),
        "spec.resourceClaims[0]",
        "exactly one of",
    ),
    (using(claims=[{"name": "g"}]), "spec.resourceClaims[0]", "exactly one of"),
    (using(claims=[{"name": "G", "resourceClaimName": "c"}]), "spec.resourceClaims[0].name", "RFC"),
    (
        using(claims=[{"name": "g", "resourceClaimName": "../c"}]),
        "spec.resourceClaims[0].resourceClaimName",
        "RFC 1123",
    ),
    (
        using([{"name": "g"}], [{"name": "no"}]),
        "spec.containers[1].resources.claims[0]",
        "must be the name of an entry",
    ),
    (using([{"name": "g"}], claims=()), "spec.containers[0].resources.claims[0]", "must be the"),
    (using([{"name": "g"}] * 1, [{"name": "g"}] * 2), "spec.containers[1].resources", "unique"),
]


@pytest.mark.parametrize(
    ("document", "field", "rule"), REFUSED, ids=[f"{n}" for n in range(len(REFUSED))]
)
def test_it_is_refused_with_object_field_value_and_rule(document, field, rule):
    with pytest.raises(InputError) as caught:
        read(document)

    assert caught.value.obj == f'{document["kind"]} "x"'
    assert caught.value.field.startswith(field)
    assert rule in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_too_many_counters_are_refused_with_their_number():
    sets = [{"name": name, "counters": {f"m{n}": TEN for n in range(17)}} for name in ("s", "t")]
    with pytest.raises(InputError) as caught:
        read(a_slice(sharedCounters=sets))

    assert caught.value.value == '"34"'


@pytest.mark.parametrize(
    "document",
    [
        device(bindingConditions=["a"], bindingFailureConditions=["b.c/d"]),
        capacity(),
        capacity(default="100"),
        capacity(default="100", validRange={"min": "1"}),
        capacity(default="5", validRange=STEPS),
        capacity(default="2", validValues=["1", "2", "10"]),
        tolerating(value="x"),
        tolerating(key="a", effect="NoExecute"),
        configured(parameters={}),
        selecting(term(operator="In", values=["b"])),
        consuming(consumed({"m": TEN})),
        served("example.com/gpu"),
        using([{"name": "g", "request": "a"}, {"name": "g", "request": "b"}], [{"name": "g"}]),
    ],
    ids=lambda document: document["kind"],
)
def test_objects_that_an_api_server_accepts_are_read(document):
    manifests = read(document)

    found = (
        *manifests.resource_slices,
        *manifests.resource_claims,
        *manifests.device_classes,
        *manifests.pods,
    )
    assert [(each.kind, each.metadata.name) for each in found] == [(document["kind"], "x")]
    assert manifests.unknown == ()
