"""Bare nodes: nodes without pods and images, as after an extender that returns node objects.

Upstream: pkg/scheduler/extender.go (Filter) makes a new NodeInfo of each node of the reply, which
has no pods and no images; Score is called with those.
"""

from __future__ import annotations

from roadstead.nodes.pods_on_row import NO_PODS
from roadstead.nodes.table import NodeTable, Rows


def bare(table: NodeTable, rows: Rows) -> NodeTable:
    """Return a copy of some rows without pods, ports and images."""
    copy = table.copy_rows(rows)
    columns = copy.columns
    for numbers in (columns.requested, columns.nonzero_requested, columns.pod_count):
        numbers[...] = 0
    columns.image_set[:] = columns.image_sets.code(())
    columns.port_set[:] = columns.port_sets.code(())
    columns.pods = [NO_PODS] * len(rows)
    columns.class_counts = {}
    return copy
