"""SchedulingQueue: QueueCore with its hints, gangs and nominations, in one object.

    submit ──► gates ──► QueueCore ──► lease ──► report: done, given back
                 ▲           ▲                      │
                 │           └── events ◄───────────┴── observe, leave, owner_ends
                 └── what others of a gang, and nominations, allow

Synchronous, without a clock. Nominations for the cache come out as steps (`QueueSteps`): the caller
sends each before the next step. Follows PriorityQueue of upstream
(pkg/scheduler/backend/queue/scheduling_queue.go, 1.34), with leases in place of Pop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.facts.pod_groups import GroupKey, group_key
from roadstead.framework.changes import seen_pod
from roadstead.framework.hint_map import HintMap, SeenEvent
from roadstead.framework.members import GroupMembers
from roadstead.framework.profile import Profile
from roadstead.protocol.errors import cut_short
from roadstead.protocol.status import Status, unresolvable
from roadstead.queue.core import Among, QueueCore
from roadstead.queue.events import PodEvents, node_events, pod_events
from roadstead.queue.gang_turns import GangTurns
from roadstead.queue.gangs import Gangs
from roadstead.queue.nominations import QueueNominations, QueueSteps
from roadstead.queue.pods import AddResult, LeaseBatch, PodState, QueueSettings, RequeueReason
from roadstead.queue.reports import GivenBack, NodeChange, PendingNote, PodChange
from roadstead.queue.retries import Retries
from roadstead.queue.rules import rules_of
from roadstead.revisions import Revisions

WAITING = (PodState.ACTIVE, PodState.BACKOFF, PodState.UNSCHEDULABLE, PodState.GATED)

MAX_WAKES = 10
"""How often pods that are given up wake others before some pod is bound; gangs then get turns."""


class SchedulingQueue:
    """The pods of a run that are not bound. profiles: by scheduler name, with `members`.

    pods_known: revisions of pods.
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
        self.core: QueueCore[SeenEvent] = QueueCore(
            gate=self.gate,
            rules=rules_of(self.hints),
            sort=next(iter(profiles.values())).queue_sort.sort_key,
            settings=settings,
        )
        self.pods_known = Revisions()
        self._notes: dict[str, PendingNote] = {}
        self._retries = Retries()
        self._overdue: dict[str, dict[str, int]] = {}
        self._wakes = 0
        self._gangs = Gangs(*(profiles.values(), self.core, members, self._events, self._happened))
        self._gang_turns = GangTurns(self.core, members)
        self.nominations = QueueNominations(self.core, self._events, self._happened)

    def gate(self, facts: PodFacts) -> Status:
        """What PreEnqueue of a pod's profile says."""
        profile = self._profiles.get(facts.scheduler_name)
        if profile is None:
            return unresolvable(
                f"no profile has the scheduler name {cut_short(facts.scheduler_name)}"
            )
        return profile.gate(facts)

    # Pods come and go.

    def submit(self, pods: Sequence[Pod], now_s: float, revision: int = 0) -> QueueSteps[AddResult]:
        """Take pods; those that come again are known already, and updated if they changed."""
        news = self._news(pods, revision)
        # All of a batch are there before the first of them meets its gate.
        classes = {id(facts): facts for _, facts in news}
        in_gangs = {known for known, facts in classes.items() if group_key(facts) is not None}
        coming = (each for each in news if id(each[1]) in in_gangs) if in_gangs else ()
        members = [facts for pod, facts in coming if self._members.add(pod.uid, facts)]
        again = self.core.known_among(identity.uid for identity, _ in pods)
        for identity, facts in news if again else ():
            known = self.core.facts_of(identity.uid)
            if known is not None and known != facts:
                events = seen_pod(known, facts, is_assigned=False)
                self.core.update(identity, facts, now_s, events)
        answer = self.core.add(news, now_s)
        self._happened(self._events.waiting(members), now_s)
        self._note_gated(news, classes)
        yield from self.nominations.send_changes()
        return answer

    def _news(self, pods: Sequence[Pod], revision: int) -> Sequence[Pod]:
        """The pods that did not go meanwhile, as far as is known."""
        places = self.pods_known.coming([identity.uid for identity, _ in pods], revision)
        return pods if places is None else [pods[place] for place in places]

    def _note_gated(self, pods: Sequence[Pod], classes: Mapping[int, PodFacts]) -> None:
        gates = {known: self.core.gate(facts) for known, facts in classes.items()}
        if all(status.is_success for status in gates.values()):
            return
        for identity, facts in pods:
            status = gates[id(facts)]
            if not status.is_success:
                self._notes[identity.uid] = _note_on(identity, facts, status)

    def were_bound(self, pods: Sequence[Pod], now_s: float, revision: int = 0) -> None:
        """Pods of gangs were bound before this queue began."""
        self._gangs.were_bound(self._news(pods, revision), now_s)

    def leave(self, pods: Iterable[Pod], now_s: float, revision: int = 0) -> None:
        """Pods are gone, and what they held may help others."""
        pods = list(pods)
        uids = list(self.pods_known.leaves([identity.uid for identity, _ in pods], revision))
        self.core.delete(uids)
        for uid in uids:
            self._members.remove(uid)
            self._forget(uid)
        self._happened(self._events.gone(facts for _, facts in pods), now_s)

    def _forget(self, uid: str) -> None:
        self._notes.pop(uid, None)
        self._retries.forget(uid)

    # Leases.

    def gather(self, gangs: Sequence[GroupKey], now_s: float) -> None:
        """Try those of gangs again that had given up: others of them wait at a scheduler."""
        self._gangs.gather(gangs, now_s)

    def lease(
        self, owner: str, epoch: int, max_pods: int, now_s: float, profile: str = ""
    ) -> LeaseBatch:
        """Pods under a lease, as many as there are."""
        for ended in self.core.tick(now_s):
            overdue = self._overdue.setdefault(ended.owner, {})
            overdue.update(dict.fromkeys(ended.uids, ended.epoch))
        batch = self.core.lease(owner, epoch, max_pods, now_s, profile)
        self._gang_turns.leased(batch.pods)
        return batch

    def bound_of_gangs(self, batch: LeaseBatch) -> tuple[tuple[str, str, int], ...]:
        """How many are bound of each gang of which there are pods in a lease."""
        return self._gangs.bound_among(batch.pods)

    def renew(self, lease_ids: Iterable[int], now_s: float) -> tuple[int, ...]:
        """Which of these leases go on."""
        return tuple(each for each in lease_ids if self.core.renew(each, now_s).is_success)

    def report(
        self,
        lease_id: int,
        done: Sequence[str],
        given_back: Sequence[GivenBack],
        notes: Sequence[PendingNote],
        gone: Iterable[Pod],
        now_s: float,
        revision: int = 0,
    ) -> QueueSteps[None]:
        """What became of leased pods. gone: evicted ones, as of a revision."""
        for note in notes:
            self._notes[note.uid] = note
        if done:
            self._done(lease_id, done, now_s)
        if given_back:
            back = [self._retries.requeue(lease_id, each) for each in given_back]
            lost = self.nominations.losing(back)
            answer = self.core.requeue(lease_id, back, now_s)
            self.nominations.note_stale(given_back, answer.stale)
            lost = {uid: lost[uid] for uid in answer.applied if uid in lost}
            # The room that was kept for them is there for others, as if they had left it.
            self._happened(
                self._events.gone(lost.values()), now_s, lambda who, _: who.uid not in lost
            )
            self._free(given_back, now_s)
            yield from self.nominations.send_changes()
            yield from self.nominations.send_corrections()
        self.leave(gone, now_s, revision)
        yield from self.nominations.send_changes()

    def _done(self, lease_id: int, done: Sequence[str], now_s: float) -> None:
        self._members.bind(done)
        bound = [facts for uid in done if (facts := self.core.facts_of(uid))]
        answer = self.core.done(lease_id, done)
        # Their lease ended before the report came; they are bound all the same.
        self.core.assigned(answer.stale)
        for uid in done:
            self._forget(uid)
        self._happened(self._events.assigned(bound), now_s)
        self._wakes = 0

    def go_on(self, now_s: float) -> None:
        """More pods may be leased where a gang's turn has come."""
        self._gang_turns.go_on(now_s)

    def _free(self, back: Sequence[GivenBack], now_s: float) -> None:
        """What pods had been assumed to hold is free again: as if they had left their nodes.

        They themselves are not helped by it, nor are others of a gang that gave up. Nor does it go
        on for ever: two gangs of which neither fits would wake each other. After `MAX_WAKES` gangs
        wake only pods of no gang, and gangs are tried by turns.
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

    # Events.

    def observe(
        self,
        nodes: Iterable[NodeChange],
        gone: Iterable[Pod],
        pods: Iterable[PodChange],
        now_s: float,
    ) -> QueueSteps[None]:
        """Nodes came, left or changed; pods left their nodes, or changed there."""
        left = self._events.gone(facts for _, facts in gone)
        self._happened([*node_events(nodes), *left, *pod_events(pods)], now_s)
        yield from self.nominations.send_changes()

    def _happened(
        self, events: Sequence[SeenEvent], now_s: float, among: Among | None = None
    ) -> None:
        """Hand the core those events that some plugin registered."""
        interesting = [each for each in events if self.hints.is_of_interest(each.event)]
        if interesting:
            self.core.move(interesting, now_s, among)

    # Schedulers that were replaced.

    def leased_to(self, owner: str, epoch: int) -> tuple[str, ...]:
        """Pods that earlier lives of a scheduler lease, or did until the lease ended."""
        leased = self.core.leased_to(owner, epoch)
        overdue = (uid for uid, at in self._overdue.get(owner, {}).items() if at < epoch)
        return (*leased, *sorted({*overdue}.difference(leased)))

    def owner_ends(
        self, owner: str, epoch: int, node_of: Mapping[str, str | None], now_s: float
    ) -> QueueSteps[None]:
        """A scheduler's earlier lives are over: what is bound or gone leaves, the rest is back.

        node_of: uid → node, "" for a pod that is not bound, None for one that is gone. What it had
        assumed is free again.
        """
        leased = self.core.leased_to(owner, epoch)
        left = [uid for uid, node in node_of.items() if node]
        bound = self._known(left)
        freed = self._known(uid for uid in node_of if not node_of[uid])
        self._members.bind(left)
        self.core.assigned(left)
        self.core.delete(uid for uid in leased if uid in node_of and node_of[uid] is None)
        self.core.revoke(owner, epoch, now_s)
        # Of the present life nothing is known yet: it may commit what it leased, and end.
        overdue = self._overdue.pop(owner, {})
        if later := {uid: at for uid, at in overdue.items() if at >= epoch}:
            self._overdue[owner] = later
        self._happened([*self._events.assigned(bound), *self._events.gone(freed)], now_s)
        yield from self.nominations.send_changes()

    def _known(self, uids: Iterable[str]) -> list[PodFacts]:
        return [facts for uid in uids if (facts := self.core.facts_of(uid)) is not None]

    # What is known.

    def pending(self) -> list[PendingNote]:
        """Why pods are pending."""
        return [
            self._notes.get(pod.identity.uid)
            or PendingNote(pod.identity.uid, pod.identity.key, "has not been tried yet", (), ())
            for state in (*WAITING, PodState.IN_FLIGHT)
            for pod in self.core.pods(state)
        ]


def _note_on(identity: PodIdentity, facts: PodFacts, status: Status) -> PendingNote:
    """Why a pod is gated; of one that is being deleted upstream's event names it."""
    message = f"{status.message}: {identity.key}" if facts.is_terminating else status.message
    plugins = (status.plugin,) if status.plugin else ()
    return PendingNote(identity.uid, identity.key, message, (), plugins)
