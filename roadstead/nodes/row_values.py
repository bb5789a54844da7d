"""The values of one row of a node table, for comparisons and messages."""

from __future__ import annotations

from roadstead.nodes.columns import I64, Columns


def row_values(columns: Columns, row: int) -> dict[str, object]:
    """Return a row by name of the column, with values instead of codes; zeros are left out."""
    resources = columns.classes.resources.values
    return {
        "facts": columns.node(row),
        "allocatable": _nonzero(resources, columns.allocatable[:, row]),
        "requested": _nonzero(resources, columns.requested[:, row]),
        "nonzero_requested": columns.nonzero_requested[:, row].tolist(),
        "allocatable_pods": int(columns.allocatable_pods[row]),
        "pod_count": int(columns.pod_count[row]),
        "unschedulable": bool(columns.unschedulable[row]),
        "zone": columns.zones.values[columns.zone[row]],
        "taints": columns.taint_sets.values[columns.taint_set[row]],
        "images": columns.image_sets.values[columns.image_set[row]],
        "ports": columns.port_sets.values[columns.port_set[row]],
        "labels": {
            key: column.values.values[column.codes[row]]
            for key in sorted(columns.labels)
            if (column := columns.label(key)).codes[row] >= 0
        },
        "pods": {pod_class.facts: count for pod_class, count in columns.pods[row].items()},
    }


def _nonzero(names: list[str], amounts: I64) -> dict[str, int]:
    # Amounts may be fewer: a resource gets its row of the matrix when a node or pod names it.
    return {name: int(amount) for name, amount in zip(names, amounts, strict=False) if amount}
