"""Roadstead's own workloads of devices: ten shapes of claims, and a fleet that is nearly full."""

from __future__ import annotations

from functools import partial

from roadstead.bench.device_objects import DeviceObjects, slice_of_node
from roadstead.bench.script import AddNodes, Script, SubmitPods, WaitMode
from roadstead.bench.series import NodeSeries, PodSeries
from roadstead.devices.cel_selectors import compile_cel
from roadstead.facts.cluster import NAME_LABEL, ClusterFacts
from roadstead.facts.devices import (
    AttributeFacts,
    ClaimSpec,
    DeviceCapacity,
    DeviceClassFacts,
    DeviceConstraint,
    DeviceFacts,
    DeviceRequest,
    ExactRequest,
)
from roadstead.facts.node import HOSTNAME_LABEL, NAME_PLACEHOLDER, NodeFacts
from roadstead.facts.pod import PodClaim, PodFacts

NAMESPACE, DRIVER, CLASS = "bench", "gpu.example.com", "gpu"
DEVICES_PER_NODE = 8
MODELS = ("a", "b")

_OF_DRIVER = f'device.driver == "{DRIVER}"'
_MODEL_A = f'device.attributes["{DRIVER}"].model == "a"'
_MODEL_B = f'device.attributes["{DRIVER}"].model == "b"'
_LARGE = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("60Gi")) >= 0'
_SAME_SOCKET = DeviceConstraint((), f"{DRIVER}/numa")


def _request(count: int = 1, *selectors: str, name: str = "r") -> DeviceRequest:
    return DeviceRequest(name, CLASS, selectors, count=count)


_ALTERNATIVES = DeviceRequest(
    "r", alternatives=(ExactRequest("a", CLASS, (_MODEL_A,)), ExactRequest("b", CLASS, count=2))
)

SHAPES = (
    ClaimSpec((_request(),)),
    ClaimSpec((_request(2),)),
    ClaimSpec((_request(4),)),
    ClaimSpec((_request(1, _MODEL_A),)),
    ClaimSpec((_request(1, _MODEL_B),)),
    ClaimSpec((_request(1, _LARGE),)),
    ClaimSpec((_request(2, _MODEL_B, _LARGE),)),
    ClaimSpec((_request(1, _MODEL_A, name="x"), _request(1, _MODEL_A, _LARGE, name="y"))),
    ClaimSpec((_request(2),), (_SAME_SOCKET,)),
    ClaimSpec((_ALTERNATIVES,)),
)
"""Ten shapes: counts, models, sizes, two requests, one socket, and alternatives."""


def ten_claims(name: str, nodes: int, pods: int, seed: int) -> Script:
    """Pods of ten claim shapes in turn, on nodes with eight devices each.

    seed: unused; the function of every workload receives it.
    """
    return _script(name, nodes, pods, SHAPES)


def filled_fleet(name: str, nodes: int, pods: int, seed: int) -> Script:
    """Pods with one device each, of which the last twentieth is measured.

    pods: a little below 8 per node, so that the fleet is nearly full then. seed: unused.
    """
    return _script(name, nodes, pods, SHAPES[:1], measured=max(1, pods // 20))


def _script(
    name: str, nodes: int, pods: int, shapes: tuple[ClaimSpec, ...], measured: int = 0
) -> Script:
    """Return the script of a workload.

    measured: how many of the last pods are measured; 0 for all. The pods before them are submitted
    first, as a separate step.
    """
    _check_selectors(shapes)
    objects = DeviceObjects(classes=[DeviceClassFacts(CLASS, (_OF_DRIVER,))])
    objects.specs = {(NAMESPACE, f"shape-{n}"): shape for n, shape in enumerate(shapes)}
    objects.slices = [
        slice_of_node(DRIVER, f"node-{number}", _DEVICES[number % len(MODELS)])
        for number in range(nodes)
    ]
    pod_classes = tuple(map(_pod, range(len(shapes))))
    submits: list[SubmitPods] = []
    for count, is_measured in ((pods - measured, measured == 0), (measured, True)):
        first = 0 if not submits else pods - measured
        if count:
            series = PodSeries(count, NAMESPACE, pod_classes, first=first)
            # Each pod gets its own claim, made from its template; `objects.facts()` has them.
            series = objects.with_claims(series)
            submits.append(SubmitPods(series, WaitMode.BOUND, measured=is_measured))
    label = ((NAME_LABEL, NAMESPACE),)
    cluster = ClusterFacts(namespaces=((NAMESPACE, label),), devices=objects.facts())
    return Script(name, (AddNodes(NodeSeries((_NODE,), nodes)), *submits), cluster)


def _check_selectors(shapes: tuple[ClaimSpec, ...]) -> None:
    """Compile all selectors, as reading them from manifests does, before any pod is measured."""
    requests = [request for shape in shapes for request in shape.requests]
    for each in (*requests, *(choice for request in requests for choice in request.alternatives)):
        for expression in (_OF_DRIVER, *each.selectors):
            compile_cel(expression)


_NODE = NodeFacts(
    "",
    labels=((HOSTNAME_LABEL, NAME_PLACEHOLDER),),
    allocatable=(("cpu", 64_000), ("memory", 512 << 30)),
    allocatable_pods=110,
)


def _pod(shape: int) -> PodFacts:
    return PodFacts(
        NAMESPACE,
        requests=(("cpu", 100), ("memory", 500 << 20)),
        nonzero_cpu_milli=100,
        nonzero_memory_bytes=500 << 20,
        images=("registry.k8s.io/pause:3.10",),
        container_count=1,
        device_claims=(PodClaim("gpu", template_name=f"shape-{shape}"),),
    )


def _device(model: str, number: int) -> DeviceFacts:
    socket = number // (DEVICES_PER_NODE // 2)
    return DeviceFacts(
        f"gpu-{number}",
        (AttributeFacts("model", "string", model), AttributeFacts("numa", "int", socket)),
        (DeviceCapacity("memory", "80Gi" if socket else "40Gi"),),
    )


_DEVICES = tuple(tuple(map(partial(_device, each), range(DEVICES_PER_NODE))) for each in MODELS)
