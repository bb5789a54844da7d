"""The result of a node search: which of the nodes that pass Filter remain for PreScore and Score.

Sampling excludes nodes; extenders refuse some and score the others. Nodes are identified by their
arrival in the cluster, since the search does not know a table's rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from roadstead.nodes.columns import I64
from roadstead.protocol.status import Status, unresolvable

NOT_EVALUATED = unresolvable()
"""Status of a node that the search did not evaluate: without a reason; preemption skips the node.

Upstream: the status of nodes that are absent from NodeToStatus.
"""


def no_arrivals() -> I64:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FoundNodes:
    """The remaining nodes, by arrival: int64[k] each.

    remaining: nodes that remain feasible. scores: points added to their totals, aligned with
    `remaining`. evaluated: nodes that the search evaluated before it had enough feasible ones; None
    for all. refused: (status, nodes), refusals by extenders, which replace the results of Filter.
    is_bare: the remaining nodes are scored as bare nodes (`roadstead.nodes.bare`).
    """

    remaining: I64
    scores: I64
    evaluated: I64 | None = None
    refused: tuple[tuple[Status, I64], ...] = ()
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a node search for one pod.

    scores: points that extenders add, by node. unknown_nodes: refusals by extenders of names that
    are no nodes. by_extender: an extender excluded nodes. error: the failure of an extender; it
    ends the cycle. next_start: position in the node order at which the next search starts.
    """

    found_nodes: FoundNodes
    scores: Mapping[str, int] = field(default_factory=dict)
    unknown_nodes: tuple[Status, ...] = ()
    by_extender: bool = False
    error: str = ""
    next_start: int = 0
