"""QueueActor: receives the messages for `SchedulingQueue`.

`SchedulingQueue` decides everything; the actor reads the clock, waits, and calls other actors.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from roadstead.actors.drive import drive
from roadstead.actors.interface import NOTHING, Directory, Nothing, ResendingRef, clock_s
from roadstead.actors.messages import (
    NOMINATE,
    ActorStatus,
    Leased,
    LeaseReport,
    LeaseRequest,
    NominateBatch,
    PageRequest,
    PendingPage,
    PodList,
    QueueStatus,
    Renew,
    Renewed,
    Submitted,
    pod_list,
)
from roadstead.actors.messages.changes import ClusterChanges
from roadstead.actors.messages.recovery import (
    POD_NODES,
    BoundBefore,
    EndOwner,
    Nominated,
    OwnerEpoch,
    Restored,
    Uids,
)
from roadstead.actors.names import BINDER, CACHE
from roadstead.queue.nominations import QueueSteps, SendNominations
from roadstead.run import RunPlan
from roadstead.run_parts import build_queue

T = TypeVar("T")
"""Result of the queue's steps."""

_TICK_S = 0.25
"""Longest pause between two checks of the queue for a lease request that waits for pods."""


class QueueActor:
    """The scheduling queue of a run.

    is_new: it replaces a queue that failed, and pods are submitted again. Until `restored` is
    called, `queue_state` counts one more pod in flight, so that the client does not end the run.
    """

    def __init__(self, plan: RunPlan, directory: Directory, *, is_new: bool = False) -> None:
        self._plan = plan
        self.queue = build_queue(plan)
        self.core = self.queue.core
        self._changed = asyncio.Event()
        self._directory, self._is_new = directory, is_new
        self._call_s = plan.settings.deadlines.call_s
        self._is_restored, self._done_before = not is_new, 0

    async def _drive(self, steps: QueueSteps[T]) -> T:
        """Run steps to their result; send the nominations that they yield to the cache."""
        return await drive(steps, self._send)

    async def _send(self, need: SendNominations) -> float:
        """Send nominations to the cache; return the time after its answer."""
        # Without victims: nominations with victims are sent by the scheduler that preempts; the
        # queue only ends, restores or corrects them.
        preempts = (False,) * len(need.pods)
        message = NominateBatch(pod_list(need.pods), tuple(need.nodes), preempts)
        cache = ResendingRef(self._directory.find(CACHE))
        await cache.call(NOMINATE, message, timeout_s=self._call_s)
        return clock_s()

    async def submit(self, batch: PodList) -> Submitted:
        """Add pods and update known ones; return those refused because the queue is full."""
        if self._is_new:
            batch = await self._unbound_pods(batch)
        pods = list(batch.pods())
        answer = await self._drive(self.queue.submit(pods, clock_s(), batch.revision))
        self._wake()
        return Submitted(len(answer.accepted), answer.refused)

    async def _unbound_pods(self, batch: PodList) -> PodList:
        """Return the pods that are neither bound nor deleted, by the binder's answer.

        A repeated message may contain pods that an earlier incarnation of this queue leased.
        """
        binder = ResendingRef(self._directory.find(BINDER))
        answer = await binder.call(POD_NODES, Uids(batch.uids), timeout_s=self._call_s)
        pods = zip(batch.pods(), answer.nodes, strict=True)
        return pod_list((pod for pod, node in pods if node == ""), batch.revision)

    async def lease(self, request: LeaseRequest) -> Leased:
        """Lease pods; if there are none, wait for some, for at most `wait_s`.

        request.gangs: gangs with pods that wait at Permit; their other pods move to activeQ first.
        request.profile: lease pods of this profile only; "" for all.
        """
        deadline_s = clock_s() + request.wait_s
        self.queue.activate_gangs(request.gangs, clock_s())
        while True:
            now_s = clock_s()
            batch = self.queue.lease(
                request.owner, request.epoch, request.max_pods, now_s, request.profile
            )
            if batch.pods or now_s >= deadline_s:
                break
            self._changed.clear()
            # A backoff or lease that expires sets no event: look again after `_TICK_S`.
            try:
                async with asyncio.timeout(min(_TICK_S, deadline_s - now_s)):
                    await self._changed.wait()
            except TimeoutError:
                continue
        return Leased(
            batch.lease_id,
            pod_list((pod.identity, pod.facts) for pod in batch.pods),
            lease_counts=tuple(pod.attempts for pod in batch.pods),
            tie_break_numbers=tuple(pod.tie_break_number for pod in batch.pods),
            waiting=self.core.active_count,
            turn=self._partition_turn(now_s),
            gangs=self.queue.bound_of_gangs(batch),
        )

    def _partition_turn(self, now_s: float) -> int:
        """Return how often partitions have moved to the next scheduler; 0 if they never move."""
        refresh_s = self._plan.settings.partition_refresh_s
        return int(now_s / refresh_s) if refresh_s else 0

    async def renew(self, request: Renew) -> Renewed:
        """Extend leases; return those that are still valid."""
        return Renewed(self.queue.renew(request.lease_ids, clock_s()))

    async def report(self, report: LeaseReport) -> Nothing:
        """Remove bound and evicted pods, requeue the others with the reasons why they wait."""
        steps = self.queue.report(
            report.lease_id,
            report.bound,
            report.returned,
            report.pending_reasons,
            report.evicted.pods(),
            clock_s(),
            revision=report.evicted.revision,
        )
        await self._drive(steps)
        self._wake()
        return NOTHING

    def _wake(self) -> None:
        """Retry the next gang, if gangs are tried one at a time; wake waiting lease requests.

        After repeated failures of several gangs, these are tried one at a time (`GangTurns`): else
        two gangs that do not fit together would make each other fail forever.
        """
        self.queue.begin_gang_turn(clock_s())
        self._changed.set()

    async def bound_members(self, batch: PodList) -> Nothing:
        """Add pods that were bound before this queue started, to count them in their gangs."""
        self.queue.add_bound(list(batch.pods()), clock_s(), batch.revision)
        return NOTHING

    async def nominated(self, request: Uids) -> Nominated:
        """Return the nominations of all pods, and which requested pods have none.

        Leased pods are in neither: their scheduler may send another nomination before the answer is
        used.
        """
        nominations = self.queue.nominations.nominated(request.uids)
        # nominations.none: the requested pods without a nomination.
        return Nominated(pod_list(nominations.pods), nominations.nodes, nominations.none)

    async def remove_deleted(self, removed: PodList) -> Nothing:
        """Remove deleted pods."""
        self.queue.remove_deleted(removed.pods(), clock_s(), removed.revision)
        self._wake()
        return NOTHING

    async def observe(self, changes: ClusterChanges) -> Nothing:
        """Requeue pods that these events of nodes and pods may help."""
        removed = changes.gone.pods()
        await self._drive(self.queue.observe(changes.nodes, removed, changes.pods, clock_s()))
        self._wake()
        return NOTHING

    async def restored(self, message: Restored) -> Nothing:
        """End the restoration: all pods were submitted again."""
        self._is_restored, self._done_before = True, message.done
        return NOTHING

    async def bound_before(self, message: BoundBefore) -> Nothing:
        """Set how many pods were bound before the run was resumed.

        A replaced queue ignores it: the supervisor sends it the count with `restored`.
        """
        if not self._is_new:
            self._done_before = message.count
        return NOTHING

    async def leased_to(self, owner: OwnerEpoch) -> Uids:
        """Return pods leased to earlier incarnations of a scheduler, also by expired leases."""
        return Uids(self.queue.leased_to(owner.name, owner.epoch))

    async def end_owner(self, end: EndOwner) -> Nothing:
        """End a scheduler's earlier incarnations: remove bound and deleted pods, requeue others."""
        node_of, owner = dict(zip(end.uids, end.nodes, strict=True)), end.owner
        await self._drive(self.queue.end_owner(owner.name, owner.epoch, node_of, clock_s()))
        self._wake()
        return NOTHING

    async def queue_state(self, _: Nothing) -> QueueStatus:
        """Return the number of pods in each part of the queue, and how many are done."""
        counts = self.core.counts()
        return QueueStatus(
            active=counts.active,
            backoff=counts.backoff,
            unschedulable=counts.unschedulable,
            gated=counts.gated,
            in_flight=counts.in_flight + (not self._is_restored),
            done=counts.done_total + self._done_before,
        )

    async def pending(self, request: PageRequest) -> PendingPage:
        """Return one page of the pending pods, with reasons, and the number of all."""
        page = self.queue.pending(request.start, request.start + request.count)
        return PendingPage(tuple(page), self.core.counts().queued)

    async def status(self, _: Nothing) -> ActorStatus:
        counts = self.core.counts()
        return ActorStatus(
            f"held {counts.active} active, {counts.backoff} backing off, "
            f"{counts.unschedulable} unschedulable, {counts.gated} gated pods and "
            f"{counts.in_flight} in flight; had given out {counts.leases} leases",
            counts=(("leases", counts.leases),),
            metrics=(
                ("active", float(counts.active)),
                ("backoff", float(counts.backoff)),
                ("unschedulable", float(counts.unschedulable)),
                ("gated", float(counts.gated)),
                ("in_flight", float(counts.in_flight)),
                ("done", float(counts.done_total + self._done_before)),
            ),
        )
