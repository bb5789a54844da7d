"""Nodes as upstream sees them behind an extender that answers with whole nodes.

Upstream: pkg/scheduler/extender.go (Filter) makes a new NodeInfo of each node of the reply, which
knows of no pod and of no image; Score is asked about those.
"""

from __future__ import annotations

from roadstead.nodes.pods_on_row import NO_PODS
from roadstead.nodes.table import NodeTable, Rows


def bare(table: NodeTable, rows: Rows) -> NodeTable:
    """A copy of some rows on which nothing runs and of which no image is known."""
    copy = table.overlay(rows)
    columns = copy.columns
    for numbers in (columns.requested, columns.nonzero_requested, columns.pod_count):
        numbers[...] = 0
    columns.image_set[:] = columns.image_sets.code(())
    columns.port_set[:] = columns.port_sets.code(())
    columns.pods = [NO_PODS] * len(rows)
    columns.class_counts = {}
    return copy
