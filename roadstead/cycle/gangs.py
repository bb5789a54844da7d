"""Where a gang gives up, the batch ends: what it held is free before the next pod is decided.

Upstream decides one pod after another, so that a gang's end is seen by the next pod. In a batch
the gang's nodes would stay taken for all pods behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.cycle.batch import Decision
from roadstead.facts.pod_groups import group_key
from roadstead.framework.waiting import WaitingPod


def gives_up(
    decision: Decision, earlier: Sequence[Decision], waiting: Iterable[WaitingPod]
) -> bool:
    """Whether a member that found no node leaves others behind: placed before it, or waiting."""
    key = group_key(decision.pod.info.facts)
    if key is None or decision.node_name is not None:
        return False
    placed = (each.pod.info.facts for each in earlier if each.node_name is not None)
    return any(group_key(each) == key for each in placed) or any(
        group_key(each.facts) == key for each in waiting
    )
