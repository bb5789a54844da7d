"""Roadstead's own workloads: ten classes, all distinct, a million, devices, the openb trace.

openb: a published trace of a production GPU cluster (`roadstead.fleet.openb`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from roadstead.bench import device_workloads
from roadstead.bench.script import AddNodes, Script, SubmitPods, WaitMode
from roadstead.bench.series import NodeSeries, PodSeries
from roadstead.facts.cluster import NAME_LABEL, ClusterFacts
from roadstead.facts.node import (
    HOSTNAME_LABEL,
    NAME_PLACEHOLDER,
    ZONE_LABEL,
    NodeFacts,
    class_of_node,
)
from roadstead.facts.pod import PodFacts
from roadstead.facts.taints import Toleration
from roadstead.fleet.generate import raw_stream
from roadstead.fleet.openb import GPU_RESOURCE, MIB_BYTES, task_facts
from roadstead.fleet.ten_classes import TEN_CLASSES, TEN_NAMESPACE, ten_node
from roadstead.fleet.trace import Trace
from roadstead.protocol.errors import InputError

NAMESPACE = "bench"
IMAGE = "registry.k8s.io/pause:3.10"
GIB = 1 << 30
TEN_NODES = 150
"""The ten-class nodes repeat after this many: ten kinds, five zones, images on every third."""

FEW_GPU_MILLI = 500
"""Maximum GPU request of a pod of ten-class workloads, so that GPUs suffice."""


@dataclass(frozen=True, slots=True)
class RoadsteadCase:
    """One of Roadstead's workloads. sizes: (nodes, pods); the first one is the default.

    make: builds the script from name, nodes, pods and seed; most workloads ignore the seed.
    """

    name: str
    sizes: tuple[tuple[int, int], ...]
    make: Callable[[str, int, int, int], Script]


def size_name(nodes: int, pods: int) -> str:
    return f"{nodes}Nodes_{pods}Pods"


def _script(name: str, nodes: NodeSeries, pods: PodSeries) -> Script:
    label = ((NAME_LABEL, pods.namespace),)
    cluster = ClusterFacts(namespaces=((pods.namespace, label),))
    return Script(name, (AddNodes(nodes), SubmitPods(pods, WaitMode.BOUND, measured=True)), cluster)


def ten_classes(name: str, nodes: int, pods: int, seed: int) -> Script:
    """Ten pod classes in a seeded order, of which ten pods fit on each node."""
    node_classes = tuple(class_of_node(ten_node(index)) for index in range(min(nodes, TEN_NODES)))
    classes = tuple(map(_less_scarce, TEN_CLASSES))
    # Equal numbers of each class, in the order of random numbers.
    column = np.argsort(raw_stream(seed, "bench order", pods), kind="stable") % len(classes)
    series = PodSeries(pods, TEN_NAMESPACE, classes, class_of=column.astype(np.int32))
    return _script(name, NodeSeries(node_classes, nodes), series)


def _less_scarce(facts: PodFacts) -> PodFacts:
    """The class, changed to need less of what is scarce: GPUs, and nodes for host ports."""
    requests = dict(facts.requests)
    if requests.get(GPU_RESOURCE, 0) > FEW_GPU_MILLI:
        requests[GPU_RESOURCE] = FEW_GPU_MILLI
        return replace(facts, requests=tuple(sorted(requests.items())))
    if facts.host_ports:
        return replace(facts, tolerations=(*facts.tolerations, Toleration("", "Exists")))
    return facts


def all_distinct(name: str, nodes: int, pods: int, seed: int) -> Script:
    """Pods that are all different, on nodes of twelve sizes in four zones."""
    node_classes = tuple(_mixed_node(index) for index in range(12))
    series = PodSeries(pods, NAMESPACE, make_class=_distinct_pod)
    return _script(name, NodeSeries(node_classes, nodes), series)


def _mixed_node(index: int) -> NodeFacts:
    cpu, memory = 32_000 + 1000 * (index % 4), (128 + 32 * (index % 3)) * GIB
    return _node(cpu, memory, f"zone-{index % 4}")


def _node(cpu_milli: int, memory_bytes: int, zone: str) -> NodeFacts:
    return NodeFacts(
        "",
        labels=((HOSTNAME_LABEL, NAME_PLACEHOLDER), (ZONE_LABEL, zone)),
        allocatable=(("cpu", cpu_milli), ("memory", memory_bytes)),
        allocatable_pods=110,
    )


def _distinct_pod(number: int) -> PodFacts:
    return _pod(100 + number % 400, 256 * MIB_BYTES + number * 4096)


def _pod(cpu_milli: int, memory_bytes: int) -> PodFacts:
    return task_facts(
        NAMESPACE, labels=(), cpu_milli=cpu_milli, memory_bytes=memory_bytes, gpu_milli=0,
        models=(), image=IMAGE,
    )  # fmt: skip


def million(name: str, nodes: int, pods: int, seed: int) -> Script:
    """Identical pods on identical nodes in ten zones."""
    node_classes = tuple(_node(4000, 32 * GIB, f"zone-{zone}") for zone in range(10))
    series = PodSeries(pods, NAMESPACE, (_pod(100, 500 * MIB_BYTES),))
    return _script(name, NodeSeries(node_classes, nodes), series)


def openb(name: str, trace: Trace) -> Script:
    """The pods of a trace in trace order, on the trace's nodes; some pods fit on no node."""
    if not trace.pod_names or not trace.node_names:
        raise InputError("has no pods or no nodes", source=trace.source)
    node_classes = tuple(trace.node_classes[index] for index in trace.node_class.tolist())
    nodes = NodeSeries(node_classes, len(node_classes), names=trace.node_names)
    pods = PodSeries(
        len(trace.pod_names),
        trace.pod_classes[0].namespace,
        trace.pod_classes,
        names=trace.pod_names,
        uids=trace.pod_uids,
        class_of=trace.pod_class,
    )
    submit = SubmitPods(pods, WaitMode.IDLE, measured=True)
    cluster = ClusterFacts(namespaces=trace.namespaces)
    return Script(name, (AddNodes(nodes), submit), cluster, notes=(f"Trace: {trace.source}.",))


def read_openb(path: Path) -> Trace:
    """Read a trace file, or the folder of openb's CSV files. Raises InputError."""
    if path.is_dir():
        from roadstead.fleet.openb import import_openb

        return import_openb(path)
    from roadstead.fleet.trace_file import read_trace

    return read_trace(path)


ROADSTEAD_CASES = (
    RoadsteadCase(
        "TenClasses",
        ((5_000, 50_000), (1_000, 10_000), (50_000, 100_000), (1_000_000, 1_000_000)),
        ten_classes,
    ),
    RoadsteadCase(
        "AllDistinct",
        ((5_000, 10_000), (1_000, 5_000), (50_000, 10_000), (1_000_000, 1_000)),
        all_distinct,
    ),
    RoadsteadCase("TenClaimShapes", ((5_000, 10_000), (500, 1_000)), device_workloads.ten_claims),
    RoadsteadCase("FilledDevices", ((12_500, 95_000), (125, 950)), device_workloads.filled_fleet),
    RoadsteadCase("Million", ((1_000_000, 1_000_000),), million),
)
OPENB = "openb"
