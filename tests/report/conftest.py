"""A small run with all features: two zones, a node without a zone, and pods without a node."""

from dataclasses import replace

import pytest

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.report.node_use import node_use
from roadstead.report.result import InputDigest, PendingPod, PlacedPod, RunResult

GIB = 1 << 30
GPU = "example.com/gpu-milli"


def node(name, zone="", cpu_milli=4000, gpu_milli=0):
    labels = (("topology.kubernetes.io/zone", zone),) if zone else ()
    allocatable = {"cpu": cpu_milli, "memory": 8 * GIB} | ({GPU: gpu_milli} if gpu_milli else {})
    return NodeFacts(
        name=name,
        labels=labels,
        allocatable=tuple(sorted(allocatable.items())),
        allocatable_pods=10,
    )


def pod(cpu_milli=1000, memory_bytes=GIB, **others):
    requests = {"cpu": cpu_milli, "memory": memory_bytes} | others
    return PodFacts(requests=tuple(sorted(requests.items())))


@pytest.fixture
def result():
    nodes = [node("n-0", "zone-a", gpu_milli=2000), node("n-1", "zone-b"), node("n-2")]
    running, small = pod(500), pod()
    placed = [("n-0", small), ("n-1", small), ("n-0", pod(**{GPU: 500}))]
    too_big = "0/3 nodes are available: 3 Insufficient cpu."
    return RunResult(
        source="test",
        placements=(
            PlacedPod("default/p-1", "u-1", "n-1"),
            PlacedPod("default/p-0", "u-0", "n-0"),
            PlacedPod("default/p-2", "u-2", "n-0"),
        ),
        pending=(
            PendingPod("default/p-4", "u-4", too_big, (("Insufficient cpu", 3),), ("Fit",)),
            PendingPod(
                "default/p-3",
                "u-3",
                "0/3 nodes are available: …",
                (("Insufficient cpu", 1), ("node(s) had [odd] taint", 2)),
                ("Fit", "Taints", "Fit"),
            ),
        ),
        node_use=node_use(nodes, [("n-1", running)], placed),
        scheduling_s=0.5,
        elapsed_s=2.0,
        timings_s={"start": 1.2, "schedule": 0.5},
        seed=7,
        command=("roadstead", "schedule"),
        inputs=(InputDigest("cluster.yaml", "ab" * 32),),
        settings={"runtime": "inline"},
        config={"kind": "KubeSchedulerConfiguration"},
        versions={"roadstead": "0.1.0"},
    )


@pytest.fixture
def empty_result(result):
    return replace(
        result,
        placements=(),
        pending=(),
        node_use=node_use([], [], []),
        scheduling_s=0.0,
        elapsed_s=0.0,
        timings_s={},
        source="",
    )
