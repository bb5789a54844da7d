"""Coscheduling: the pods of a group (a gang) are placed together or not at all.

    PreEnqueue   a pod stays gated while fewer than minMember pods of its group exist
    PreFilter    refuses a pod whose group has no valid minMember
    Reserve      counts the pod as reserved; Unreserve drops it and rejects the waiting members
    Permit       waits until minMember pods are reserved or running, then allows all of them
    PostBind     records bound pods, until the queue counts them
    PostFilter   if a member fits on no node: rejects the others, unless enough have nodes
    QueueSort    optional, in place of PrioritySort: members of a group are adjacent

A pod is reserved from Reserve until Unreserve. A bound pod stays reserved until it is deleted or
the queue (one actor for all schedulers) counts it. Each scheduler knows only its own reserved pods.
Members that ran from the start are in the cluster's facts. With each lease (the pods that the queue
gives a scheduler) comes the number of members that any scheduler bound. It replaces the scheduler's
own record, because the scheduler may not learn that a pod which it bound was deleted.

After kubernetes-sigs/scheduler-plugins, pkg/coscheduling (coscheduling.go, core/core.go). The
differences: a gate in place of upstream's check in PreFilter, and PostFilter also rejects members
of the same batch.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum

from roadstead.config.plugin_args import CoschedulingArgs
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.facts.pod_groups import GroupKey, group_key, min_member
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import (
    ActionType,
    EventPod,
    EventResource,
    ObjectChange,
    QueueingHint,
    on,
)
from roadstead.framework.events import RegisteredEvent as Event
from roadstead.framework.plugin import (
    EnqueueExtensions,
    Handle,
    PermitPlugin,
    PodDeletionPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    QueueSortPlugin,
    Reads,
    ReservePlugin,
)
from roadstead.framework.post_filter_answers import PostFilterResult, PostFilterView
from roadstead.framework.waiting import PodPredicate
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.protocol.status import SUCCESS, Code, Status, unresolvable, unschedulable

MAX_GROUPS = 65_536
"""Maximum groups whose first arrival is stored for QueueSort; the oldest is dropped first."""

WAIT = Status(Code.WAIT)


class _MemberState(Enum):
    """State of a reserved pod. RESERVED: before Permit, or after it was rejected there."""

    RESERVED = 0
    WAITING = 1
    ALLOWED = 2


class Coscheduling(
    EnqueueExtensions,
    QueueSortPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PostFilterPlugin,
    ReservePlugin,
    PermitPlugin,
    PostBindPlugin,
    PodDeletionPlugin,
):
    name = "Coscheduling"
    reads = Reads.NODE
    shares_by_shape = True
    # Pods of a group are bound all-or-nothing.
    places_gangs = True

    def __init__(self, args: CoschedulingArgs, handle: Handle) -> None:
        self._wait_s = args.permit_wait_s
        self._waiting = handle.waiting
        self._member_counts = handle.members
        self._member_counts.listen(self._allow_if_complete)
        # The PodGroup objects; a group may do without one.
        self._groups = {group.key: group for group in handle.cluster.pod_groups}
        # Per group: UID → state.
        self._reserved: dict[GroupKey, dict[str, _MemberState]] = {}
        # The pods that this scheduler bound, per group: UID → how many times the queue had sent the
        # group's number of bound members when the pod was bound. Numbers sent later include it.
        self._bound: dict[GroupKey, dict[str, int]] = {}
        self._first_queued_s: OrderedDict[GroupKey, float] = OrderedDict()

    def events_to_register(self) -> tuple[Event, ...]:
        return (
            on(
                EventResource.POD,
                ActionType.ADD | ActionType.DELETE,
                _is_of_same_group,
                may_matter=_is_of_own_group,
            ),
            on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
        )

    def sort_key(self, pod: PodFacts, queued_s: float) -> tuple[float | str, ...]:
        """Sort by priority, then by the group's first arrival, then by its name."""
        key = group_key(pod)
        if key is None:
            return (-pod.priority, queued_s, "", queued_s)
        first_queued_s = self._first_queued_s.setdefault(key, queued_s)
        if len(self._first_queued_s) > MAX_GROUPS:
            self._first_queued_s.popitem(last=False)
        return (-pod.priority, first_queued_s, _group_name(key), queued_s)

    def pre_enqueue(self, pod: PodFacts) -> Status:
        key = group_key(pod)
        # Only in the process of the queue are all pods of a group counted (`counts_pods`).
        if key is None or not self._member_counts.counts_pods:
            return SUCCESS
        existing, needed = (
            self._member_counts.count(key) + self._running(key),
            self._needed(pod, key),
        )
        if needed is None or existing >= needed:
            return SUCCESS
        return unresolvable(
            f'waiting for pod group "{_group_name(key)}": {existing} of {needed} pods exist'
        )

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        refusal = self._group_error(pod.facts)
        return PreFilterResult(unresolvable(refusal) if refusal else Status(Code.SKIP))

    def post_filter(self, pod: PodFacts, failed: PostFilterView) -> PostFilterResult:
        key = group_key(pod)
        if key is None or self._is_complete(pod, key):
            return PostFilterResult(unschedulable())
        reason = f'a pod of pod group "{_group_name(key)}" fits nowhere'
        self._waiting.reject_where(self._in_incomplete_group(pod, key), self.name, reason)
        return PostFilterResult(unschedulable(f'pod group "{_group_name(key)}" does not fit.'))

    def _in_incomplete_group(self, pod: PodFacts, key: GroupKey) -> PodPredicate:
        """Return a predicate that is true for a group's pods, unless enough of them have nodes.

        The predicate counts once, when it is first called: `WaitingPods.reject_where` delays it to
        the end of the current step of the scheduler's decision loop, when all its decisions are
        known.
        """
        # One entry, once the group is counted.
        is_complete: list[bool] = []

        def is_rejected(facts: PodFacts) -> bool:
            if group_key(facts) != key:
                return False
            if not is_complete:
                placed = sum(group_key(each) == key for each in self._waiting.before_permit())
                is_complete.append(self._is_complete(pod, key, before_permit=placed))
            return not is_complete[0]

        return is_rejected

    def reserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> Status:
        key = group_key(facts)
        if key is not None:
            self._reserved.setdefault(key, {})[pod.uid] = _MemberState.RESERVED
        return SUCCESS

    def unreserve(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        key = group_key(facts)
        members = self._reserved.get(key) if key is not None else None
        if key is None or members is None or pod.uid not in members:
            return
        self._forget(key, pod.uid)
        reason = f'pod "{pod.key}" of pod group "{_group_name(key)}" was unreserved'
        # Marked as RESERVED first: a rejected pod is unreserved in turn, and must then find no
        # waiting members to reject.
        for uid in _waiting_uids(members):
            members[uid] = _MemberState.RESERVED
            self._waiting.reject(uid, self.name, reason)

    def permit(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> tuple[Status, float]:
        key = group_key(facts)
        if key is None:
            return SUCCESS, 0.0
        members = self._reserved[key]
        if not self._is_complete(facts, key):
            members[pod.uid] = _MemberState.WAITING
            return WAIT, self._timeout_s(facts, key)
        members[pod.uid] = _MemberState.ALLOWED
        self._allow_waiting(members)
        return SUCCESS, 0.0

    def _allow_waiting(self, members: dict[str, _MemberState]) -> None:
        for uid in _waiting_uids(members):
            members[uid] = _MemberState.ALLOWED
            self._waiting.allow(uid, self.name)

    def _allow_if_complete(self, key: GroupKey) -> None:
        """Allow a group's waiting pods if pods that other schedulers bound complete it."""
        members = self._reserved.get(key, {})
        waiting = next(filter(None, map(self._waiting.get, _waiting_uids(members))), None)
        if waiting is not None and self._is_complete(waiting.facts, key):
            self._allow_waiting(members)

    def post_bind(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        key = group_key(facts)
        if key is not None and pod.uid in self._reserved.get(key, {}):
            self._bound.setdefault(key, {})[pod.uid] = self._member_counts.times_reported(key)

    def pod_deleted(self, pod: PodIdentity, facts: PodFacts, node_name: str) -> None:
        key = group_key(facts)
        if key is not None and pod.uid in self._reserved.get(key, {}):
            self._forget(key, pod.uid)

    def sign(self, pod: PodFacts) -> str:
        """Return PreFilter's refusal, not the group: equal pods of two gangs share a signature."""
        return self._group_error(pod)

    def _forget(self, key: GroupKey, uid: str) -> None:
        for by_group in (self._reserved, self._bound):
            if key in by_group:
                by_group[key].pop(uid, None)
                if not by_group[key]:
                    del by_group[key]

    def _drop_counted_by_queue(self, key: GroupKey) -> None:
        """Drop the pods that were bound before the queue's latest count.

        This count includes them, unless they were deleted.
        """
        reports = self._member_counts.times_reported(key)
        for uid in [uid for uid, before in self._bound.get(key, {}).items() if before < reports]:
            self._forget(key, uid)

    def _is_complete(self, pod: PodFacts, key: GroupKey, before_permit: int = 0) -> bool:
        """Whether enough pods of a group have nodes.

        before_permit: number of further pods that have a node but have not reached Permit yet.
        """
        needed = self._needed(pod, key)
        if needed is None:
            return False
        self._drop_counted_by_queue(key)
        members = self._reserved.get(key, {})
        placed = len(members) + self._running(key) + before_permit
        bound = self._member_counts.bound(key)
        if placed >= needed or not bound:
            return placed >= needed
        # `placed` counts the pods that this scheduler allowed, and the queue's number `bound` may
        # include any of them. So that none counts twice, all are subtracted from `bound`.
        allowed = sum(each is _MemberState.ALLOWED for each in members.values())
        return placed + max(0, bound - allowed) >= needed

    def _needed(self, pod: PodFacts, key: GroupKey) -> int | None:
        return min_member(pod, self._groups.get(key))

    def _running(self, key: GroupKey) -> int:
        """Return how many members ran from the start."""
        group = self._groups.get(key)
        return 0 if group is None else group.running

    def _timeout_s(self, pod: PodFacts, key: GroupKey) -> float:
        group = self._groups.get(key)
        if group is not None and group.timeout_s is not None:
            return group.timeout_s
        own = pod.pod_group.timeout_s if pod.pod_group is not None else None
        return self._wait_s if own is None else own

    def _group_error(self, pod: PodFacts) -> str:
        key = group_key(pod)
        if key is None or self._needed(pod, key) is not None:
            return ""
        assert pod.pod_group is not None, "it has a key"
        why = pod.pod_group.error or "no PodGroup, label or annotation says how many pods it needs"
        return f'pod group "{_group_name(key)}": {why}'


def _waiting_uids(members: dict[str, _MemberState]) -> list[str]:
    return [uid for uid, each in members.items() if each is _MemberState.WAITING]


def _group_name(key: GroupKey) -> str:
    return "/".join(key)


def _is_of_same_group(
    pod: PodFacts, change: ObjectChange[EventPod], cluster: object
) -> QueueingHint:
    """Queue if a pod of the same group was added, or any pod was deleted."""
    if change.new is None:
        return QueueingHint.QUEUE
    return QueueingHint.when(group_key(change.new.facts) == group_key(pod))


def _is_of_own_group(pod: PodFacts, assigned: PodFacts, cluster: object) -> bool:
    """Whether an assigned pod is of a waiting pod's group, so that it may complete the group."""
    key = group_key(pod)
    return key is not None and key == group_key(assigned)
