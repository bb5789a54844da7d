"""Bulk insertion of nodes: columns are written class by class, not node by node.

A class here is the facts that several nodes share: all but the name, which `NAME_PLACEHOLDER`
replaces in labels (`class_of_node`).
"""

from __future__ import annotations

import numpy as np

from roadstead.facts.node import NAME_PLACEHOLDER, NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.nodes.columns import I32, I64, UP_TO_DATE, Columns
from roadstead.nodes.labels import MISSING, OWN
from roadstead.nodes.pods_on_row import NO_PODS


def write_nodes(columns: Columns, nodes: NodeList) -> list[str]:
    """Append rows without pods and return each node's zone; the table sets arrival and version."""
    classes, of_class = _used_classes(nodes)
    start, stop = columns.size, columns.size + len(nodes)
    columns.fit_rows(stop)
    columns.size = stop
    rows = slice(start, stop)
    columns.names.extend(nodes.names)
    columns.facts.extend([classes[code] for code in of_class.tolist()])
    columns.pods.extend([NO_PODS] * len(nodes))
    columns.snapshot_at[rows] = UP_TO_DATE
    columns.allocatable[:, rows] = _allocatable(columns, classes)[:, of_class]
    columns.allocatable_pods[rows] = _int_array([c.allocatable_pods for c in classes])[of_class]
    columns.unschedulable[rows] = _int_array([c.unschedulable for c in classes])[of_class]
    zones = [each.zone for each in classes]
    columns.zone[rows] = _int_array(list(map(columns.zones.code, zones)))[of_class]
    columns.taint_set[rows] = _int_array([columns.taint_sets.code(c.taints) for c in classes])[
        of_class
    ]
    columns.image_set[rows] = _int_array([columns.image_sets.code(c.images) for c in classes])[
        of_class
    ]
    for key, codes in _label_codes(columns, classes).items():
        column = columns.labels[key]
        column.codes[rows] = codes[of_class]
        column.has_own |= bool((codes == OWN).any())
    return [zones[code] for code in of_class.tolist()]


def _used_classes(nodes: NodeList) -> tuple[list[NodeFacts], I64]:
    """Return the used classes in order of their first node, and each node's index in this list.

    In this order, labels, taints, … get the codes that insertion node by node would give them.
    """
    used, first, code = np.unique(nodes.codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    index = np.empty(len(used), dtype=np.int64)
    index[order] = np.arange(len(used))
    return [nodes.classes[each] for each in used[order].tolist()], index[code.reshape(-1)]


def _int_array(values: list[int] | list[bool]) -> I64:
    return np.array(values, dtype=np.int64)


def _allocatable(columns: Columns, classes: list[NodeFacts]) -> I64:
    """Return int64[resource, class]."""
    code = columns.classes.resources.code
    coded = [[(code(name), amount) for name, amount in each.allocatable] for each in classes]
    columns.fit_resources()
    found = np.zeros((len(columns.allocatable), len(classes)), dtype=np.int64)
    for index, each in enumerate(coded):
        for resource, amount in each:
            found[resource, index] = amount
    return found


def _label_codes(columns: Columns, classes: list[NodeFacts]) -> dict[str, I32]:
    """Return label codes by key: int32[class]."""
    found: dict[str, I32] = {}
    for index, each in enumerate(classes):
        for key, value in each.labels:
            codes = found.get(key)
            if codes is None:
                codes = found[key] = np.full(len(classes), MISSING, dtype=np.int32)
            # `label` would assign codes to all own names (`LabelColumn.encode_own_names`).
            column = columns.labels.get(key) or columns.label(key)
            codes[index] = OWN if value == NAME_PLACEHOLDER else column.values.code(value)
    return found
