"""Samples: the state of the fleet at one time, as rows (zone, metric, resource, value).

Fragmentation follows "Beware of Fragmentation" (Weng et al., USENIX ATC'23), for each resource of a
node as a whole: its free amount is a fragment for a pod that requests the resource and does not fit
on the node. The metric is the mean fragment over the typical pods, summed over nodes. Typical pods
are those of the classes with most pods so far.
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

WHOLE_FLEET: Final = ""
"""Zone of rows that concern the whole fleet."""

TYPICAL_CLASSES: Final = 32
"""Maximum number of classes of typical pods; each costs a pass over all nodes."""

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
    counts = world.simulated_pods.counts
    yield WHOLE_FLEET, "pending", "", float(counts[LifeState.PENDING])
    yield WHOLE_FLEET, "running", "", float(sum(counts[state] for state in ON_NODE))
    yield WHOLE_FLEET, "ended", "", float(counts[LifeState.ENDED])
    yield WHOLE_FLEET, "nodes", "", float(len(world.nodes))
    if counts[LifeState.PENDING]:
        refused_by = Counter(",".join(each.plugins) for each in world.cluster.pending())
        for plugins, pods in sorted(refused_by.items()):
            yield WHOLE_FLEET, "pending by plugin", plugins, float(pods)
    yield from _resource_rows(world.cluster.table, world.simulated_pods.typical(TYPICAL_CLASSES))


def _resource_rows(
    table: NodeTable, typical: Sequence[tuple[PodFacts, int]]
) -> Iterator[SampleRow]:
    columns, rows = table.columns, slice(0, len(table))
    columns.fit_resources()
    names = table.resource_names
    allocatable, requested = columns.allocatable[:, rows], columns.requested[:, rows]
    free: I64 = np.maximum(allocatable - requested, 0)
    has_room = columns.pod_count[rows] < columns.allocatable_pods[rows]
    fragments = _fragments(free, has_room, names, typical)
    zones = columns.zone[rows]
    # Zones, each with a mask of its nodes.
    parts = [(WHOLE_FLEET, np.ones(len(zones), dtype=np.bool_))]
    known = [(columns.zones.values[code], zones == code) for code in np.unique(zones)]
    parts += sorted((each for each in known if each[0]), key=lambda each: each[0])
    for zone, mask in parts:
        for code, resource in enumerate(names):
            yield zone, "allocatable", resource, float(allocatable[code, mask].sum())
            yield zone, "requested", resource, float(requested[code, mask].sum())
            yield zone, "largest free", resource, float(free[code, mask].max(initial=0))
            if resource in fragments:
                yield zone, "fragmentation", resource, float(fragments[resource][mask].sum())


def _fragments(
    free: I64, has_room: Bools, names: Sequence[str], typical: Sequence[tuple[PodFacts, int]]
) -> dict[str, NDArray[np.float64]]:
    """Return by resource the mean fragment of typical pods on each node: float64[node].

    free: int64[resource, node]. has_room: whether a node may have one more pod. typical: facts,
    each with its number of pods.
    """
    code_of = {name: code for code, name in enumerate(names)}
    sums: dict[str, NDArray[np.float64]] = {}
    # By resource: the pods that request it, over which the mean is taken.
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
