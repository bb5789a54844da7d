"""SchedulingQueue: QueueCore with the hints, gangs, nominations and pending reasons of a run.

    submit ──► gates ──► QueueCore ──► lease ──► report: bound, returned
                 ▲           ▲                      │
                 │           └── events ◄───────────┴── observe, remove_deleted, end_owner
                 └── members of gangs, nominations

Callers pass the time (`now_s`). Nominations for the cache are yielded as steps (`QueueSteps`): the
caller sends each to the cache before it requests the next step. Follows PriorityQueue of upstream
(pkg/scheduler/backend/queue/scheduling_queue.go, 1.34), with leases in place of Pop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from roadstead.devices.state import DeviceState
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.framework.change_events import pod_change_events
from roadstead.framework.hint_map import HintMap, OccurredEvent
from roadstead.framework.members import GroupMembers
from roadstead.framework.profile import Profile
from roadstead.protocol.errors import cut_short
from roadstead.protocol.status import Status, unresolvable
from roadstead.queue.core import PodPredicate, QueueCore
from roadstead.queue.event_rules import event_rules
from roadstead.queue.events import PodEvents, node_events, pod_events
from roadstead.queue.gang_turns import GangTurns
from roadstead.queue.gangs import Gangs
from roadstead.queue.nominations import QueueNominations, QueueSteps
from roadstead.queue.overdue import OverduePods
from roadstead.queue.pending_reasons import PendingReasons
from roadstead.queue.pods import AddResult, LeaseBatch, QueueSettings, QueueState, RequeueReason
from roadstead.queue.reports import NodeChange, PendingReason, PodChange, ReturnedPod
from roadstead.queue.retries import Retries
from roadstead.revisions import Revisions

WAITING = (QueueState.ACTIVE, QueueState.BACKOFF, QueueState.UNSCHEDULABLE, QueueState.GATED)

MAX_FAILED_REPORTS = 10
"""Maximum number of reports of failed attempts, since a pod was last bound, whose freed resources
may move gangs to activeQ; see `SchedulingQueue._handle_freed`.
"""


class SchedulingQueue:
    """The pods of a run that are not bound.

    profiles: by scheduler name. members: the pods of each gang, which the gangs' plugins read.
    pod_revisions: of the last addition or removal of each pod. _reasons: why each pod is pending.
    _retries: counts and bounds the lost races and failed attempts of each pod. _overdue: pods of
    expired leases, which their scheduler may still bind. _gang_turns: tries gangs one at a time if
    they would requeue each other for ever. _failed_reports: number of reports of failed attempts
    since a pod was bound, see `MAX_FAILED_REPORTS`.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        members: GroupMembers,
        cluster: ClusterFacts,
        settings: QueueSettings,
    ) -> None:
        self._profiles, self._members = profiles, members
        self._events = PodEvents(cluster.devices.claims)
        self.hints = HintMap(profiles, cluster)
        self.core: QueueCore[OccurredEvent] = QueueCore(
            gate=self.gate,
            rules=event_rules(self.hints),
            sort=next(iter(profiles.values())).queue_sort.sort_key,
            settings=settings,
        )
        self.pod_revisions = Revisions()
        self._reasons = PendingReasons()
        self._retries = Retries()
        self._overdue = OverduePods()
        self._failed_reports = 0
        self._gangs = Gangs(
            profiles.values(), self.core, members, self._events, self._handle_events
        )
        self._gang_turns = GangTurns(self.core, members)
        self.nominations = QueueNominations(self.core, self._events, self._handle_events)

    def gate(self, facts: PodFacts) -> Status:
        """Return the PreEnqueue status of a pod's profile; an error if there is no such profile."""
        profile = self._profiles.get(facts.scheduler_name)
        if profile is None:
            return unresolvable(
                f"no profile has the scheduler name {cut_short(facts.scheduler_name)}"
            )
        return profile.run_pre_enqueue(facts)

    # Pods are added and removed.

    def add_device_claims(self, claims: Sequence[DeviceClaimFacts]) -> None:
        """Add device claims that were created for pods which will be submitted next."""
        self._devices.apply(claims)
        self._events.add_claims(claims)

    def end_device_claims(self, uids: Sequence[str]) -> None:
        """Remove the device claims that were created for pods that ended."""
        ended = frozenset(uids)
        found = self._devices.claims_of_pods(uids)
        removed = [each.key for each in found if each.owner_uid in ended]
        self._devices.apply((), removed)
        self._events.remove_claims(removed)

    @property
    def _devices(self) -> DeviceState:
        """Claims as PreEnqueue reads them; the queue does not have their allocations."""
        return next(iter(self._profiles.values())).storage.devices

    def submit(self, pods: Sequence[Pod], now_s: float, revision: int = 0) -> QueueSteps[AddResult]:
        """Add pods; update those of the queue that changed.

        Pods with a newer change or removal than `revision` are ignored.
        """
        valid = self._apply_additions(pods, revision)
        # The gang members of all pods are counted first: PreEnqueue reads the counts.
        classes = {id(facts): facts for _, facts in valid}
        gang_classes = {key for key, facts in classes.items() if group_key(facts) is not None}
        gang_pods = (each for each in valid if id(each[1]) in gang_classes) if gang_classes else ()
        new_members = [facts for pod, facts in gang_pods if self._members.add(pod.uid, facts)]
        has_queued = bool(self.core.known_uids(identity.uid for identity, _ in pods))
        for identity, facts in valid if has_queued else ():
            # Before `core.add`, which would treat the change as "any event".
            old = self.core.facts_of(identity.uid)
            if old is not None and old != facts:
                if group_key(facts) is None:
                    self._members.remove(identity.uid)
                events = pod_change_events(old, facts, is_assigned=False)
                self.core.update(identity, facts, now_s, events)
        answer = self.core.add(valid, now_s)
        self._handle_events(self._events.added(new_members), now_s)
        self._record_gated(valid)
        yield from self.nominations.send_changes()
        return answer

    def _apply_additions(self, pods: Sequence[Pod], revision: int) -> Sequence[Pod]:
        """Record the revision of pods; return those without a newer change or removal."""
        indices = self.pod_revisions.apply_additions(
            [identity.uid for identity, _ in pods], revision
        )
        return pods if indices is None else [pods[index] for index in indices]

    def _record_gated(self, pods: Sequence[Pod]) -> None:
        """Record why pods are gated."""
        statuses: dict[int, Status] = {}
        for identity, facts in pods:
            if self.core.state_of(identity.uid) is not QueueState.GATED:
                continue
            status = statuses.get(id(facts))
            if status is None:
                status = statuses[id(facts)] = self.core.gate(facts)
            if not status.is_success:
                self._reasons.record_gated(identity, facts, status)

    def add_bound(self, pods: Sequence[Pod], now_s: float, revision: int = 0) -> None:
        """Add bound pods of gangs to a new queue, unless newer revisions removed them."""
        self._gangs.add_bound(self._apply_additions(pods, revision), now_s)

    def remove_deleted(self, pods: Iterable[Pod], now_s: float, revision: int = 0) -> None:
        """Remove deleted pods; the resources that they used may help other pods."""
        pods = list(pods)
        uids = list(
            self.pod_revisions.apply_removals([identity.uid for identity, _ in pods], revision)
        )
        self.core.delete(uids)
        for uid in uids:
            self._members.remove(uid)
            self._forget(uid)
        self._handle_events(self._events.unassigned(facts for _, facts in pods), now_s)

    def _forget(self, uid: str) -> None:
        self._reasons.forget(uid)
        self._retries.forget(uid)

    # Leases.

    def activate_gangs(self, gangs: Sequence[GroupKey], now_s: float) -> None:
        """Activate the pods of these gangs that stopped waiting: others wait at Permit now."""
        self._gangs.activate_gangs(gangs, now_s)

    def lease(
        self, owner: str, epoch: int, max_pods: int, now_s: float, profile: str = ""
    ) -> LeaseBatch:
        """Lease up to `max_pods` pods, see `QueueCore.lease`.

        First, leases, backoffs and other waits that are due are ended, see `QueueCore.tick`.
        """
        self._overdue.add(self.core.tick(now_s), self.core)
        batch = self.core.lease(owner, epoch, max_pods, now_s, profile)
        self._gang_turns.leased(batch.pods)
        return batch

    def bound_of_gangs(self, batch: LeaseBatch) -> tuple[tuple[str, str, int], ...]:
        """Return (namespace, name, number of bound pods) for each gang in a lease."""
        return self._gangs.bound_counts(batch.pods)

    def renew(self, lease_ids: Iterable[int], now_s: float) -> tuple[int, ...]:
        """Extend leases; return those that have not ended."""
        return tuple(each for each in lease_ids if self.core.renew(each, now_s).is_success)

    def report(
        self,
        lease_id: int,
        bound: Sequence[str],
        returned: Sequence[ReturnedPod],
        pending_reasons: Sequence[PendingReason],
        evicted: Iterable[Pod],
        now_s: float,
        revision: int = 0,
    ) -> QueueSteps[None]:
        """Apply a scheduler's report on leased pods.

        bound: UIDs. returned: pods that return to the queue. pending_reasons: why pods are pending.
        evicted: pods that were deleted at `revision`.
        """
        # A pod may have been deleted before the report was received: its records would stay
        # forever.
        facts_of = self.core.facts_of
        self._reasons.record(each for each in pending_reasons if facts_of(each.uid) is not None)
        if bound:
            self._remove_bound(lease_id, bound, now_s)
        if returned:
            requeues = [self._retries.requeue(lease_id, each) for each in returned]
            # Before the core applies the reports, which replace the nominations.
            superseded = self.nominations.superseded_by(requeues)
            answer = self.core.requeue(lease_id, requeues, now_s)
            for uid in answer.stale:
                if facts_of(uid) is None:
                    self._retries.forget(uid)
            self.nominations.note_stale(returned, answer.stale)
            superseded = {uid: superseded[uid] for uid in answer.applied if uid in superseded}
            # The resources reserved by their former nominations are free for other pods.
            self._handle_events(
                self._events.unassigned(superseded.values()),
                now_s,
                lambda pod, _: pod.uid not in superseded,
            )
            self._handle_freed(returned, now_s)
            yield from self.nominations.send_changes()
            yield from self.nominations.send_corrections()
        self.remove_deleted(evicted, now_s, revision)
        yield from self.nominations.send_changes()

    def _remove_bound(self, lease_id: int, uids: Sequence[str], now_s: float) -> None:
        """Remove bound pods and create their events."""
        self._members.bind(uids)
        # Read the facts before `core.done` removes the pods.
        bound = [facts for uid in uids if (facts := self.core.facts_of(uid))]
        answer = self.core.done(lease_id, uids)
        # The lease of stale pods ended before the report was received, but the pods are bound.
        self.core.assigned(answer.stale)
        for uid in uids:
            self._forget(uid)
        self._handle_events(self._events.assigned(bound), now_s)
        self._failed_reports = 0

    def begin_gang_turn(self, now_s: float) -> None:
        """Begin the next gang's turn, if no gang is being tried; see `GangTurns`."""
        self._gang_turns.begin_gang_turn(now_s)

    def _handle_freed(self, returned: Sequence[ReturnedPod], now_s: float) -> None:
        """Create the events of pods whose assumptions ended, as if they had left their nodes.

        The events do not move these pods, nor other pods of a gang that stopped waiting. They may
        move all others, up to `MAX_FAILED_REPORTS` failed reports without a bind. From then on, a
        failed gang moves only pods without a gang, a failed pod without a gang moves none, and
        gangs are tried in turns (`GangTurns`): otherwise two gangs that do not fit would move each
        other to activeQ for ever.
        """
        # In order: the events of these pods have the order of the report.
        freed = dict.fromkeys(each.uid for each in returned if each.freed)
        reasons = {RequeueReason(each.reason) for each in returned if each.freed}
        # Lost races are not counted here: `Retries` bounds them for each pod.
        has_failed = not reasons <= {RequeueReason.CONFLICT}
        if has_failed:
            self._failed_reports += 1
        spares_gangs = has_failed and self._failed_reports > MAX_FAILED_REPORTS
        self._gang_turns.freed(freed if spares_gangs else ())
        if spares_gangs and any(self._members.group_of(uid) is None for uid in freed):
            return
        stopped_waiting = {
            self._members.group_of(each.uid)
            for each in returned
            if self._gangs.stopped_waiting(each.rejected_by)
        }
        known = (self.core.facts_of(uid) for uid in freed)

        def may_move(pod: PodIdentity, facts: PodFacts) -> bool:
            group = group_key(facts)
            return pod.uid not in freed and (group is None or group not in stopped_waiting)

        facts = (each for each in known if each is not None)
        # `may_move` holds for waiting pods; `spares_gangs` also for pods in flight, when they
        # return.
        self._handle_events(
            self._events.unassigned(facts, spares_gangs=spares_gangs), now_s, may_move
        )

    # Events.

    def observe(
        self,
        nodes: Iterable[NodeChange],
        left: Iterable[Pod],
        changed: Iterable[PodChange],
        now_s: float,
    ) -> QueueSteps[None]:
        """Create the events of changed nodes, and of pods that left nodes or changed on them."""
        freed = self._events.unassigned(facts for _, facts in left)
        self._handle_events([*node_events(nodes), *freed, *pod_events(changed)], now_s)
        yield from self.nominations.send_changes()

    def observe_bound(self, pods: Iterable[PodFacts], now_s: float) -> QueueSteps[None]:
        """Create the events of pods that were bound without this queue."""
        self._handle_events(self._events.assigned(pods), now_s)
        self._failed_reports = 0
        yield from self.nominations.send_changes()

    def _handle_events(
        self, events: Sequence[OccurredEvent], now_s: float, predicate: PodPredicate | None = None
    ) -> None:
        """Pass the events that a plugin registered to the core."""
        registered = [each for each in events if self.hints.is_of_interest(each.event)]
        if registered:
            self.core.move(registered, now_s, predicate)

    # Schedulers that were replaced.

    def leased_to(self, owner: str, epoch: int) -> tuple[str, ...]:
        """Return the pods that earlier incarnations of a scheduler leased, expired leases too."""
        leased = self.core.leased_to(owner, epoch)
        return (*leased, *sorted(self._overdue.before(owner, epoch).difference(leased)))

    def end_owner(
        self, owner: str, epoch: int, node_of: Mapping[str, str | None], now_s: float
    ) -> QueueSteps[None]:
        """End earlier incarnations of a scheduler: remove bound and deleted pods, requeue others.

        node_of: uid → node, "" for a pod that is not bound, None for a deleted one. Pods that are
        not bound may have been assumed: the resources of these assumptions are free again.
        """
        leased = self.core.leased_to(owner, epoch)
        deleted = [uid for uid in leased if uid in node_of and node_of[uid] is None]
        bound_uids = [uid for uid, node in node_of.items() if node]
        # Read the facts before the core removes the pods.
        bound = self._known_facts(bound_uids)
        freed = self._known_facts(uid for uid in node_of if not node_of[uid])
        self._members.bind(bound_uids)
        self.core.assigned(bound_uids)
        self.core.delete(deleted)
        for uid in (*bound_uids, *deleted):
            self._forget(uid)
        self.core.revoke(owner, epoch, now_s)
        self._overdue.end(owner, epoch)
        self._handle_events([*self._events.assigned(bound), *self._events.unassigned(freed)], now_s)
        yield from self.nominations.send_changes()

    def _known_facts(self, uids: Iterable[str]) -> list[PodFacts]:
        """Return the facts of those pods that are in the queue."""
        return [facts for uid in uids if (facts := self.core.facts_of(uid)) is not None]

    # Reasons of pending pods.

    def pending(self, start: int = 0, stop: int | None = None) -> list[PendingReason]:
        """Return why each pod of the queue is pending, or those from `start` to before `stop`."""
        return [
            self._reasons.of(pod.identity, self.core.state_of(pod.identity.uid))
            for pod in self.core.pods(*WAITING, QueueState.IN_FLIGHT, start=start, stop=stop)
        ]
