"""Amounts of GPUs in a trace as devices: slices of the nodes, and templates for the pods' claims.

A trace has the GPUs of a node as one amount of `GPU_RESOURCE`, 1,000 for each GPU, so that half of
one GPU and half of another are as good as a whole one. As devices, each GPU has a capacity of its
own: a pod gets whole GPUs, and a part of one only where a single GPU has that much left.

Parts of a device can be allocated only with the feature gate DRAConsumableCapacity. With it,
kube-scheduler 1.34 has a mistake: for the n-th device of a request it reads the capacity of the
n-th device of the slice, whichever device it tries (`roadstead.devices.chosen_devices`). So each
GPU has a slice of its own here, and each GPU of a pod a request of its own: n is always 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from roadstead.facts.devices import (
    AttributeFacts,
    ClaimSpec,
    DeviceCapacity,
    DeviceClassFacts,
    DeviceFacts,
    DeviceRequest,
    DevicesFacts,
    Placement,
    SliceFacts,
)
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodClaim, PodFacts
from roadstead.fleet.openb import GPU_MILLI, GPU_RESOURCE, GPUS_MAX, MODEL_LABEL
from roadstead.fleet.trace import Trace
from roadstead.protocol.errors import InputError

DRIVER: Final = "gpu.roadstead.dev"
DEVICE_CLASS: Final = DRIVER
CAPACITY: Final = "milli"
MODEL: Final = "model"
CLAIM: Final = "gpu"

CLAIM_GPUS_MAX: Final = 32
"""Most requests of one claim, and most devices (upstream: DeviceRequestsMaxSize)."""


def with_gpu_devices(trace: Trace) -> tuple[Trace, DevicesFacts]:
    """Return the trace without amounts of GPUs, and devices in their place.

    Each pod with GPUs names a template, from which its claim is made when the pod is created.

    Raises:
        InputError: a pod asks for more GPUs than a claim may have, or a node has too many.
    """
    devices = DevicesFacts(
        slices=tuple(_slices(trace.node_list())),
        classes=(DeviceClassFacts(DEVICE_CLASS, (f'device.driver == "{DRIVER}"',)),),
        templates=tuple(sorted(_templates(trace.pod_classes).items())),
    )
    nodes = tuple(
        replace(each, allocatable=_without_gpus(each.allocatable)) for each in trace.node_classes
    )
    _check_claims(trace)
    pods = tuple(map(_with_claim, trace.pod_classes))
    return replace(trace, node_classes=nodes, pod_classes=pods), devices


def _gpu_milli(amounts: Iterable[tuple[str, int]]) -> int:
    return next((amount for name, amount in amounts if name == GPU_RESOURCE), 0)


def _without_gpus(amounts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple(each for each in amounts if each[0] != GPU_RESOURCE)


def _slices(nodes: Iterable[NodeFacts]) -> Iterator[SliceFacts]:
    """Yield the slices: a pool for each node with GPUs, in it a slice for each GPU."""
    for node in nodes:
        devices = _devices(node)
        for device in devices:
            yield SliceFacts(
                f"{node.name}-{device.name}",
                DRIVER,
                node.name,
                generation=1,
                slices_in_pool=len(devices),
                placement=Placement(node_name=node.name),
                devices=(device,),
            )


def _devices(node: NodeFacts) -> tuple[DeviceFacts, ...]:
    """Return the GPUs of a node; the last is a part if the amount is no whole number of GPUs."""
    milli = _gpu_milli(node.allocatable)
    count = -(-milli // GPU_MILLI)
    if count > GPUS_MAX:
        problem = f"has more than {GPUS_MAX} GPUs"
        raise InputError(problem, obj=f"node {node.name}", field=GPU_RESOURCE, value=str(milli))
    model = dict(node.labels).get(MODEL_LABEL)
    attributes = () if model is None else (AttributeFacts(MODEL, "string", model),)
    return tuple(
        DeviceFacts(
            f"gpu-{index}",
            attributes,
            (DeviceCapacity(CAPACITY, str(min(GPU_MILLI, milli - index * GPU_MILLI))),),
            allows_several=True,
        )
        for index in range(count)
    )


def _templates(classes: Iterable[PodFacts]) -> dict[str, ClaimSpec]:
    """Return the specs of claims, by namespace and name of their template."""
    return {
        f"{facts.namespace}/{_template(milli)}": _spec(milli)
        for facts in classes
        if (milli := _gpu_milli(facts.requests))
    }


def _template(milli: int) -> str:
    return f"{CLAIM}-{milli}"


def _spec(milli: int) -> ClaimSpec:
    """Return a claim of whole GPUs, and of a part of one more for the remainder of the amount."""
    starts = range(0, milli, GPU_MILLI)
    amounts = (str(min(GPU_MILLI, milli - start)) for start in starts)
    return ClaimSpec(
        tuple(
            DeviceRequest(f"gpu-{index}", DEVICE_CLASS, capacity=((CAPACITY, amount),))
            for index, amount in enumerate(amounts)
        )
    )


def _check_claims(trace: Trace) -> None:
    """Raise InputError if the pods of a class want more GPUs than one claim may have.

    It names the first of these pods; a class without pods is not checked.
    """
    for code, facts in enumerate(trace.pod_classes):
        milli = _gpu_milli(facts.requests)
        if milli > CLAIM_GPUS_MAX * GPU_MILLI and (trace.pod_class == code).any():
            name = trace.pod_names[int((trace.pod_class == code).argmax())]
            problem = f"is more than {CLAIM_GPUS_MAX} GPUs, the most that one claim may have"
            where = f"Pod {facts.namespace}/{name}"
            raise InputError(problem, obj=where, field=GPU_RESOURCE, value=str(milli))


def _with_claim(facts: PodFacts) -> PodFacts:
    milli = _gpu_milli(facts.requests)
    if not milli:
        return facts
    return replace(
        facts,
        requests=_without_gpus(facts.requests),
        device_claims=(PodClaim(CLAIM, template_name=_template(milli)),),
    )
