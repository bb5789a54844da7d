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
from roadstead.fleet.shapes import (
    ARRIVAL_GAPS_S,
    LIFETIMES_S,
    MODEL_CONSTRAINTS,
    NODE_SHAPES,
    POD_SHAPES,
    NodeShape,
    PodShape,
)
from roadstead.fleet.trace import Trace, TraceBuilder

DEMO_NAMESPACE = "demo"
DEMO_IMAGE = "demo/task:1"
COUNT_MAX = 10_000_000


def generate_fleet(nodes: int, pods: int, seed: int, *, zones: int = 4) -> Trace:
    """Generate a fleet with the statistics of openb, and pods that arrive at it.

    zones: assigned round robin. Raises ValueError for counts out of range.
    """
    for name, count in (("nodes", nodes), ("pods", pods)):
        if not 0 <= count <= COUNT_MAX:
            raise ValueError(f"{name} is {count}, want 0 to {COUNT_MAX}")
    if not 1 <= zones <= COUNT_MAX:
        raise ValueError(f"zones {zones} out of range")
    draw = partial(_draw, seed)
    kinds = draw("node shape", [shape.weight for shape in NODE_SHAPES], nodes)
    fleet = (
        _node(NODE_SHAPES[kind], f"node-{index:05}", f"zone-{index % zones}")
        for index, kind in enumerate(kinds.tolist())
    )
    pod_shapes = sorted(POD_SHAPES, key=lambda shape: -shape.weight)
    sizes = draw("pod shape", [shape.weight for shape in pod_shapes], pods)
    models = draw("model", [weight for _, weight in MODEL_CONSTRAINTS], pods)
    known: dict[tuple[int, int], PodFacts] = {}
    classes = []
    for size, model in zip(sizes.tolist(), models.tolist(), strict=True):
        if (size, model) not in known:
            known[size, model] = _pod(pod_shapes[size], MODEL_CONSTRAINTS[model][0])
        classes.append(known[size, model])
    return arriving(f"generated, seed {seed}", DEMO_NAMESPACE, fleet, classes, seed)


def arriving(
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
    creation_s = np.cumsum(_between(seed, "arrival", ARRIVAL_GAPS_S, count))
    deletion_s = creation_s + _between(seed, "lifetime", LIFETIMES_S, count)
    times = zip(creation_s.tolist(), deletion_s.tolist(), strict=True)
    for index, (facts, (created, deleted)) in enumerate(zip(classes, times, strict=True)):
        name = f"pod-{index:06}"
        builder.add_pod(name, f"{facts.namespace}/{name}", facts, created, deleted)
    return builder.build()


def _node(shape: NodeShape, name: str, zone: str) -> NodeFacts:
    labels = {HOSTNAME_LABEL: name, ZONE_LABEL: zone}
    allocatable = {"cpu": shape.cpu_milli, "memory": shape.memory_mib * MIB_BYTES}
    if shape.gpus:
        labels[MODEL_LABEL] = shape.model
        allocatable[GPU_RESOURCE] = shape.gpus * GPU_MILLI
    return NodeFacts(
        name=name,
        labels=tuple(sorted(labels.items())),
        allocatable=tuple(sorted(allocatable.items())),
        allocatable_pods=PODS_PER_NODE,
    )


def _pod(shape: PodShape, models: tuple[str, ...]) -> PodFacts:
    return task_facts(
        DEMO_NAMESPACE,
        (("qos", shape.qos),),
        cpu_milli=shape.cpu_milli,
        memory_bytes=shape.memory_mib * MIB_BYTES,
        gpu_milli=shape.gpus * shape.gpu_milli,
        models=models if shape.gpus == 1 else (),
        image=DEMO_IMAGE,
    )


def raw_stream(seed: int, purpose: str, count: int) -> NDArray[np.uint64]:
    """Return `count` 64-bit numbers of a purpose's own stream: more nodes leave pods the same."""
    stream = np.random.SeedSequence([seed, *purpose.encode()])
    return np.random.PCG64(stream).random_raw(count)


def _draw(seed: int, purpose: str, weights: Sequence[int], count: int) -> NDArray[np.int64]:
    """Draw `count` indices into `weights`, with probabilities proportional to them."""
    bounds = np.cumsum(np.array(weights, dtype=np.uint64))
    points = raw_stream(seed, purpose, count) % bounds[-1]
    indices: NDArray[np.int64] = np.searchsorted(bounds, points, side="right").astype(np.int64)
    return indices


def _between(seed: int, purpose: str, quantiles: Sequence[int], count: int) -> NDArray[np.int64]:
    """Draw `count` whole numbers whose distribution has these equally spaced quantiles."""
    bounds = np.array(quantiles, dtype=np.uint64)
    low, width = bounds[:-1], bounds[1:] - bounds[:-1] + np.uint64(1)
    step = (raw_stream(seed, purpose, count) % np.uint64(len(low))).astype(np.int64)
    offset = raw_stream(seed, f"{purpose} offset", count) % width[step]
    drawn: NDArray[np.int64] = (low[step] + offset).astype(np.int64)
    return drawn
