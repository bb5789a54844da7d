"""GangTurns: try gangs one at a time if they would otherwise fail and requeue each other for ever.

Gangs that compete for the same resources each occupy a part of them, fail and requeue each other:
the resources that one frees move the pods of another to activeQ. After `MAX_FAILED_REPORTS`
(`scheduling_queue.py`) they no longer do so, although one of them may fit while no other occupies a
part. So once activeQ and backoffQ are empty and no gang is in flight, each waiting gang is tried
once, alone.

The resources that a gang frees in its own turn requeue no other gang, because they were free before
the turn. So a round of turns ends; another one begins only after a gang failed out of its turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.framework.hint_map import OccurredEvent
from roadstead.framework.members import GroupMembers
from roadstead.queue.core import QueueCore
from roadstead.queue.pods import QueuedPod, QueueState


class GangTurns:
    """The gang whose turn it is (`_turn`), and those whose turns follow (`_next`).

    `_freed`: gangs that freed resources, for which no other gang was requeued.
    """

    def __init__(self, core: QueueCore[OccurredEvent], members: GroupMembers) -> None:
        self._core, self._members = core, members
        self._freed: set[GroupKey] = set()
        self._next: deque[GroupKey] = deque()
        self._turn: GroupKey | None = None

    def freed(self, pods: Iterable[str]) -> None:
        """Record pods that freed resources, for which no other gang was requeued."""
        gangs = {self._members.group_of(uid) for uid in pods}
        self._freed |= {key for key in gangs if key is not None and key != self._turn}

    def leased(self, pods: Iterable[QueuedPod]) -> None:
        """End the turn if pods of another gang are leased: freed resources may help that gang."""
        if self._turn is None:
            return
        if not {group_key(pod.facts) for pod in pods} <= {None, self._turn}:
            self._turn = None

    def begin_gang_turn(self, now_s: float) -> None:
        """Begin the next turn if no gang is being tried."""
        if not (self._freed or self._next or self._turn) or not self._is_idle():
            return
        self._turn = None
        if not self._next:
            self._next.extend(self._next_round())
            self._freed.clear()
        while self._next and self._turn is None:
            key = self._next.popleft()
            if self._core.activate(self._unschedulable_pods(key), now_s):
                self._turn = key

    def _is_idle(self) -> bool:
        """Whether activeQ and backoffQ are empty, and no pod of a gang is in flight."""
        counts = self._core.counts()
        return not (
            counts.active
            or counts.backoff
            or any(group_key(pod.facts) for pod in self._core.pods(QueueState.IN_FLIGHT))
        )

    def _next_round(self) -> list[GroupKey]:
        """Return waiting gangs for which others freed resources, by priority, then arrival."""
        found: dict[GroupKey, int] = {}
        for key in self._members.groups() if self._freed else ():
            # Resources that only this gang freed were free before its attempt, too.
            waiting_pods = self._unschedulable_pods(key) if self._freed != {key} else []
            facts = self._core.facts_of(waiting_pods[0]) if waiting_pods else None
            if facts is not None:
                found[key] = facts.priority
        return sorted(found, key=lambda key: -found[key])

    def _unschedulable_pods(self, key: GroupKey) -> list[str]:
        """Return the pods of a gang in unschedulablePods."""
        return [uid for uid in self._members.of(key) if self._core.rejected_by(uid)]
