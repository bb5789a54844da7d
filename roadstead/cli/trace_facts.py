"""The contents of a trace in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.node import zone_text
from roadstead.fleet.trace import NEVER_MS, Trace
from roadstead.report.units import human_amount

DAY_S = 86_400


def trace_facts(trace: Trace) -> Iterator[tuple[str, str]]:
    """(name, text): counts, time span, and allocatable and requested amounts per resource."""
    nodes, shapes = len(trace.node_names), len(trace.node_classes)
    zones = {zone_text(node.zone) for node in trace.node_classes} - {""}
    yield "source", trace.source
    yield "nodes", f"{nodes:,} of {shapes:,} shapes in {len(zones):,} zones"
    yield "pods", f"{len(trace.pod_names):,} of {len(trace.pod_classes):,} shapes"
    if len(trace.pod_names):
        yield "arrivals", _span(trace)
    offered = _added([node.allocatable for node in trace.node_classes], trace.node_class)
    requested = _added([facts.requests for facts in trace.pod_classes], trace.pod_class)
    for resource in sorted(offered | requested):
        offered_text, requested_text = (
            human_amount(resource, amounts[resource]) for amounts in (offered, requested)
        )
        yield resource, f"{offered_text} allocatable, {requested_text} requested"


def _span(trace: Trace) -> str:
    first, last = float(trace.creation_s.min()), float(trace.creation_s.max())
    deleted = int((trace.deletion_ms != NEVER_MS).sum())
    return f"over {(last - first) / DAY_S:,.1f} days; {deleted:,} of the pods are deleted later"


def _added(
    amounts: Sequence[Iterable[tuple[str, int]]], classes: NDArray[np.int32]
) -> Counter[str]:
    """Add up the amounts of the class of each node or pod. classes: int32[node or pod]."""
    total: Counter[str] = Counter()
    counts = np.bincount(classes, minlength=len(amounts)).tolist()
    for entry, count in zip(amounts, counts, strict=True):
        for resource, amount in entry:
            total[resource] += amount * count
    return total
