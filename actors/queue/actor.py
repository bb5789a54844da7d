"""Queue: a shell around QueueCore. Pods come in, leases go out, reports come back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from roadstead.actors.messages import (
    ActorStatus,
    LeaseAsk,
    Leased,
    LeaseReport,
    PageAsk,
    PendingPage,
    PodBatch,
    QueueState,
    Renew,
    Renewed,
    Submitted,
    pod_batch,
)
from roadstead.actors.messages.changes import ClusterChanges
from roadstead.actors.messages.recovery import (
    STANDING,
    BoundBefore,
    Nominated,
    Owner,
    OwnerEnds,
    Restored,
    Uids,
)
from roadstead.actors.names import BINDER, CACHE
from roadstead.actors.queue.events import PodEvents, node_events, pod_events
from roadstead.actors.queue.gang_turns import GangTurns
from roadstead.actors.queue.gangs import Gangs
from roadstead.actors.queue.nominations import NominationSync
from roadstead.actors.seam import NOTHING, Directory, Nothing, PatientRef, clock_s
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.facts.pod_groups import group_key
from roadstead.framework.fact_changes import seen_pod
from roadstead.framework.hint_map import WITHOUT_NODES, HintMap, SeenEvent
from roadstead.framework.members import GroupMembers
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_info import PodClasses
from roadstead.protocol.errors import cut_short
from roadstead.protocol.status import Status, unresolvable
from roadstead.queue import (
    Among,
    PodState,
    QueueCore,
    QueueSettings,
    Requeue,
    RequeueReason,
)
from roadstead.queue.reports import GivenBack, PendingNote
from roadstead.queue.rules import rules_of
from roadstead.revisions import Revisions
from roadstead.run import RunPlan, build_profiles

WAITING = (PodState.ACTIVE, PodState.BACKOFF, PodState.UNSCHEDULABLE, PodState.GATED)

MAX_FAILURES = 3
"""A pod whose attempts failed so often waits like an unschedulable one: a run must end."""

MAX_CONFLICTS = 10
"""A pod that lost so many races backs off before the next: pods that each count on another one that
is assumed, and not bound either, would lose to each other for ever."""

FAILS_AGAIN = "fails again and again"
"""Stands for the plugin that rejected such a pod; no event is known to help it."""

MAX_WAKES = 10
"""How often pods that are given up wake others before some pod is bound; gangs then get turns."""

_TICK_S = 0.25
_UNSCHEDULABLE, _CONFLICT = RequeueReason.UNSCHEDULABLE, RequeueReason.CONFLICT


class QueueActor:
    """The scheduling queue of a run.

    is_new: it takes the place of another one, and counts as busy until all pods are there again.
    """

    def __init__(self, plan: RunPlan, directory: Directory, *, is_new: bool = False) -> None:
        self._plan = plan
        self._members = GroupMembers(is_known=True)
        self._profiles = build_profiles(plan, PodClasses(), members=self._members)
        settings = plan.settings
        config = plan.config()
        self._events = PodEvents()
        self._hints = HintMap(self._profiles, plan.cluster)
        self.core: QueueCore[SeenEvent] = QueueCore(
            gate=self._gate,
            rules=rules_of(self._hints),
            sort=next(iter(self._profiles.values())).queue_sort.sort_key,
            settings=QueueSettings(
                max_pods=settings.bounds.queue_max_pods,
                lease_s=settings.deadlines.lease_s,
                backoff_initial_s=config.pod_initial_backoff_s,
                backoff_max_s=config.pod_max_backoff_s,
                by_profile=settings.scheduler_profiles[0] != "",
            ),
        )
        self._notes: dict[str, PendingNote] = {}
        self._failures: dict[str, dict[int, int]] = {}
        self._conflicts: dict[str, dict[int, int]] = {}
        self._overdue: dict[str, set[str]] = {}
        self._wakes = 0
        self._arrived = asyncio.Event()
        self._directory, self._is_new = directory, is_new
        self._pods_known = Revisions()
        self._is_whole, self._done_before = not is_new, 0
        self._gangs = Gangs(
            *(self._profiles.values(), self.core, self._members, self._events, self._happened)
        )
        self._gang_turns = GangTurns(self.core, self._members)
        self._nominations = NominationSync(
            *(self.core, self._events, self._happened),
            cache=lambda: PatientRef(directory.find(CACHE)),
            call_s=settings.deadlines.call_s,
        )

    def _gate(self, facts: PodFacts) -> Status:
        profile: Profile | None = self._profiles.get(facts.scheduler_name)
        if profile is None:
            return unresolvable(
                f"no profile has the scheduler name {cut_short(facts.scheduler_name)}"
            )
        return profile.gate(facts)

    async def submit(self, batch: PodBatch) -> Submitted:
        """Takes pods; those that come again are known already, and updated if they changed."""
        if self._is_new:
            batch = await self._still_waiting(batch)
        pods = batch.news(self._pods_known)
        now_s = clock_s()
        # All of a batch are there before the first of them meets its gate.
        classes = {id(facts): facts for _, facts in pods}
        in_gangs = {known for known, facts in classes.items() if group_key(facts) is not None}
        coming = (each for each in pods if id(each[1]) in in_gangs) if in_gangs else ()
        members = [facts for pod, facts in coming if self._members.add(pod.uid, facts)]
        again = self.core.known_among(batch.uids)
        for identity, facts in pods if again else ():
            known = self.core.facts_of(identity.uid)
            if known is not None and known != facts:
                events = seen_pod(known, facts, is_assigned=False)
                self.core.update(identity, facts, now_s, events)
        answer = self.core.add(pods, now_s)
        self._happened(self._events.waiting(members), now_s)
        gates = {known: self.core.gate(facts) for known, facts in classes.items()}
        is_open = all(status.is_success for status in gates.values())
        for identity, facts in () if is_open else pods:
            status = gates[id(facts)]
            if not status.is_success:
                self._notes[identity.uid] = _note_on(identity, facts, status)
        await self._nominations.tell()
        self._wake()
        return Submitted(len(answer.accepted), answer.refused)

    async def _still_waiting(self, batch: PodBatch) -> PodBatch:
        """Those neither bound nor gone: a sender may not know what an earlier life took."""
        binder = PatientRef(self._directory.find(BINDER))
        timeout_s = self._plan.settings.deadlines.call_s
        words = await binder.call(STANDING, Uids(batch.uids), timeout_s=timeout_s)
        pods = zip(batch.pods(), words.nodes, strict=True)
        return pod_batch((pod for pod, node in pods if node == ""), batch.revision)

    async def lease(self, ask: LeaseAsk) -> Leased:
        """Pods under a lease, at once if there are any."""
        deadline_s = clock_s() + ask.wait_s
        self._gangs.gather(ask.gangs, clock_s())
        while True:
            now_s = clock_s()
            for ended in self.core.tick(now_s):
                self._overdue.setdefault(ended.owner, set()).update(ended.uids)
            batch = self.core.lease(ask.owner, ask.epoch, ask.max_pods, now_s, ask.profile)
            if batch.pods or now_s >= deadline_s:
                break
            self._arrived.clear()
            try:
                async with asyncio.timeout(min(_TICK_S, deadline_s - now_s)):
                    await self._arrived.wait()
            except TimeoutError:
                continue
        pods = pod_batch((pod.identity, pod.facts) for pod in batch.pods)
        attempts = tuple(pod.attempts for pod in batch.pods)
        draws = tuple(pod.draw for pod in batch.pods)
        self._gang_turns.leased(batch.pods)
        turn, gangs = self._turn(now_s), self._gangs.bound_among(batch.pods)
        return Leased(batch.lease_id, pods, attempts, draws, self.core.waiting, turn, gangs)

    def _turn(self, now_s: float) -> int:
        refresh_s = self._plan.settings.partition_refresh_s
        return int(now_s / refresh_s) if refresh_s else 0

    async def renew(self, ask: Renew) -> Renewed:
        """Leases of a scheduler that still thinks go on."""
        now_s = clock_s()
        going_on = (each for each in ask.lease_ids if self.core.renew(each, now_s).is_success)
        return Renewed(tuple(going_on))

    async def report(self, report: LeaseReport) -> Nothing:
        """What became of leased pods."""
        now_s = clock_s()
        for note in report.notes:
            self._notes[note.uid] = note
        if report.done:
            self._members.bind(report.done)
            bound = [facts for uid in report.done if (facts := self.core.facts_of(uid))]
            answer = self.core.done(report.lease_id, report.done)
            # Their lease ended before the report came; they are bound all the same.
            self.core.assigned(answer.stale)
            for uid in report.done:
                self._notes.pop(uid, None)
                self._failures.pop(uid, None)
                self._conflicts.pop(uid, None)
            self._happened(self._events.assigned(bound), now_s)
            self._wakes = 0
        if report.given_back:
            back = [self._requeue(report.lease_id, each) for each in report.given_back]
            lost = self._nominations.losing(back)
            answer = self.core.requeue(report.lease_id, back, now_s)
            self._nominations.not_heard(report.given_back, answer.stale)
            lost = {uid: lost[uid] for uid in answer.applied if uid in lost}
            # The room that was kept for them is there for others, as if they had left it.
            self._happened(
                self._events.gone(lost.values()), now_s, lambda who, _: who.uid not in lost
            )
            self._free(report.given_back, now_s)
            await self._nominations.tell()
            await self._nominations.say_what_holds()
        self._leave(report.gone, now_s)
        await self._nominations.tell()
        self._wake()
        return NOTHING

    def _wake(self) -> None:
        """Whoever waits for pods looks again; there are more where a gang's turn has come."""
        self._gang_turns.go_on(clock_s())
        self._arrived.set()

    async def bound_members(self, batch: PodBatch) -> Nothing:
        """Pods of gangs were bound before this queue began."""
        self._gangs.were_bound(batch.news(self._pods_known), clock_s())
        return NOTHING

    async def nominated(self, ask: Uids) -> Nominated:
        """Who is nominated, and who of those asked about is not; lent pods are left out."""
        return self._nominations.nominated(ask)

    async def leave(self, gone: PodBatch) -> Nothing:
        """Pods are gone."""
        self._leave(gone, clock_s())
        self._wake()
        return NOTHING

    def _leave(self, gone: PodBatch, now_s: float) -> None:
        """Evicted pods leave, and what they held may help others."""
        uids = self._pods_known.leaves(gone.uids, gone.revision)
        self.core.delete(uids)
        for uid in uids:
            self._members.remove(uid)
            self._notes.pop(uid, None)
            self._failures.pop(uid, None)
            self._conflicts.pop(uid, None)
        self._happened(self._events.gone(facts for _, facts in gone.pods()), now_s)

    def _free(self, back: Sequence[GivenBack], now_s: float) -> None:
        """What pods had been assumed to hold is free again: as if they had left their nodes.

        They themselves are not helped by it, nor are others of a gang that gave up. Nor does it go
        on for ever: two gangs of which neither fits would wake each other. After `MAX_WAKES` gangs
        wake only pods of no gang, and gangs are tried by turns.
        """
        freed = {each.uid for each in back if each.freed}
        lost_races = all(RequeueReason(each.reason) is _CONFLICT for each in back if each.freed)
        if not lost_races:
            self._wakes += 1
        is_worn = not lost_races and self._wakes > MAX_WAKES
        self._gang_turns.freed(freed if is_worn else ())
        if is_worn and any(self._members.group_of(uid) is None for uid in freed):
            return
        gave_up = {
            self._members.group_of(each.uid)
            for each in back
            if self._gangs.gave_up(each.rejected_by)
        }
        known = (self.core.facts_of(uid) for uid in freed)

        def may_move(pod: PodIdentity, facts: PodFacts) -> bool:
            group = group_key(facts)
            return pod.uid not in freed and (group is None or group not in gave_up)

        facts = (each for each in known if each is not None)
        # Gangs in flight would wake each other by way of what they see there.
        self._happened(self._events.gone(facts, spares_gangs=is_worn), now_s, may_move)

    async def observe(self, changes: ClusterChanges) -> Nothing:
        """Nodes came, left or changed; pods left their nodes, or changed there."""
        gone = self._events.gone(facts for _, facts in changes.gone.pods())
        events = [*node_events(changes.nodes), *gone, *pod_events(changes.pods)]
        self._happened(events, clock_s())
        await self._nominations.tell()
        self._wake()
        return NOTHING

    def _happened(
        self, events: Sequence[SeenEvent], now_s: float, among: Among | None = None
    ) -> None:
        """Tells the core of those events that some plugin registered."""
        interesting = [each for each in events if self._hints.is_of_interest(each.event)]
        if interesting:
            self.core.move(interesting, now_s, among)

    def _requeue(self, lease_id: int, back: GivenBack) -> Requeue:
        reason = RequeueReason(back.reason)
        as_told = Requeue(
            back.uid,
            reason,
            back.rejected_by,
            back.pending,
            nominated_node=back.nominated_node,
            preempts=back.preempts,
        )
        if back.rejected_by and reason is _UNSCHEDULABLE:
            return as_told
        # By lease, so that a report that comes twice counts once and says the same again.
        if reason is _CONFLICT:
            races = self._conflicts.setdefault(back.uid, {})
            if races.setdefault(lease_id, len(races) + 1) <= MAX_CONFLICTS:
                return as_told
            # Races that are lost without end are failures: a run must end.
            as_told = replace(as_told, reason=RequeueReason.ERROR)
        failures = self._failures.setdefault(back.uid, {})
        if failures.setdefault(lease_id, len(failures) + 1) < MAX_FAILURES:
            return as_told
        # That no plugin rejected it, and nothing failed either, is said of a cluster without nodes.
        by = WITHOUT_NODES if reason is _UNSCHEDULABLE else FAILS_AGAIN
        return replace(as_told, reason=_UNSCHEDULABLE, rejected_by=(by,))

    async def restored(self, told: Restored) -> Nothing:
        """All pods are there again."""
        self._is_whole, self._done_before = True, told.done
        return NOTHING

    async def bound_before(self, told: BoundBefore) -> Nothing:
        """How many pods were bound before a run that is resumed. To a queue that takes the place of
        another one the supervisor sends it, with all pods (`restored`)."""
        if not self._is_new:
            self._done_before = told.count
        return NOTHING

    async def lent_to(self, owner: Owner) -> Uids:
        """Pods that are lent to earlier lives of a scheduler, or were until their lease ended."""
        lent = self.core.lent_to(owner.name, owner.epoch)
        overdue = self._overdue.get(owner.name, set()).difference(lent)
        return Uids((*lent, *sorted(overdue)))

    async def owner_ends(self, end: OwnerEnds) -> Nothing:
        """A scheduler's earlier lives are over: what is bound or gone leaves, the rest is back.

        What it had assumed is free again.
        """
        now_s = clock_s()
        word = dict(zip(end.uids, end.nodes, strict=True))
        lent = self.core.lent_to(end.owner.name, end.owner.epoch)
        left = [uid for uid, node in word.items() if node]
        bound = self._known(left)
        freed = self._known(uid for uid in word if not word[uid])
        self._members.bind(left)
        self.core.assigned(left)
        self.core.delete(uid for uid in lent if uid in word and word[uid] is None)
        self.core.revoke(end.owner.name, end.owner.epoch, now_s)
        self._overdue.pop(end.owner.name, None)
        self._happened([*self._events.assigned(bound), *self._events.gone(freed)], now_s)
        await self._nominations.tell()
        self._wake()
        return NOTHING

    def _known(self, uids: Iterable[str]) -> list[PodFacts]:
        return [facts for uid in uids if (facts := self.core.facts_of(uid)) is not None]

    async def queue_state(self, _: Nothing) -> QueueState:
        counts = self.core.counts()
        return QueueState(
            active=counts.active,
            backoff=counts.backoff,
            unschedulable=counts.unschedulable,
            gated=counts.gated,
            in_flight=counts.in_flight + (not self._is_whole),
            done=counts.done_total + self._done_before,
        )

    async def pending(self, ask: PageAsk) -> PendingPage:
        """Why pods are pending, a page at a time."""
        waiting = [
            self._notes.get(pod.identity.uid)
            or PendingNote(pod.identity.uid, pod.identity.key, "has not been tried yet", (), ())
            for state in (*WAITING, PodState.IN_FLIGHT)
            for pod in self.core.pods(state)
        ]
        page = waiting[ask.start : ask.start + ask.count]
        return PendingPage(tuple(page), len(waiting))

    async def status(self, _: Nothing) -> ActorStatus:
        counts = self.core.counts()
        return ActorStatus(
            f"held {counts.active} active, {counts.backoff} backing off, "
            f"{counts.unschedulable} unschedulable, {counts.gated} gated pods and "
            f"{counts.in_flight} in flight; had given out {counts.leases} leases",
            counts=(("leases", counts.leases),),
        )


def _note_on(identity: PodIdentity, facts: PodFacts, status: Status) -> PendingNote:
    """Why a pod is gated; of one that is being deleted upstream's event names it."""
    message = f"{status.message}: {identity.key}" if facts.is_terminating else status.message
    plugins = (status.plugin,) if status.plugin else ()
    return PendingNote(identity.uid, identity.key, message, (), plugins)
