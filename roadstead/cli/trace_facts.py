"""The contents of a trace in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from roadstead.fleet.trace import NEVER_MS, Trace
from roadstead.report.node_use import zone_name
from roadstead.report.units import human_amount

DAY_S = 86_400


def trace_facts(trace: Trace) -> Iterator[tuple[str, str]]:
    """(name, text): counts, time span, and allocatable and requested amounts per resource."""
    nodes = trace.nodes()
    zones = {zone_name(node) for node in nodes} - {""}
    yield "source", trace.source
    yield "nodes", f"{len(nodes):,} of {len(trace.node_classes):,} shapes in {len(zones):,} zones"
    yield "pods", f"{len(trace.pod_names):,} of {len(trace.pod_classes):,} shapes"
    if len(trace.pod_names):
        yield "arrivals", _span(trace)
    offered = _added(node.allocatable for node in nodes)
    asked = _added(facts.requests for _, facts in trace.pods())
    for resource in sorted(offered | asked):
        have, want = (human_amount(resource, amounts[resource]) for amounts in (offered, asked))
        yield resource, f"{have} allocatable, {want} requested"


def _span(trace: Trace) -> str:
    first, last = float(trace.creation_s.min()), float(trace.creation_s.max())
    deleted = int((trace.deletion_ms != NEVER_MS).sum())
    return f"over {(last - first) / DAY_S:,.1f} days; {deleted:,} of the pods are deleted later"


def _added(entries: Iterable[Iterable[tuple[str, int]]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for entry in entries:
        for resource, amount in entry:
            total[resource] += amount
    return total
