"""Recorded orders of the snapshot's node list after changes of the node cache."""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.facts.node import NodeFacts
from roadstead.nodes.node_order import NodeOrder, NodeTree
from scripts.recordings.result import Json, differing


def check_node_order(case: Json) -> tuple[Json, list[str]]:
    """Return our order after a case's operations and a last snapshot, and how it differs."""
    ops = case["ops"]
    assert isinstance(ops, list)
    tree, order = NodeTree(), NodeOrder()
    for each in ops:
        _perform(each, tree, order)
    ours: Json = {"order": list(order.snapshot(tree))}
    return ours, differing(ours, {"order": case["order"]})


def _perform(operation: Mapping[str, object], tree: NodeTree, order: NodeOrder) -> None:
    kind, name = operation["op"], str(operation.get("name", ""))
    if kind == "snapshot":
        order.snapshot(tree)
    elif kind == "remove":
        tree.remove(name)
    else:
        assert kind in ("add", "update"), f"an operation that is not known: {operation}"
        labels = operation.get("labels") or {}
        assert isinstance(labels, dict)
        tree.put(name, NodeFacts(name, tuple(sorted(labels.items()))).zone)
