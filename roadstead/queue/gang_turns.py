"""GangTurns: gangs are tried one at a time where each that gives up would wake all others for ever.

Gangs that want the same room each occupy a part of it, give up and wake each other. So after
`MAX_WAKES` (`scheduling_queue.py`) they do not any more, though one of them may fit where no other
one holds a part. Once no gang is active, in backoff or in flight, each that waits is tried once,
alone.

What a gang frees in its own turn wakes nobody, since there is as much room as before. So a round of
turns ends, and another one begins only when a gang that was tried out of its turn has given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.framework.hint_map import SeenEvent
from roadstead.framework.members import GroupMembers
from roadstead.queue.core import QueueCore
from roadstead.queue.pods import PodState, QueuedPod


class GangTurns:
    """Whose turn it is. `_freed`: gangs that gave room up, for which no other one was woken."""

    def __init__(self, core: QueueCore[SeenEvent], members: GroupMembers) -> None:
        self._core, self._members = core, members
        self._freed: set[GroupKey] = set()
        self._next: deque[GroupKey] = deque()
        self._turn: GroupKey | None = None

    def freed(self, pods: Iterable[str]) -> None:
        """These pods gave room up, and no other gang was woken for it."""
        gangs = {self._members.group_of(uid) for uid in pods}
        self._freed |= {key for key in gangs if key is not None and key != self._turn}

    def leased(self, pods: Iterable[QueuedPod]) -> None:
        """Another gang is tried: what is freed from now on may be room for it, so the turn ends."""
        if self._turn is None:
            return
        if not {group_key(pod.facts) for pod in pods} <= {None, self._turn}:
            self._turn = None

    def go_on(self, now_s: float) -> None:
        """The next turn begins, if the queue is at rest."""
        if not (self._freed or self._next or self._turn) or not self._is_at_rest():
            return
        self._turn = None
        if not self._next:
            self._next.extend(self._round())
            self._freed.clear()
        while self._next and self._turn is None:
            key = self._next.popleft()
            if self._core.activate(self._parked(key), now_s):
                self._turn = key

    def _is_at_rest(self) -> bool:
        """Whether no gang is tried, or about to be."""
        counts = self._core.counts()
        return not (
            counts.active
            or counts.backoff
            or any(group_key(pod.facts) for pod in self._core.pods(PodState.IN_FLIGHT))
        )

    def _round(self) -> list[GroupKey]:
        """The gangs that wait, but for one that alone gave room up; by priority, then arrival."""
        found: dict[GroupKey, int] = {}
        for key in self._members.groups() if self._freed else ():
            parked = self._parked(key) if self._freed != {key} else []
            facts = self._core.facts_of(parked[0]) if parked else None
            if facts is not None:
                found[key] = facts.priority
        return sorted(found, key=lambda key: -found[key])

    def _parked(self, key: GroupKey) -> list[str]:
        """The pods of a gang that were tried in vain."""
        return [uid for uid in self._members.of(key) if self._core.rejected_by(uid)]
