"""Samples: the state of the fleet at one time, as rows (zone, metric, resource, value).

Fragmentation follows "Beware of Fragmentation" (Weng et al., USENIX ATC'23), for each resource of
whole nodes: what is free on a node is a fragment to a typical pod that requests the resource and
does not fit there. The value is the expected fragment of a typical pod, summed over nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.pod import PodFacts
from roadstead.nodes.columns import I64, Bools
from roadstead.simulator.simulated_pods import ON_NODE, LifeState

if TYPE_CHECKING:
    from roadstead.nodes.table import NodeTable
    from roadstead.simulator.recording import RecordedWorld

SampleRow = tuple[str, str, str, float]
"""Zone, metric, resource, value; columns of `samples` after the time."""

WHOLE: Final = ""
"""Zone of rows that concern the whole fleet."""

TYPICAL_CLASSES: Final = 32
"""Number of classes with most pods so far whose fragments are computed."""

METRICS: Final = {
    "pending": "pods that wait for a node",
    "running": "pods on nodes",
    "ended": "pods that have ended so far",
    "nodes": "nodes",
    "pending by plugin": "waiting pods by the plugins that refused them (in place of the resource)",
    "allocatable": "allocatable amount of a resource",
    "requested": "amount that pods on nodes request",
    "largest free": "the largest free amount on one node",
    "fragmentation": "free amount that a typical pod cannot use, as expected value",
}
"""Metrics and their meaning. CPU is in milli-CPU, memory in bytes."""


def sample_rows(world: RecordedWorld) -> Iterator[SampleRow]:
    """Yield the rows of a sample; the whole fleet first, then zone by zone."""
    counts = world.lives.counts
    yield WHOLE, "pending", "", float(counts[LifeState.PENDING])
    yield WHOLE, "running", "", float(sum(counts[state] for state in ON_NODE))
    yield WHOLE, "ended", "", float(counts[LifeState.ENDED])
    yield WHOLE, "nodes", "", float(len(world.nodes))
    if counts[LifeState.PENDING]:
        refusing = Counter(",".join(note.plugins) for note in world.cluster.pending())
        for plugins, pods in sorted(refusing.items()):
            yield WHOLE, "pending by plugin", plugins, float(pods)
    yield from _resources(world.cluster.table, world.lives.typical(TYPICAL_CLASSES))


def _resources(table: NodeTable, typical: Sequence[tuple[PodFacts, int]]) -> Iterator[SampleRow]:
    columns, rows = table.columns, slice(0, len(table))
    columns.fit_resources()
    names = table.resource_names
    allocatable, requested = columns.allocatable[:, rows], columns.requested[:, rows]
    free: I64 = np.maximum(allocatable - requested, 0)
    has_room = columns.pod_count[rows] < columns.allocatable_pods[rows]
    fragments = _fragments(free, has_room, names, typical)
    zones = columns.zone[rows]
    parts = [(WHOLE, np.ones(len(zones), dtype=np.bool_))]
    known = [(columns.zones.values[code], zones == code) for code in np.unique(zones)]
    parts += sorted((each for each in known if each[0]), key=lambda each: each[0])
    for zone, here in parts:
        for code, resource in enumerate(names):
            yield zone, "allocatable", resource, float(allocatable[code, here].sum())
            yield zone, "requested", resource, float(requested[code, here].sum())
            yield zone, "largest free", resource, float(free[code, here].max(initial=0))
            if resource in fragments:
                yield zone, "fragmentation", resource, float(fragments[resource][here].sum())


def _fragments(
    free: I64, has_room: Bools, names: Sequence[str], typical: Sequence[tuple[PodFacts, int]]
) -> dict[str, NDArray[np.float64]]:
    """Return by resource the expected fragment on each node: float64[node]."""
    code_of = {name: code for code, name in enumerate(names)}
    sums: dict[str, NDArray[np.float64]] = {}
    pods: Counter[str] = Counter()
    for facts, count in typical:
        requests = [(name, amount) for name, amount in facts.requests if amount]
        fits = has_room.copy()
        for name, amount in requests:
            fits &= free[code_of[name]] >= amount if name in code_of else False
        for name, _ in requests:
            if name in code_of:
                unusable = np.where(fits, 0, free[code_of[name]])
                sums[name] = sums.get(name, 0.0) + float(count) * unusable
                pods[name] += count
    return {name: total / pods[name] for name, total in sums.items()}
