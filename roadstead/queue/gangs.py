"""What the queue does for gangs: it brings their pods together, and tells who of them is bound.

A gang comes together at one scheduler, whichever pod of it came there first. Where one of its pods
waits for the others and these wait here, since they had given up before it came, they are tried
again. Upstream: ActivateSiblings in pkg/coscheduling/core/core.go of scheduler-plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from roadstead.facts.pod import Pod
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.framework.hint_map import SeenEvent
from roadstead.framework.members import GroupMembers
from roadstead.framework.profile import Profile
from roadstead.queue.core import QueueCore
from roadstead.queue.events import PodEvents
from roadstead.queue.pods import QueuedPod


class Gangs:
    """Gangs whose pods wait. happened: hands events to the core, which may move pods."""

    def __init__(
        self,
        profiles: Iterable[Profile],
        core: QueueCore[SeenEvent],
        members: GroupMembers,
        events: PodEvents,
        happened: Callable[[Sequence[SeenEvent], float], None],
    ) -> None:
        self._plugins = frozenset().union(*(each.gang_plugins for each in profiles))
        self._core, self._members = core, members
        self._events, self._happened = events, happened

    def were_bound(self, pods: Sequence[Pod], now_s: float) -> None:
        """Pods of gangs were bound before this queue began."""
        members = [facts for pod, facts in pods if self._members.add(pod.uid, facts)]
        self._members.bind(pod.uid for pod, _ in pods)
        self._happened(self._events.waiting(members), now_s)

    def bound_among(self, pods: Iterable[QueuedPod]) -> tuple[tuple[str, str, int], ...]:
        """How many are bound of each gang of which there are pods among these."""
        if self._members.is_empty:
            return ()
        keys = dict.fromkeys(group_key(pod.facts) for pod in pods)
        return tuple((*key, self._members.bound(key)) for key in keys if key is not None)

    def gave_up(self, rejected_by: Iterable[str]) -> bool:
        """Whether a pod that these plugins rejected gave up waiting for its gang."""
        return not self._plugins.isdisjoint(rejected_by)

    def gather(self, gangs: Sequence[GroupKey], now_s: float) -> None:
        """Pods of these gangs wait for the others, some of which may have given up before.

        Those that fitted nowhere are woken by events alone: otherwise a gang that is too large
        would be tried again and again.
        """
        if not gangs or not self._core.counts().unschedulable:
            return
        rejected_by = self._core.rejected_by
        for key in gangs:
            members = self._members.of(key)
            gave_up = [uid for uid in members if self.gave_up(rejected_by(uid))]
            self._core.activate(gave_up, now_s)
