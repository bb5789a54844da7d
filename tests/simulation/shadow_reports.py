"""A shadow of the code around the queue's core: the translation of reports, the reasons of pending
pods, the pods that a scheduler's end concerns, turns of gangs, and nominations.

The core has a shadow of its own (`shadow_queue.py`): its answers are accepted, and the calls that
it gets are compared with those that follow from the rules below.
"""

from collections import Counter, deque

from roadstead.facts.pod_groups import group_key
from roadstead.framework.events import EventResource
from roadstead.framework.hint_map import WITHOUT_NODES
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.queue import QueueState, Requeue, RequeueReason
from roadstead.queue.reports import PendingReason
from roadstead.queue.retries import FAILS_AGAIN

RACES = 10
"""Lost races after which the next one counts as a failure."""
FAILURES = 3
"""A pod is parked after this many failed attempts."""
WAKES = 10
"""How often pods that give up wake others while none is bound; after that gangs take turns."""

STATES = (
    *(QueueState.ACTIVE, QueueState.BACKOFF, QueueState.UNSCHEDULABLE, QueueState.GATED),
    QueueState.IN_FLIGHT,
)
HEARD = ("add", "update", "done", "requeue", "delete", "assigned", "activate", "tick")
"""Calls of the core that are compared or recorded."""
FOLLOWED = (
    *(
        "submit",
        "remove_deleted",
        "add_bound",
        "lease",
        "report",
        "end_owner",
        "leased_to",
        "activate_gangs",
    ),
    *("begin_gang_turn", "pending"),
)


