"""Gangs: retry the pods of a gang when others of it wait at Permit, and count its bound pods.

All pods of a gang are leased to one scheduler at a time. Pods that had stopped waiting for their
gang before another pod of it reached Permit are in the queue, and are tried again. Upstream:
ActivateSiblings in pkg/coscheduling/core/core.go of scheduler-plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from roadstead.facts.pod import Pod
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.framework.hint_map import OccurredEvent
from roadstead.framework.members import GroupMembers
from roadstead.framework.profile import Profile
from roadstead.queue.core import QueueCore
from roadstead.queue.events import PodEvents
from roadstead.queue.pods import QueuedPod


class Gangs:
    """Gangs with pods in the queue.

    handle_events: passes events to `core`, which moves the pods that they may help. _gang_plugins:
    names of the plugins that place gangs (Coscheduling): they reject pods that stop waiting.
    """

    def __init__(
        self,
        profiles: Iterable[Profile],
        core: QueueCore[OccurredEvent],
        members: GroupMembers,
        events: PodEvents,
        handle_events: Callable[[Sequence[OccurredEvent], float], None],
    ) -> None:
        self._gang_plugins = frozenset().union(*(each.gang_plugins for each in profiles))
        self._core, self._members = core, members
        self._events, self._handle_events = events, handle_events

    def add_bound(self, pods: Sequence[Pod], now_s: float) -> None:
        """Add pods of gangs that were bound before this queue was created."""
        new_members = [facts for pod, facts in pods if self._members.add(pod.uid, facts)]
        self._members.bind(pod.uid for pod, _ in pods)
        self._handle_events(self._events.added(new_members), now_s)

    def bound_counts(self, pods: Iterable[QueuedPod]) -> tuple[tuple[str, str, int], ...]:
        """Return (namespace, name, number of bound pods) for each gang of these pods."""
        if self._members.is_empty:
            return ()
        keys = dict.fromkeys(group_key(pod.facts) for pod in pods)
        return tuple((*key, self._members.bound(key)) for key in keys if key is not None)

    def stopped_waiting(self, rejected_by: Iterable[str]) -> bool:
        """Whether a pod that these plugins rejected had stopped waiting for its gang."""
        return not self._gang_plugins.isdisjoint(rejected_by)

    def activate_gangs(self, gangs: Sequence[GroupKey], now_s: float) -> None:
        """Activate the pods of these gangs that had stopped waiting for their gang.

        Pods without a feasible node are woken only by events: otherwise a gang that is too large
        would be tried again and again.
        """
        if not gangs or not self._core.counts().unschedulable:
            return
        rejected_by = self._core.rejected_by
        for key in gangs:
            members = self._members.of(key)
            uids = [uid for uid in members if self.stopped_waiting(rejected_by(uid))]
            self._core.activate(uids, now_s)
