"""What the queue does for gangs: it brings their pods together, and tells who of them is bound.

A gang comes together at one scheduler, whichever pod of it came there first. Where one of its pods
waits for the others and these wait here, since they had given up before it came, they are tried
again. Upstream: ActivateSiblings in pkg/coscheduling/core/core.go of scheduler-plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.actors.messages import PodBatch
from roadstead.actors.queue.events import PodEvents
from roadstead.actors.revisions import Revisions
from roadstead.actors.seam import NOTHING, Nothing, clock_s
from roadstead.cycle.gangs import PLUGIN
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.framework.hint_map import SeenEvent
from roadstead.framework.members import GroupMembers
from roadstead.queue import QueueCore, QueuedPod


class QueueGangs:
    """What QueueActor does of it."""

    core: QueueCore[SeenEvent]
    _members: GroupMembers
    _events: PodEvents
    _pods_known: Revisions

    def _happened(self, events: Sequence[SeenEvent], now_s: float) -> None:
        raise AssertionError("of the actor")

    async def bound_members(self, batch: PodBatch) -> Nothing:
        """Pods of gangs were bound before this queue began."""
        pods = batch.news(self._pods_known)
        members = [facts for pod, facts in pods if self._members.add(pod.uid, facts)]
        self._members.bind(pod.uid for pod, _ in pods)
        self._happened(self._events.waiting(members), clock_s())
        return NOTHING

    def _bound_of_gangs(self, pods: Iterable[QueuedPod]) -> tuple[tuple[str, str, int], ...]:
        """How many are bound of each gang of which there are pods among these."""
        if self._members.is_empty:
            return ()
        keys = dict.fromkeys(group_key(pod.facts) for pod in pods)
        return tuple((*key, self._members.bound(key)) for key in keys if key is not None)

    def _gather(self, gangs: Iterable[GroupKey], now_s: float) -> None:
        """Pods of these gangs wait for the others, some of which may have given up before.

        Those that fitted nowhere are woken by events alone: otherwise a gang that is too large
        would be tried again and again.
        """
        if not self.core.counts().unschedulable:
            return
        rejected_by = self.core.rejected_by
        for key in gangs:
            gave_up = [uid for uid in self._members.of(key) if PLUGIN in rejected_by(uid)]
            self.core.activate(gave_up, now_s)