class ShadowReports:
    """Follows one `SchedulingQueue`, whose core has its own shadow. problems: the first few.

    _notes: why pods are pending. _gates: why pods were gated. _attempts: (kind of failure, uid) →
    the leases in which it happened. _overdue: (owner, uid) → the life whose lease ended. _due:
    call → arguments that the core must get.
    """

    def __init__(self, queue):
        self._queue, self._core = queue, queue.core
        self.problems = []
        self._notes, self._gates, self._attempts, self._overdue = {}, {}, {}, {}
        self._revisions = {}
        self._due, self._coming, self._back, self._activated = {}, (), (), []
        self._losing, self._wakened, self._events = {}, [], []
        plugins = {each.name for p in queue._profiles.values() for each in p.permit}
        self._gangs = _Gangs(self._core, {"Coscheduling"} & plugins)
        for name in HEARD:
            setattr(self._core, name, self._heard(name, getattr(self._core, name)))
        for name in FOLLOWED:
            setattr(queue, name, getattr(self, f"_{name}")(getattr(queue, name)))
        queue._handle_events = self._heard("happened", queue._handle_events)
        queue.nominations.nominated = self._nominated(queue.nominations.nominated)
        queue.nominations.note_stale = self._note_stale(queue.nominations.note_stale)

    def look(self):
        """Compare the state of waiting pods."""
        self._queue.pending()
        self._queue.nominations.nominated([each.uid for each in self._known()])

    def _known(self):
        return [pod.identity for state in STATES for pod in self._core.pods(state)]

    def _same(self, what, here, there):
        if here != there and len(self.problems) < 3:
            text = f"shadow of reports: {what}: {here}, not {there}"
            self.problems.append(text[:700])

    def _heard(self, name, original):
        look = getattr(self, f"_core_{name}", None)

        def call(*what):
            what = [[*each] if hasattr(each, "__next__") else each for each in what]
            if name in self._due:
                self._same(f"{name} at the core", what[: len(self._due[name])], self._due[name])
                del self._due[name]
            answer = original(*what)
            if look is not None:
                look(answer, *what)
            return answer

        return call

    def _expect(self, **due):
        """The core gets these calls before any other actor is awaited."""
        self._same("calls that the core did not get", self._due, {})
        self._due = due

    # Pods are added and removed.

    def _submit(self, original):
        def submit(pods, now_s, revision=0):
            known = self._queue.pod_revisions
            self._coming = [each for each in pods if revision >= known.of(each[0].uid)]
            self._revisions = {who.uid: revision or known.of(who.uid) for who, _ in self._coming}
            self._gangs.come(self._coming)
            return (yield from original(pods, now_s, *_given(revision)))

        return submit

    def _core_add(self, _, pods, now_s):
        """The gates are checked after all new pods are added."""
        known = self._queue.pod_revisions
        here = {who.uid: known.of(who.uid) for who, _ in self._coming}
        self._same("revisions", here, self._revisions)
        for who, facts in self._coming:
            is_gated = self._core.state_of(who.uid) is QueueState.GATED
            if is_gated and not (status := self._core.gate(facts)).is_success:
                text = f"{status.message}: {who.key}" if facts.is_terminating else status.message
                plugins = (status.plugin,) if status.plugin else ()
                self._gates[who.uid] = PendingReason(who.uid, who.key, text, (), plugins)
        self._coming = ()

    def _core_update(self, _, identity, facts, now_s, events):
        """A change of a waiting pod affects this pod alone."""
        actual = {(each.event.resource, each.change.of_waiting_pod) for each in events}
        self._same("an update", actual, {(EventResource.UNSCHEDULABLE_POD, True)})

    def _add_bound(self, original):
        def were_bound(pods, now_s, revision=0):
            known = self._queue.pod_revisions
            self._gangs.come(each for each in pods if revision >= known.of(each[0].uid))
            return original(pods, now_s, *_given(revision))

        return were_bound

    def _remove_deleted(self, original):
        def leave(pods, now_s, revision=0):
            pods, known = list(pods), self._queue.pod_revisions
            uids = [who.uid for who, _ in pods]
            if revision:
                uids = [u for u in uids if revision > known.of(u) or known.is_gone(u)]
            self._expect(delete=[uids])
            for uid in uids:
                self._gangs.leave(uid)
                self._forget(uid)
            return original(pods, now_s, *_given(revision))

        return leave

    def _forget(self, uid):
        self._notes.pop(uid, None)
        self._gates.pop(uid, None)
        for what in ("races", "failures"):
            self._attempts.pop((what, uid), None)

    # Leases.

    def _lease(self, original):
        def lease(*what):
            batch = original(*what)
            self._gangs.leased(batch.pods)
            return batch

        return lease

    def _core_tick(self, ended, now_s):
        for each in ended:
            self._overdue |= {(each.owner, uid): each.epoch for uid in each.uids}

    def _report(self, original):
        def report(lease_id, done, given_back, notes, gone, now_s, revision=0):
            gone = list(gone)
            for note in notes:
                # A pod that was deleted before its report arrived leaves no note.
                if self._core.facts_of(note.uid) is not None:
                    self._notes[note.uid] = note
                    self._gates.pop(note.uid, None)
            self._back, self._wakened, self._events = given_back, [], []
            if given_back:
                back = [self._given_back(lease_id, each) for each in given_back]
                self._losing = self._losing_of(back)
                self._expect(requeue=[lease_id, back, now_s])
            how = {"revision": revision} if revision else {}
            try:
                answer = yield from original(lease_id, done, given_back, notes, gone, now_s, **how)
            except IllegalTransitionError:
                self._due = {}
                raise
            wanted, actual = self._events, self._wakened[bool(done) :]
            self._same("events of what is given back", actual[: len(wanted)], wanted)
            return answer

        return report

    def _losing_of(self, back):
        """Pods whose nomination was removed or moved to another node."""
        facts_of, named = self._core.facts_of, {}
        for each in back:
            facts = None if each.nominated_node is None else facts_of(each.uid)
            if facts is not None and facts.nominated_node_name not in ("", each.nominated_node):
                named[each.uid] = facts
        return named

    def _note_stale(self, original):
        """A stale report's nomination is recorded as wrong at the cache, which has it already."""

        def note_stale(back, stale):
            original(back, stale)
            actual = {e.uid: e.nominated_node for e in back if e.nominated_node is not None}
            wrong = self._queue.nominations._wrong_at_cache
            missed = {uid for uid in stale if uid in actual and wrong.get(uid) != actual[uid]}
            self._same("nominations that do not count, and are not corrected", missed, set())

        return note_stale

    def _core_happened(self, _, events, *more):
        self._wakened.append([*events])

    def _core_done(self, _, lease_id, uids):
        if uids:
            self._gangs.wakes = 0
        for uid in uids:
            self._forget(uid)

    def _core_requeue(self, answer, *_):
        """Resources of nominated and returned pods are free: other pods may fit."""
        self._same("asks for pods that nobody gives back", not self._back, False)
        for uid in answer.stale:
            if self._core.facts_of(uid) is None:
                for what in ("races", "failures"):
                    self._attempts.pop((what, uid), None)
        is_worn = self._gangs.freed(self._back)
        gone = self._queue._events.unassigned
        lost = [self._losing[uid] for uid in answer.applied if uid in self._losing]
        freed = dict.fromkeys(each.uid for each in self._back if each.freed)
        self._events = [gone(lost)]
        if not is_worn or all(self._gangs.is_member(uid) for uid in freed):
            self._events.append(gone(self._facts(freed), spares_gangs=is_worn))

    def _nth(self, what, uid, lease_id):
        """Count this failure of a pod up to this lease; a lease counts once."""
        leases = self._attempts.setdefault((what, uid), [])
        if lease_id not in leases:
            leases.append(lease_id)
        return leases.index(lease_id) + 1

    def _given_back(self, lease_id, actual):
        reason = RequeueReason(actual.reason)
        rest = {"nominated_node": actual.nominated_node, "preempts": actual.preempts}
        is_rejected = reason is RequeueReason.UNSCHEDULABLE and bool(actual.rejected_by)
        if reason is RequeueReason.CONFLICT and self._nth("races", actual.uid, lease_id) > RACES:
            reason = RequeueReason.ERROR
        by = actual.rejected_by
        failed = reason is not RequeueReason.CONFLICT and not is_rejected
        if failed and self._nth("failures", actual.uid, lease_id) >= FAILURES:
            by = (WITHOUT_NODES if reason is RequeueReason.UNSCHEDULABLE else FAILS_AGAIN,)
            reason = RequeueReason.UNSCHEDULABLE
        return Requeue(actual.uid, reason, by, actual.pending, **rest)

    # Gangs.

    def _core_activate(self, moved, uids, now_s):
        if uids:
            self._activated.append((list(uids), bool(moved)))

    def _activate_gangs(self, original):
        def gather(gangs, now_s):
            gangs = list(gangs)
            wanted = [uids for key in gangs if (uids := self._gangs.gave_up(key))]
            self._activated.clear()
            original(gangs, now_s)
            self._same(f"gathered of {gangs}", [uids for uids, _ in self._activated], wanted)

        return gather

    def _begin_gang_turn(self, original):
        def go_on(now_s):
            turns = self._gangs.turns()
            self._activated.clear()
            original(now_s)
            wanted = self._gangs.begin_turn(turns, [moved for _, moved in self._activated])
            self._same("gangs whose turn it is", [uids for uids, _ in self._activated], wanted)

        return go_on

    # Schedulers that were replaced.

    def _leased_to(self, original):
        def leased_to(owner, epoch):
            leased = self._core.leased_to(owner, epoch)
            mine = ((uid, at) for (whose, uid), at in self._overdue.items() if whose == owner)
            over = {uid for uid, at in mine if at < epoch}
            rest = sorted(over - {*leased})
            answer = original(owner, epoch)
            self._same(f"leased to {owner}", list(answer), [*leased, *rest])
            return answer

        return leased_to

    def _end_owner(self, original):
        def owner_ends(owner, epoch, node_of, now_s):
            leased = self._core.leased_to(owner, epoch)
            bound = [uid for uid, node in node_of.items() if node]
            gone = [uid for uid in leased if node_of.get(uid, "") is None]
            events, rest = self._queue._events, [u for u in node_of if u not in bound]
            seen = [*events.assigned(self._facts(bound)), *events.unassigned(self._facts(rest))]
            self._expect(assigned=[bound], delete=[gone], happened=[seen])
            for whose, uid in [each for each, at in self._overdue.items() if at < epoch]:
                if whose == owner:
                    del self._overdue[whose, uid]
            for uid in (*bound, *gone):
                self._forget(uid)
            return (yield from original(owner, epoch, node_of, now_s))

        return owner_ends

    def _facts(self, uids):
        """The facts of those pods that the core has."""
        return [facts for uid in uids if (facts := self._core.facts_of(uid)) is not None]

    # Queries.

    def _pending(self, original):
        def pending(start=0, stop=None):
            actual, state_of = original(start, stop), self._core.state_of
            wanted = [
                (self._gates.get(who.uid) if state_of(who.uid) is QueueState.GATED else None)
                or self._notes.get(who.uid)
                or PendingReason(who.uid, who.key, "has not been tried yet", (), ())
                for who in list(self._known())[start:stop]
            ]
            self._same("pending", [e for e in actual if e not in wanted], [])
            self._same("pending", [e.uid for e in actual], [e.uid for e in wanted])
            return actual

        return pending

    def _nominated(self, original):
        def nominated(uids):
            uids = list(uids)
            actual, state_of = original(uids), self._core.state_of
            named = {
                pod.identity.uid: (pod.identity, pod.facts)
                for pod in self._core.nominations()
                if state_of(pod.identity.uid) is not QueueState.IN_FLIGHT
            }
            nodes = [facts.nominated_node_name for _, facts in named.values()]
            rest = [u for u in uids if u not in named and state_of(u) is not QueueState.IN_FLIGHT]
            wanted = [*named.values()], nodes, rest
            self._same("nominated", ([*actual.pods], [*actual.nodes], [*actual.none]), wanted)
            return actual

        return nominated


