"""The age of each row's last snapshot: upstream's node snapshots contain outdated data.

At the start of a cycle upstream copies those nodes that changed since the last cycle. A copy has
data about other nodes, too: how many nodes have its images. Upstream updates this number only when
the copied node itself changes. So a row records at its snapshot how many nodes had arrived in the
cluster (`arrived`). Without snapshots, as in the actors, every row is up to date.
Upstream: pkg/scheduler/backend/cache/cache.go (UpdateSnapshot).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from roadstead.nodes.table import NodeTable


def take_snapshot(table: NodeTable, arrived: int) -> None:
    """Snapshot the rows that changed since the last cycle, at the start of a cycle."""
    columns = table.columns
    version = columns.version[: columns.size]
    rows = np.flatnonzero(version != columns.snapshot_version[: columns.size])
    columns.snapshot_version[rows] = version[rows]
    columns.first_snapshot_at = min(columns.first_snapshot_at, arrived)
    renewed = rows[columns.snapshot_at[rows] != arrived]
    columns.snapshot_at[renewed] = arrived
    if columns.image_set[renewed].any():
        # Counts of images change the answers of plugins that read only NODE facts.
        table.version += 1
        table.change_all_rows()


def is_behind(table: NodeTable, node_name: str, arrived: int) -> bool:
    """Whether a row has images and its snapshot is older than the last of `arrived` nodes."""
    row = table.row_of(node_name)
    behind = table.columns.snapshot_at[row] < arrived
    return bool(behind and table.columns.image_set[row])


def count_as_unchanged(table: NodeTable, node_names: Iterable[str]) -> None:
    """Count rows as unchanged since their last snapshot; the next one does not renew them."""
    rows = [table.row_of(name) for name in node_names]
    table.columns.snapshot_version[rows] = table.columns.version[rows]


def count_as_changed(table: NodeTable, node_name: str) -> None:
    """Count a row as changed since its last snapshot; the next snapshot renews it."""
    table.columns.snapshot_version[table.row_of(node_name)] = 0
