"""The end of a batch at a failed gang: its resources are free before the next pod is decided.

Upstream decides one pod after another, so the next pod sees that the gang's pods left their nodes.
In a batch these would occupy their nodes for all pods behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.cycle.batch import Decision
from roadstead.facts.pod_groups import group_key
from roadstead.framework.waiting import WaitingPod


def fails_gang(
    decision: Decision, earlier: Sequence[Decision], waiting: Iterable[WaitingPod]
) -> bool:
    """Whether a gang's pod without a node fails others of the gang, placed before or waiting."""
    key = group_key(decision.pod.pod_class.facts)
    if key is None or decision.node_name is not None:
        return False
    placed = (each.pod.pod_class.facts for each in earlier if each.node_name is not None)
    return any(group_key(each) == key for each in placed) or any(
        group_key(each.facts) == key for each in waiting
    )
