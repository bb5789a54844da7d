"""QueueActor: receives the messages for the scheduling queue and calls SchedulingQueue for each.

SchedulingQueue decides everything; the actor has the clock, waits, and calls other actors.
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

_TICK_S = 0.25


class QueueActor:
    """The scheduling queue of a run.

    is_new: it replaces a queue that failed, and its pods are submitted again. Until `restored` is
    called, `queue_state` counts one more pod in flight, so that the run does not end before.
    """

    def __init__(self, plan: RunPlan, directory: Directory, *, is_new: bool = False) -> None:
        self._plan = plan
        self.queue = build_queue(plan)
        self.core = self.queue.core
        self._arrived = asyncio.Event()
        self._directory, self._is_new = directory, is_new
        self._call_s = plan.settings.deadlines.call_s
        self._is_restored, self._done_before = not is_new, 0

    async def _drive(self, steps: QueueSteps[T]) -> T:
        """Run steps to their result; the nominations that they yield are sent to the cache."""
        return await drive(steps, self._send)

    async def _send(self, need: SendNominations) -> float:
        """Send nominations to the cache; return the time after its answer."""
        # A scheduler sends the nominations that have victims; these end, restore or correct them.
        preempts = (False,) * len(need.pods)
        message = NominateBatch(pod_list(need.pods), tuple(need.nodes), preempts)
        cache = ResendingRef(self._directory.find(CACHE))
        await cache.call(NOMINATE, message, timeout_s=self._call_s)
        return clock_s()

    async def submit(self, batch: PodList) -> Submitted:
        """Add pods, update known ones that changed; the answer names those of a full queue."""
        if self._is_new:
            batch = await self._unbound_pods(batch)
        pods = list(batch.pods())
        answer = await self._drive(self.queue.submit(pods, clock_s(), batch.revision))
        self._wake()
        return Submitted(len(answer.accepted), answer.refused)

    async def _unbound_pods(self, batch: PodList) -> PodList:
        """Return the pods that are neither bound nor deleted, by the binder's answer.

        The sender may repeat a message that an earlier incarnation of this queue handled.
        """
        binder = ResendingRef(self._directory.find(BINDER))
        answer = await binder.call(POD_NODES, Uids(batch.uids), timeout_s=self._call_s)
        pods = zip(batch.pods(), answer.nodes, strict=True)
        return pod_list((pod for pod, node in pods if node == ""), batch.revision)

    async def lease(self, request: LeaseRequest) -> Leased:
        """Lease pods; if there are none, wait for some, for at most `wait_s`.

        request.gangs: gangs with pods that wait at Permit; the others of each are activated first.
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
            self._arrived.clear()
            # Backoffs and leases that expire set no event: look again after `_TICK_S`.
            try:
                async with asyncio.timeout(min(_TICK_S, deadline_s - now_s)):
                    await self._arrived.wait()
            except TimeoutError:
                continue
        return Leased(
            batch.lease_id,
            pod_list((pod.identity, pod.facts) for pod in batch.pods),
            tuple(pod.attempts for pod in batch.pods),
            tuple(pod.tie_break_number for pod in batch.pods),
            self.core.active_count,
            self._partition_turn(now_s),
            self.queue.bound_of_gangs(batch),
        )

    def _partition_turn(self, now_s: float) -> int:
        """Return how often partitions have moved to the next scheduler."""
        refresh_s = self._plan.settings.partition_refresh_s
        return int(now_s / refresh_s) if refresh_s else 0

    async def renew(self, request: Renew) -> Renewed:
        """Extend leases; return those that are still valid."""
        return Renewed(self.queue.renew(request.lease_ids, clock_s()))

    async def report(self, report: LeaseReport) -> Nothing:
        """Remove bound and evicted pods, requeue the others; the notes say why they are pending."""
        steps = self.queue.report(
            report.lease_id,
            report.done,
            report.given_back,
            report.notes,
            report.gone.pods(),
            clock_s(),
            revision=report.gone.revision,
        )
        await self._drive(steps)
        self._wake()
        return NOTHING

    def _wake(self) -> None:
        """Wake the lease requests that wait for pods, after the next gang's turn may have begun."""
        self.queue.begin_gang_turn(clock_s())
        self._arrived.set()

    async def bound_members(self, batch: PodList) -> Nothing:
        """Add pods of gangs that were bound before this queue started, so that they are counted."""
        self.queue.add_bound(list(batch.pods()), clock_s(), batch.revision)
        return NOTHING

    async def nominated(self, request: Uids) -> Nominated:
        """Return all nominations, and the pods of `ask` without one; leased pods are in neither.

        The scheduler of a leased pod may send another nomination first.
        """
        found = self.queue.nominations.nominated(request.uids)
        return Nominated(pod_list(found.pods), found.nodes, found.none)

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
        """Return pods leased to earlier incarnations of a scheduler, expired leases included."""
        return Uids(self.queue.leased_to(owner.name, owner.epoch))

    async def end_owner(self, end: EndOwner) -> Nothing:
        """End a scheduler's earlier incarnations: remove bound and deleted pods, requeue others."""
        node_of, owner = dict(zip(end.uids, end.nodes, strict=True)), end.owner
        await self._drive(self.queue.end_owner(owner.name, owner.epoch, node_of, clock_s()))
        self._wake()
        return NOTHING

    async def queue_state(self, _: Nothing) -> QueueStatus:
        """Return the number of pods in each part of the queue, and how many are bound."""
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
        waiting = self.queue.pending()
        page = waiting[request.start : request.start + request.count]
        return PendingPage(tuple(page), len(waiting))

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
