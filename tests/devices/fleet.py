"""A small fleet with devices: facts of nodes, slices, claims and pods."""

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import (
    ClaimSpec,
    DeviceClaimFacts,
    DeviceClassFacts,
    DeviceFacts,
    DeviceRequest,
    DevicesFacts,
    Placement,
    SliceFacts,
)
from roadstead.facts.pod import UNWRITTEN_CLAIM_NAME, ExtendedRequest, PodClaim, PodReference
from tests.builders import node, pod

DRIVER = "gpu.example.com"
CLASS = DeviceClassFacts("gpu", (f"device.driver == '{DRIVER}'",))


def slice_of(name, *devices, **fields):
    """Return the only slice of a node's pool."""
    facts = tuple(DeviceFacts(each) for each in devices)
    return SliceFacts(name, DRIVER, name, 1, 1, Placement(node_name=name), devices=facts, **fields)


def claim(name, count=1, **fields):
    spec = ClaimSpec((DeviceRequest("r", "gpu", count=count),))
    fields = {"uid": f"uid-{name}", "spec": spec, **fields}
    return DeviceClaimFacts("default", name, **fields)


def owned(name, uid, **fields):
    """Return the claim that was made from a template for a pod."""
    return claim(name, owner_uid=uid, owner_kind="Pod", **fields)


def using(uid, *names, **fields):
    """Return the facts of a pod that names claims."""
    claims = tuple(PodClaim(name, claim_name=name) for name in names)
    return pod(device_claims=claims, claims_as=PodReference(uid, uid), **fields)


def with_template(uid, generated, **fields):
    """Return the facts of a pod with a claim from a template; generated: None if not made."""
    claims = (PodClaim("g", template_name="t", generated=generated),)
    return pod(device_claims=claims, claims_as=PodReference(uid, uid), **fields)


GPU = "example.com/gpu"
SERVING = DeviceClassFacts("gpu", CLASS.selectors, extended_resource=GPU)


def asking(uid, *counts, claims=(), **fields):
    """Return the facts of a pod of containers that request devices as an extended resource."""
    extended = tuple(
        ExtendedRequest(f"container-{index}-request-0", GPU, count)
        for index, count in enumerate(counts)
    )
    named = tuple(PodClaim(name, claim_name=name) for name in claims)
    own = PodClaim(UNWRITTEN_CLAIM_NAME, extended=extended)
    who = PodReference(uid, uid)
    return pod(others={GPU: sum(counts)}, device_claims=(*named, own), claims_as=who, **fields)


def left_by(uid, **fields):
    """Return the claim that an earlier attempt made for a pod's extended resources."""
    return owned(f"{uid}-left", uid, is_for_extended_resources=True, **fields)


def devices(*claims, slices=None, classes=(CLASS,)):
    slices = (slice_of("n1", "d0", "d1"),) if slices is None else slices
    return DevicesFacts(tuple(slices), tuple(classes), tuple(claims))


def cluster(*claims, slices=None, classes=(CLASS,)):
    return ClusterFacts(devices=devices(*claims, slices=slices, classes=classes))


N1, N2 = node("n1"), node("n2")
