"""Names of the shapes of nodes, by which answers count nodes and replicas.

The shape of a node is its instance type or, without that label, its allocatable amounts.
"""

from __future__ import annotations

from typing import Final

from roadstead.facts.node import NodeFacts
from roadstead.report.units import human_amount, is_bytes, resource_title

INSTANCE_LABEL: Final = "node.kubernetes.io/instance-type"


def shape_of(node: NodeFacts, known: dict[object, str]) -> str:
    """Return the instance type of a node, or else its size. known: sizes by allocatable amounts."""
    labels = dict(node.labels)
    if INSTANCE_LABEL in labels:
        return labels[INSTANCE_LABEL]
    if node.allocatable not in known:
        known[node.allocatable] = ", ".join(
            _amount(resource, amount) for resource, amount in _shown_amounts(node) if amount
        )
    return known[node.allocatable]


def _shown_amounts(node: NodeFacts) -> list[tuple[str, int]]:
    """Return the amounts that describe a node: CPU and memory first."""
    amounts = dict(node.allocatable)
    first = [(name, amounts.pop(name)) for name in ("cpu", "memory") if name in amounts]
    left_out = ("ephemeral-storage",)
    return first + [
        (name, amount)
        for name, amount in sorted(amounts.items())
        if name not in left_out and not name.startswith("hugepages-")
    ]


def _amount(resource: str, amount: int) -> str:
    text = human_amount(resource, amount)
    return text if resource == "cpu" or is_bytes(resource) else f"{text} {resource_title(resource)}"
