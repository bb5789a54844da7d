"""Fleets and pods generated from a seed.

The same seed gives the same trace on every platform and version. Only the raw stream of PCG64,
which NumPy promises never to change, and integer arithmetic on it are used; NumPy makes no such
promise for `Generator.choice` and similar methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.cluster import NAME_LABEL
from roadstead.facts.node import HOSTNAME_LABEL, ZONE_LABEL, NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.fleet.openb import (
    GPU_MILLI,
    GPU_RESOURCE,
    MIB_BYTES,
    MODEL_LABEL,
    PODS_PER_NODE,
    task_facts,
)
from roadstead.fleet.sizes import (
    ARRIVAL_GAPS_S,
    LIFETIMES_S,
    MODEL_CONSTRAINTS,
    NODE_SIZES,
    POD_SIZES,
    NodeSize,
    PodSize,
)
from roadstead.fleet.trace import Trace, TraceBuilder

DEMO_NAMESPACE = "demo"
DEMO_IMAGE = "demo/task:1"
COUNT_MAX = 10_000_000


def generate_fleet(nodes: int, pods: int, seed: int, *, zones: int = 4) -> Trace:
    """Generate a fleet with the statistics of the trace openb, and pods that arrive at it.

    zones: assigned round robin. Raises ValueError for counts out of range.
    """
    for name, count in (("nodes", nodes), ("pods", pods)):
        if not 0 <= count <= COUNT_MAX:
            raise ValueError(f"{name} is {count}, want 0 to {COUNT_MAX}")
    if not 1 <= zones <= COUNT_MAX:
        raise ValueError(f"zones {zones} out of range")
    draw = partial(_draw, seed)
    size_indices = draw("node shape", [size.weight for size in NODE_SIZES], nodes)
    fleet = (
        _node(NODE_SIZES[size_index], f"node-{index:05}", f"zone-{index % zones}")
        for index, size_index in enumerate(size_indices.tolist())
    )
    pod_sizes = sorted(POD_SIZES, key=lambda size: -size.weight)
    sizes = draw("pod shape", [size.weight for size in pod_sizes], pods)
    models = draw("model", [weight for _, weight in MODEL_CONSTRAINTS], pods)
    facts_of: dict[tuple[int, int], PodFacts] = {}
    classes = []
    for size, model in zip(sizes.tolist(), models.tolist(), strict=True):
        if (size, model) not in facts_of:
            facts_of[size, model] = _pod(pod_sizes[size], MODEL_CONSTRAINTS[model][0])
        classes.append(facts_of[size, model])
    return trace_of_arrivals(f"generated, seed {seed}", DEMO_NAMESPACE, fleet, classes, seed)


def trace_of_arrivals(
    source: str,
    namespace: str,
    nodes: Iterable[NodeFacts],
    classes: Sequence[PodFacts],
    seed: int,
) -> Trace:
    """Build a trace of nodes, and of pods of these classes that arrive one after another."""
    builder = TraceBuilder(source, {namespace: ((NAME_LABEL, namespace),)})
    for node in nodes:
        builder.add_node(node)
    count = len(classes)
    creation_s = np.cumsum(_draw_by_quantiles(seed, "arrival", ARRIVAL_GAPS_S, count))
    deletion_s = creation_s + _draw_by_quantiles(seed, "lifetime", LIFETIMES_S, count)
    times = zip(creation_s.tolist(), deletion_s.tolist(), strict=True)
    for index, (facts, (created, deleted)) in enumerate(zip(classes, times, strict=True)):
        name = f"pod-{index:06}"
        builder.add_pod(name, f"{facts.namespace}/{name}", facts, created, deleted)
    return builder.build()


def _node(size: NodeSize, name: str, zone: str) -> NodeFacts:
    labels = {HOSTNAME_LABEL: name, ZONE_LABEL: zone}
    allocatable = {"cpu": size.cpu_milli, "memory": size.memory_mib * MIB_BYTES}
    if size.gpus:
        labels[MODEL_LABEL] = size.model
        allocatable[GPU_RESOURCE] = size.gpus * GPU_MILLI
    return NodeFacts(
        name=name,
        labels=tuple(sorted(labels.items())),
        allocatable=tuple(sorted(allocatable.items())),
        allocatable_pods=PODS_PER_NODE,
    )


def _pod(size: PodSize, models: tuple[str, ...]) -> PodFacts:
    return task_facts(
        DEMO_NAMESPACE,
        (("qos", size.qos),),
        cpu_milli=size.cpu_milli,
        memory_bytes=size.memory_mib * MIB_BYTES,
        gpu_milli=size.gpus * size.gpu_milli,
        models=models if size.gpus == 1 else (),
        image=DEMO_IMAGE,
    )


def raw_stream(seed: int, purpose: str, count: int) -> NDArray[np.uint64]:
    """Return `count` 64-bit numbers from the stream of a purpose.

    The streams are independent, so that more nodes do not change the pods.
    """
    stream = np.random.SeedSequence([seed, *purpose.encode()])
    return np.random.PCG64(stream).random_raw(count)


def _draw(seed: int, purpose: str, weights: Sequence[int], count: int) -> NDArray[np.int64]:
    """Draw `count` indices into `weights`, with probabilities proportional to them."""
    bounds = np.cumsum(np.array(weights, dtype=np.uint64))
    points = raw_stream(seed, purpose, count) % bounds[-1]
    indices: NDArray[np.int64] = np.searchsorted(bounds, points, side="right").astype(np.int64)
    return indices


def _draw_by_quantiles(
    seed: int, purpose: str, quantiles: Sequence[int], count: int
) -> NDArray[np.int64]:
    """Draw `count` whole numbers whose distribution has these equally spaced quantiles."""
    bounds = np.array(quantiles, dtype=np.uint64)
    low, width = bounds[:-1], bounds[1:] - bounds[:-1] + np.uint64(1)
    interval = (raw_stream(seed, purpose, count) % np.uint64(len(low))).astype(np.int64)
    offset = raw_stream(seed, f"{purpose} offset", count) % width[interval]
    drawn: NDArray[np.int64] = (low[interval] + offset).astype(np.int64)
    return drawn
