"""SchedulingQueue: QueueCore with its hints, gangs and nominations, in one object.

    submit ──► gates ──► QueueCore ──► lease ──► report: done, given back
                 ▲           ▲                      │
                 │           └── events ◄───────────┴── observe, remove_deleted, end_owner
                 └── members of gangs, nominations

Synchronous, without a clock. Nominations for the cache are yielded as steps (`QueueSteps`): the
caller sends each to the cache before it requests the next step. Follows PriorityQueue of upstream
(pkg/scheduler/backend/queue/scheduling_queue.go, 1.34), with leases in place of Pop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.framework.changes import pod_change_events
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
from roadstead.queue.pods import AddResult, LeaseBatch, QueueSettings, QueueState, RequeueReason
from roadstead.queue.reports import NodeChange, PendingNote, PodChange, ReturnedPod
from roadstead.queue.retries import Retries
from roadstead.revisions import Revisions

WAITING = (QueueState.ACTIVE, QueueState.BACKOFF, QueueState.UNSCHEDULABLE, QueueState.GATED)

MAX_WAKES = 10
"""Number of reports of failed attempts that wake other pods before a pod is bound; see `_free`."""


class SchedulingQueue:
    """The pods of a run that are not bound.

    profiles: by scheduler name; their plugins read `members`. pods_known: revisions of pods.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        members: GroupMembers,
        cluster: ClusterFacts,
        settings: QueueSettings,
    ) -> None:
        self._profiles, self._members = profiles, members
        self._events = PodEvents()
        self.hints = HintMap(profiles, cluster)
        self.core: QueueCore[OccurredEvent] = QueueCore(
            gate=self.gate,
            rules=event_rules(self.hints),
            sort=next(iter(profiles.values())).queue_sort.sort_key,
            settings=settings,
        )
        self.pods_known = Revisions()
        self._notes: dict[str, PendingNote] = {}
        self._retries = Retries()
        self._overdue: dict[str, dict[str, int]] = {}
        self._wakes = 0
        self._gangs = Gangs(
            *(profiles.values(), self.core, members, self._events, self._handle_events)
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
        return profile.gate(facts)

    # Pods are added and removed.

    def submit(self, pods: Sequence[Pod], now_s: float, revision: int = 0) -> QueueSteps[AddResult]:
        """Add pods; update those of the queue that changed."""
        news = self._news(pods, revision)
        # Count the gang members of the whole batch first: PreEnqueue reads the counts.
        classes = {id(facts): facts for _, facts in news}
        in_gangs = {known for known, facts in classes.items() if group_key(facts) is not None}
        coming = (each for each in news if id(each[1]) in in_gangs) if in_gangs else ()
        members = [facts for pod, facts in coming if self._members.add(pod.uid, facts)]
        again = self.core.known_uids(identity.uid for identity, _ in pods)
        for identity, facts in news if again else ():
            known = self.core.facts_of(identity.uid)
            if known is not None and known != facts:
                events = pod_change_events(known, facts, is_assigned=False)
                self.core.update(identity, facts, now_s, events)
        answer = self.core.add(news, now_s)
        self._handle_events(self._events.waiting(members), now_s)
        self._note_gated(news, classes)
        yield from self.nominations.send_changes()
        return answer

    def _news(self, pods: Sequence[Pod], revision: int) -> Sequence[Pod]:
        """Return the pods that were not removed by a newer revision."""
        places = self.pods_known.apply_additions([identity.uid for identity, _ in pods], revision)
        return pods if places is None else [pods[place] for place in places]

    def _note_gated(self, pods: Sequence[Pod], classes: Mapping[int, PodFacts]) -> None:
        gates = {known: self.core.gate(facts) for known, facts in classes.items()}
        if all(status.is_success for status in gates.values()):
            return
        for identity, facts in pods:
            status = gates[id(facts)]
            if not status.is_success:
                self._notes[identity.uid] = _gated_note(identity, facts, status)

    def add_bound(self, pods: Sequence[Pod], now_s: float, revision: int = 0) -> None:
        """Add bound pods of gangs to a new queue, unless newer revisions removed them."""
        self._gangs.add_bound(self._news(pods, revision), now_s)

    def remove_deleted(self, pods: Iterable[Pod], now_s: float, revision: int = 0) -> None:
        """Remove deleted pods; the resources that they used may help other pods."""
        pods = list(pods)
        uids = list(
            self.pods_known.apply_removals([identity.uid for identity, _ in pods], revision)
        )
        self.core.delete(uids)
        for uid in uids:
            self._members.remove(uid)
            self._forget(uid)
        self._handle_events(self._events.gone(facts for _, facts in pods), now_s)

    def _forget(self, uid: str) -> None:
        self._notes.pop(uid, None)
        self._retries.forget(uid)

    # Leases.

    def activate_gangs(self, gangs: Sequence[GroupKey], now_s: float) -> None:
        """Retry pods that had stopped waiting for their gang; others of it wait at Permit."""
        self._gangs.activate_gangs(gangs, now_s)

    def lease(
        self, owner: str, epoch: int, max_pods: int, now_s: float, profile: str = ""
    ) -> LeaseBatch:
        """Lease up to `max_pods` pods, after ending what is due; see `QueueCore.lease`."""
        for ended in self.core.tick(now_s):
            overdue = self._overdue.setdefault(ended.owner, {})
            overdue.update(dict.fromkeys(ended.uids, ended.epoch))
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
        done: Sequence[str],
        given_back: Sequence[ReturnedPod],
        notes: Sequence[PendingNote],
        gone: Iterable[Pod],
        now_s: float,
        revision: int = 0,
    ) -> QueueSteps[None]:
        """Apply a scheduler's report on leased pods. gone: evicted pods, as of a revision."""
        for note in notes:
            self._notes[note.uid] = note
        if done:
            self._done(lease_id, done, now_s)
        if given_back:
            back = [self._retries.requeue(lease_id, each) for each in given_back]
            lost = self.nominations.superseded_by(back)
            answer = self.core.requeue(lease_id, back, now_s)
            self.nominations.note_stale(given_back, answer.stale)
            lost = {uid: lost[uid] for uid in answer.applied if uid in lost}
            # The resources reserved by their nominations are free for other pods.
            self._handle_events(
                self._events.gone(lost.values()), now_s, lambda who, _: who.uid not in lost
            )
            self._free(given_back, now_s)
            yield from self.nominations.send_changes()
            yield from self.nominations.send_corrections()
        self.remove_deleted(gone, now_s, revision)
        yield from self.nominations.send_changes()

    def _done(self, lease_id: int, done: Sequence[str], now_s: float) -> None:
        self._members.bind(done)
        # Read the facts before `core.done` removes the pods.
        bound = [facts for uid in done if (facts := self.core.facts_of(uid))]
        answer = self.core.done(lease_id, done)
        # Their lease ended before the report was received, but they are bound.
        self.core.assigned(answer.stale)
        for uid in done:
            self._forget(uid)
        self._handle_events(self._events.assigned(bound), now_s)
        self._wakes = 0

    def begin_gang_turn(self, now_s: float) -> None:
        """Begin the next gang's turn, if it is time; then more pods may be leased."""
        self._gang_turns.begin_gang_turn(now_s)

    def _free(self, back: Sequence[ReturnedPod], now_s: float) -> None:
        """Create the events of pods whose assumptions ended, as if they had left their nodes.

        The events do not move these pods, nor other pods of a gang that stopped waiting. After
        `MAX_WAKES` reports without a bind, gangs wake only pods of no gang, pods of no gang wake
        none, and gangs are tried in turns: two gangs that both do not fit would wake each other for
        ever.
        """
        freed = {each.uid for each in back if each.freed}
        reasons = {RequeueReason(each.reason) for each in back if each.freed}
        lost_races = reasons <= {RequeueReason.CONFLICT}
        if not lost_races:
            self._wakes += 1
        is_worn = not lost_races and self._wakes > MAX_WAKES
        self._gang_turns.freed(freed if is_worn else ())
        if is_worn and any(self._members.group_of(uid) is None for uid in freed):
            return
        stopped_waiting = {
            self._members.group_of(each.uid)
            for each in back
            if self._gangs.stopped_waiting(each.rejected_by)
        }
        known = (self.core.facts_of(uid) for uid in freed)

        def may_move(pod: PodIdentity, facts: PodFacts) -> bool:
            group = group_key(facts)
            return pod.uid not in freed and (group is None or group not in stopped_waiting)

        facts = (each for each in known if each is not None)
        # Gangs in flight would otherwise wake each other through the events logged for them.
        self._handle_events(self._events.gone(facts, spares_gangs=is_worn), now_s, may_move)

    # Events.

    def observe(
        self,
        nodes: Iterable[NodeChange],
        gone: Iterable[Pod],
        pods: Iterable[PodChange],
        now_s: float,
    ) -> QueueSteps[None]:
        """Create the events of changed nodes, and of pods that left nodes or changed there."""
        left = self._events.gone(facts for _, facts in gone)
        self._handle_events([*node_events(nodes), *left, *pod_events(pods)], now_s)
        yield from self.nominations.send_changes()

    def _handle_events(
        self, events: Sequence[OccurredEvent], now_s: float, predicate: PodPredicate | None = None
    ) -> None:
        """Pass to the core the events that any plugin registered."""
        interesting = [each for each in events if self.hints.is_of_interest(each.event)]
        if interesting:
            self.core.move(interesting, now_s, predicate)

    # Schedulers that were replaced.

    def leased_to(self, owner: str, epoch: int) -> tuple[str, ...]:
        """Return the pods that earlier incarnations of a scheduler leased, with expired leases."""
        leased = self.core.leased_to(owner, epoch)
        overdue = (uid for uid, at in self._overdue.get(owner, {}).items() if at < epoch)
        return (*leased, *sorted({*overdue}.difference(leased)))

    def end_owner(
        self, owner: str, epoch: int, node_of: Mapping[str, str | None], now_s: float
    ) -> QueueSteps[None]:
        """End earlier incarnations of a scheduler: remove bound and deleted pods, requeue others.

        node_of: uid → node, "" for a pod that is not bound, None for a deleted one. The resources
        of its assumptions are free again.
        """
        leased = self.core.leased_to(owner, epoch)
        left = [uid for uid, node in node_of.items() if node]
        bound = self._known(left)
        freed = self._known(uid for uid in node_of if not node_of[uid])
        self._members.bind(left)
        self.core.assigned(left)
        self.core.delete(uid for uid in leased if uid in node_of and node_of[uid] is None)
        self.core.revoke(owner, epoch, now_s)
        # Keep the overdue pods of the current incarnation: it may still commit them, and then end.
        overdue = self._overdue.pop(owner, {})
        if later := {uid: at for uid, at in overdue.items() if at >= epoch}:
            self._overdue[owner] = later
        self._handle_events([*self._events.assigned(bound), *self._events.gone(freed)], now_s)
        yield from self.nominations.send_changes()

    def _known(self, uids: Iterable[str]) -> list[PodFacts]:
        return [facts for uid in uids if (facts := self.core.facts_of(uid)) is not None]

    # Reasons of pending pods.

    def pending(self) -> list[PendingNote]:
        """Return why each pod of the queue is pending."""
        return [
            self._notes.get(pod.identity.uid)
            or PendingNote(pod.identity.uid, pod.identity.key, "has not been tried yet", (), ())
            for state in (*WAITING, QueueState.IN_FLIGHT)
            for pod in self.core.pods(state)
        ]


def _gated_note(identity: PodIdentity, facts: PodFacts, status: Status) -> PendingNote:
    """Return why a pod is gated; for one that is being deleted with its name, as upstream."""
    message = f"{status.message}: {identity.key}" if facts.is_terminating else status.message
    plugins = (status.plugin,) if status.plugin else ()
    return PendingNote(identity.uid, identity.key, message, (), plugins)