def _given(revision):
    """A revision of 0 may be omitted."""
    return (revision,) if revision else ()


class _Gangs:
    """Members of gangs, and the next gang once gangs have woken each other too often.

    plugins: those that make a pod wait for its gang. wakes: how often pods gave up since one was
    bound. _freed: gangs that gave room up, for which no other one was woken.
    """

    def __init__(self, core, plugins):
        self._core, self._plugins, self.wakes = core, plugins, 0
        self._members = {}
        self._freed, self._next, self._turn = set(), deque(), None

    def come(self, pods):
        for who, facts in pods:
            key = group_key(facts)
            if key is not None:
                self._members.setdefault(key, {})[who.uid] = None

    def leave(self, uid):
        for key in [key for key, uids in self._members.items() if uid in uids]:
            del self._members[key][uid]
            if not self._members[key]:
                del self._members[key]

    def is_member(self, uid):
        return self._of(uid) is not None

    def _of(self, uid):
        return next((key for key, uids in self._members.items() if uid in uids), None)

    def _parked(self, key):
        """Pods that were tried in vain, by uid."""
        return [uid for uid in sorted(self._members.get(key, ())) if self._core.rejected_by(uid)]

    def gave_up(self, key):
        """Pods that gave up waiting for others of their gang, by uid."""
        rejected_by = self._core.rejected_by
        return [uid for uid in self._parked(key) if self._plugins.intersection(rejected_by(uid))]

    def freed(self, given_back):
        """Record freed resources of attempts; return whether gangs are tried in turn by now."""
        freed = [each for each in given_back if each.freed]
        if all(each.reason == RequeueReason.CONFLICT for each in freed):
            return False
        self.wakes += 1
        is_worn = self.wakes > WAKES
        if is_worn:
            self._freed |= {self._of(each.uid) for each in freed} - {None, self._turn}
        return is_worn

    def leased(self, pods):
        """A turn ends when another gang is tried."""
        if self._turn is not None and {group_key(p.facts) for p in pods} - {None, self._turn}:
            self._turn = None

    def turns(self):
        """The gangs to be tried next, each with its pods, in turn order; None where none may be
        tried.

        None: some gang is being tried, or no room was freed.
        """
        counts = self._core.counts()
        leased = (group_key(pod.facts) for pod in self._core.pods(QueueState.IN_FLIGHT))
        if counts.active or counts.backoff or any(leased):
            return None
        if not (self._freed or self._next or self._turn):
            return None
        line = self._next or self._round()
        return [(key, self._parked(key)) for key in line]

    def _round(self):
        """All waiting gangs, by priority, then by arrival; a gang that alone gave room up keeps
        waiting.
        """
        priority = Counter()
        for key in self._members if self._freed else ():
            parked = self._parked(key)
            if parked and self._freed != {key}:
                priority[key] = self._core.facts_of(parked[0]).priority
        return sorted(priority, key=lambda key: -priority[key])

    def begin_turn(self, turns, moved):
        """The pods of each gang that is tried, until one of them moves. moved: the pods that
        did.
        """
        if turns is None:
            return []
        if not self._next:
            self._freed.clear()
        moved, tried = iter(moved), []
        self._turn, self._next = None, deque(key for key, _ in turns)
        while self._next and self._turn is None:
            key, uids = turns.pop(0)
            self._next.popleft()
            if uids:
                tried.append(uids)
                self._turn = key if next(moved, False) else None
        return tried
