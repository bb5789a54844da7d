"""Samples: the state of the fleet at one time, as rows (zone, metric, resource, value).

Fragmentation follows "Beware of Fragmentation" (Weng et al., USENIX ATC'23), for each resource of a
node as a whole: if a pod that requests the resource does not fit on the node, all of the resource
that is free there is a fragment for this pod, otherwise nothing is. The metric is the mean fragment
over the typical pods, summed over nodes. Typical pods are those of the classes with most pods so
far.

The largest pod has the proportions of the median typical pod and fits on one node: its amounts are
the largest multiple of the median requests for which one node has room in all resources together.
The largest free amounts of single resources would not do: they may be on different nodes, and then
no node has room for a pod with all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import zone_text
from roadstead.facts.pod import PodFacts
from roadstead.nodes.columns import I64, Bools
from roadstead.simulator.simulated_pods import ON_NODE, LifeState

if TYPE_CHECKING:
    from roadstead.queue.reports import PendingReason
    from roadstead.simulator.recording import RecordedWorld

SampleRow = tuple[str, str, str, float]
"""Zone, metric, resource, value; columns of `samples` after the time."""

WHOLE_FLEET: Final = ""
"""Zone of rows that concern the whole fleet."""

TYPICAL_CLASSES: Final = 32
"""Maximum number of classes of typical pods; each costs a pass over all nodes."""

MAX_REASONS: Final = 32
"""Maximum number of reasons in a sample; the less frequent ones are counted as OTHER_REASONS."""

MAX_REASON_CHARS: Final = 200
"""Maximum length of a reason in a sample."""

OTHER_REASONS: Final = "other reasons"

METRICS: Final = {
    "pending": "pods that wait for a node",
    "running": "pods on nodes, also by zone",
    "ended": "pods that have ended so far",
    "nodes": "nodes",
    "pending by plugin": "waiting pods by the plugins that refused them (in place of the resource)",
    "pending by reason": (
        "waiting pods by a reason that refused nodes to them; a pod may have several (in place of "
        "the resource)"
    ),
    "allocatable": "allocatable amount of a resource",
    "requested": "amount that pods on nodes request",
    "largest free": "the largest free amount on one node",
    "largest pod": (
        "amount of the largest pod that fits on one node, of those with the proportions of the "
        "median typical pod"
    ),
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
        yield from _pending_rows(world.cluster.pending())
    yield from _zone_rows(world)


def _pending_rows(pending: Sequence[PendingReason]) -> Iterator[SampleRow]:
    """Yield how many pods wait, by plugins and by reason."""
    refused_by: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for each in pending:
        refused_by[",".join(each.plugins)] += 1
        # A pod that reached no node has only a message: it was not tried yet, or is gated.
        names = [name for name, _ in each.reasons] or [each.message]
        reasons.update({name[:MAX_REASON_CHARS] for name in names})
    for plugins, pods in sorted(refused_by.items()):
        yield WHOLE_FLEET, "pending by plugin", plugins, float(pods)
    by_pods = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))
    shown = sorted(by_pods[:MAX_REASONS])
    if others := sum(pods for _, pods in by_pods[MAX_REASONS:]):
        shown.append((OTHER_REASONS, others))
    for name, pods in shown:
        yield WHOLE_FLEET, "pending by reason", name, float(pods)


def _zone_rows(world: RecordedWorld) -> Iterator[SampleRow]:
    """Yield the amounts of each resource, for the fleet and by zone, and running pods by zone."""
    table, typical = world.cluster.table, world.simulated_pods.typical(TYPICAL_CLASSES)
    columns, rows = table.columns, slice(0, len(table))
    # So that the columns have a row for each resource that any class requests.
    columns.fit_resources()
    # A resource is addressed by its index in this list, its code.
    names = table.resource_names
    allocatable, requested = columns.allocatable[:, rows], columns.requested[:, rows]
    free: I64 = np.maximum(allocatable - requested, 0)
    has_room = columns.pod_count[rows] < columns.allocatable_pods[rows]
    fragments = _fragments(free, has_room, names, typical)
    largest = _LargestPod(free, has_room, names, typical)
    running = _running(world)
    zones = columns.zone[rows]
    # Zones, each with a mask of its nodes.
    masks = [(WHOLE_FLEET, np.ones(len(zones), dtype=np.bool_))]
    mask_of: dict[str, Bools] = {}
    # `columns.zone` has indices into `columns.zones.values`.
    for code in np.unique(zones):
        name = zone_text(columns.zones.values[code])
        # A zone without a region may have the name of a region without zones.
        mask_of[name] = mask_of.get(name, False) | (zones == code)
    mask_of.pop("", None)
    masks += sorted(mask_of.items())
    for zone, mask in masks:
        if zone:
            yield zone, "running", "", float(running[mask].sum())
        largest_pod = largest.amounts(mask)
        for code, resource in enumerate(names):
            yield zone, "allocatable", resource, float(allocatable[code, mask].sum())
            yield zone, "requested", resource, float(requested[code, mask].sum())
            yield zone, "largest free", resource, float(free[code, mask].max(initial=0))
            if resource in largest_pod:
                yield zone, "largest pod", resource, float(largest_pod[resource])
            if resource in fragments:
                yield zone, "fragmentation", resource, float(fragments[resource][mask].sum())


def _running(world: RecordedWorld) -> I64:
    """Return the number of pods on each node of the table: int64[node]."""
    table, by_uid = world.cluster.table, world.simulated_pods.by_uid
    counted: I64 = table.columns.pod_count[: len(table)]
    total = sum(world.simulated_pods.counts[state] for state in ON_NODE)
    if counted.sum() == total:
        return counted
    # The table also has pods that are not bound yet: a decision takes time, or they wait at Permit.
    on_nodes = Counter(pod.node for pod in by_uid.values() if pod.state in ON_NODE)
    names = table.columns.names[: len(table)]
    return np.array([on_nodes[name] for name in names], dtype=np.int64)


class _LargestPod:
    """The largest pods with the proportions of the median typical pod.

    free, has_room, typical: as for `_fragments`. names: of the resources, by code.
    """

    def __init__(
        self,
        free: I64,
        has_room: Bools,
        names: Sequence[str],
        typical: Sequence[tuple[PodFacts, int]],
    ) -> None:
        self._free = free
        median = _median_requests(typical)
        # Code, name and amount of each resource that the median pod requests.
        self._requests = [
            (code, name, median[name]) for code, name in enumerate(names) if median.get(name)
        ]
        if not self._requests:
            return
        amounts = np.array([amount for _, _, amount in self._requests], dtype=np.float64)
        # How many times the median requests fit on each node, in fractions: float64[node].
        codes = [code for code, _, _ in self._requests]
        multiples = (free[codes] / amounts[:, np.newaxis]).min(axis=0)
        self._multiples: NDArray[np.float64] = np.where(has_room, multiples, 0.0)

    def amounts(self, mask: Bools) -> dict[str, int]:
        """Return by resource the amount of the largest pod that fits on a node of the mask."""
        if not self._requests or not mask.any():
            return {name: 0 for _, name, _ in self._requests}
        node = int(np.where(mask, self._multiples, -1.0).argmax())
        multiple = float(self._multiples[node])
        # Rounding must not make the pod larger than what is free.
        return {
            name: min(int(multiple * amount), int(self._free[code, node]))
            for code, name, amount in self._requests
        }


def _median_requests(typical: Sequence[tuple[PodFacts, int]]) -> dict[str, int]:
    """Return by resource the lower median of typical pods' requests; 0 if most request none."""
    total = sum(count for _, count in typical)
    requested: dict[str, list[tuple[int, int]]] = {}
    for facts, count in typical:
        for name, amount in facts.requests:
            requested.setdefault(name, []).append((amount, count))
    medians = {}
    for name, pods in requested.items():
        missing = total - sum(count for _, count in pods)
        reached = 0
        for amount, count in sorted([(0, missing), *pods]):
            medians[name], reached = amount, reached + count
            if 2 * reached >= total:
                break
    return medians


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
