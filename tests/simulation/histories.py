"""Histories: the calls of queue and binder as their callers saw them, checked against one-at-a-time
execution.

A call begins when its caller sends it and ends when its caller has the answer, or never. Its result
took effect at some time in between. So each rule uses only certain orders: a call that ended before
another one began. General checkers of linearizability search for an order of all calls; here each
pod, token and lease has an order of its own, in which nothing needs to be searched.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from roadstead.actors.messages import ADD_PENDING, BIND, EVICT, LEASE, REPORT
from roadstead.actors.messages.changes import DELETE_PODS, REMOVE_DELETED
from roadstead.actors.messages.recovery import END_OWNER, FENCE_OWNER, POD_NODES, RESOLVE
from roadstead.actors.names import BINDER, QUEUE

STATUS_HALTED = "halted"
"""Reasons of a refused bind that may not apply later."""

NEVER = -1


@dataclass(slots=True, eq=False)
class Call:
    """The request and the answer of a call. begun, ended: positions in the order of all events.

    began, end: in virtual time. lives: number of starts of queue and binder, at both ends.
    """

    what: str
    asked: object
    begun: int
    began_s: float
    life: int
    ended: int | None = None
    ended_s: float = 0.0
    last_life: int = 0
    answer: object = None


@dataclass
class Histories:
    """Records calls; `problems` lists impossible results. lease_s: minimum duration of a lease.

    snapshots: records that journals lost by taking a snapshot, see `snapshots.py`.

    Calls by kind, with request and answer:
        bind      {token: (uid, owner, epoch)}   {token: (node, "") or ("", cause)}
        accept    uids                           None
        delete    uids                           uids of deleted pods
        placement [(uid, token or "")]           for each a node, "" (waiting) or None (deleted)
        fence     (owner, epoch)                 None
        lease     (owner, epoch)                 (lease, uids)
        end       (lease or None, owner or None, uids)   None
    """

    lease_s: float
    now: object = lambda: 0.0
    calls: list = field(default_factory=list)
    snapshots: list = field(default_factory=list)
    _happened: int = 0
    _lives: int = 0

    def begin(self, what, asked):
        call = Call(what, asked, self._next(), self.now(), self._lives)
        self.calls.append(call)
        return call

    def end(self, call, answer=None):
        call.ended, call.ended_s, call.answer = self._next(), self.now(), answer
        call.last_life = self._lives

    def resumed(self):
        """Continue with another process and its own callers; all calls of the previous one have
        ended.

        Its epochs begin after those of the journal, which does not record refusals.
        """
        self.begin("process", None)

    def restarted(self):
        """The queue begins another life, without the leases of the previous one."""
        self._lives += 1

    def _next(self):
        self._happened += 1
        return self._happened

    def listen(self, target, method, message):
        """Record a message to an actor; return a callback for its answer, or None."""
        asking = _ASKING.get((target, method))
        if asking is None:
            return None
        what, asked_of, answer_of = asking
        call = self.begin(what, asked_of(message))
        return lambda answer: self.end(call, answer_of(message, answer))

    def problems(self):
        """Return one line for each impossible result."""
        ends = [(call.ended, call) for call in self.calls if call.ended is not None]
        events = sorted([*((each.begun, each) for each in self.calls), *ends], key=_place)
        binds, leases = Binds(), Leases(self.lease_s)
        for place, call in events:
            part = leases if call.what in ("lease", "end") else binds
            (part.begin if place == call.begun else part.end)(call)
        return [*binds.problems, *leases.problems, *self.snapshots]


def _place(event):
    return event[0]


class Binds:
    """Results that callers of the binder may see, for each pod and token."""

    def __init__(self):
        self.problems = []
        self._asked = {}
        self._answers = {}
        self._bound = {}
        self._accepted = {}
        self._delete_begun = {}
        self._gone = {}
        self._accept_begun = defaultdict(lambda: NEVER)
        self._void = set()
        self._fences = {}
        self._known = {}

    def begin(self, call):
        if call.what == "bind":
            for token in call.asked:
                self._asked.setdefault(token, call.begun)
        elif call.what == "accept":
            self._accept_begun.update(dict.fromkeys(call.asked, call.begun))
        elif call.what == "delete":
            for uid in call.asked:
                self._delete_begun.setdefault(uid, call.begun)
        elif call.what == "placement":
            bound, gone = self._bound, self._gone
            self._known[call] = {
                uid: (bound.get(uid, (None, None))[1], self._is_gone(uid))
                for uid, _ in call.asked
                if uid in bound or uid in gone
            }
        elif call.what == "process":
            self._asked = {}
            self._answers = {token: node for token, node in self._answers.items() if node}

    def end(self, call):
        getattr(self, f"_{call.what}")(call)

    def _accept(self, call):
        for uid in call.asked:
            self._accepted.setdefault(uid, call.ended)

    def _delete(self, call):
        for uid in call.answer:
            self._gone.setdefault(uid, call)

    def _fence(self, call):
        owner, epoch = call.asked
        if epoch > self._fences.get(owner, (0, 0))[0]:
            self._fences[owner] = epoch, call.ended

    def _is_gone(self, uid):
        """Whether a pod was certainly deleted and not submitted again."""
        gone = self._gone.get(uid)
        return gone is not None and self._accept_begun[uid] < gone.begun

    def _is_here(self, uid, begun):
        """Whether a pod was certainly accepted and its deletion not requested."""
        return uid not in self._delete_begun and self._accepted.get(uid, begun) < begun

    def _bind(self, call):
        for token, (node, cause) in call.answer.items():
            uid, owner, epoch = call.asked[token]
            if cause == STATUS_HALTED:
                continue
            before = self._answers.setdefault(token, node)
            if before != node:
                self._wrong(uid, f"token {token}: answered {node or cause!r}, before {before!r}")
            elif node:
                self._bound_by(uid, token, node, owner, epoch)
            elif cause == "unknown_pod" and self._is_here(uid, call.begun):
                self._wrong(uid, "accepted, and refused as unknown")

    def _bound_by(self, uid, token, node, owner, epoch):
        before = self._bound.setdefault(uid, (token, node))
        if before != (token, node):
            self._wrong(uid, f"bound under {before} and {(token, node)}")
        asked = self._asked[token]
        if self._is_gone(uid) and self._gone[uid].ended < asked:
            self._wrong(uid, f"bound under {token}, which was asked after it was gone")
        if token in self._void:
            self._wrong(uid, f"bound under {token}, which was resolved as void")
        newest, since = self._fences.get(owner, (0, 0))
        if epoch < newest and since < asked:
            self._wrong(uid, f"bound by {owner} of epoch {epoch} after {newest} was fenced")

    def _placement(self, call):
        known = self._known.pop(call)
        for (uid, token), node_name in zip(call.asked, call.answer, strict=True):
            if token and node_name == "":
                self._void.add(token)
            if uid not in known:
                continue
            node, was_gone = known[uid]
            if was_gone and self._is_gone(uid) and node_name is not None:
                self._wrong(uid, f"it was gone, and is reported on {node_name!r}")
            elif uid not in self._delete_begun and node_name != node:
                self._wrong(uid, f"it was bound on {node}, and is reported on {node_name!r}")

    def _wrong(self, uid, text):
        self.problems.append(f"history of the binder: {uid}: {text}")


class Leases:
    """A pod is leased to one scheduler at a time."""

    def __init__(self, lease_s):
        self.problems = []
        self._lease_s = lease_s
        self._holders = {}

    def begin(self, call):
        """A call that ends leases may do so from the moment it is sent."""
        if call.what == "end":
            lease, owner, uids, *gone = call.asked
            if owner is not None:
                self._drop(lambda held: held.asked[0] == owner)
            for uid in uids:
                held = self._holders.get(uid)
                if held is not None and lease in (None, held.answer[0]):
                    del self._holders[uid]
            for uid in gone:
                # It was evicted, whoever leased it: another pod may be submitted under its UID.
                self._holders.pop(uid, None)

    def _drop(self, is_over):
        self._holders = {uid: held for uid, held in self._holders.items() if not is_over(held)}

    def end(self, call):
        if call.what != "lease":
            return
        (owner, epoch), (lease, uids) = call.asked, call.answer
        for uid in uids:
            held = self._holders.get(uid)
            if held is not None and self._are_both_live(held, call):
                by, of = held.asked
                text = f"leased to {owner} ({lease}) while {by} ({held.answer[0]}) has it"
                # Another life of an owner takes over the leases of the previous one.
                if owner != by or epoch == of:
                    self.problems.append(f"history of the queue: {uid}: {text}")
            self._holders[uid] = call

    def _are_both_live(self, one, other):
        lasts_until_s = min(one.began_s, other.began_s) + self._lease_s
        return one.life == other.last_life and other.ended_s < lasts_until_s


def _binds_asked(batch):
    rows = zip(batch.tokens, batch.pods.uids, strict=True)
    return {token: (uid, batch.owner, batch.epoch) for token, uid in rows}


def _binds_answered(_, answers):
    return {
        each.token: ("" if each.cause else each.node_name, each.cause) for each in answers.answers
    }


def _nothing(message, answer):
    return None


_ASKING = {
    (BINDER, BIND.name): ("bind", _binds_asked, _binds_answered),
    (BINDER, ADD_PENDING.name): ("accept", lambda batch: batch.uids, _nothing),
    (BINDER, DELETE_PODS.name): ("delete", lambda gone: gone.uids, lambda _, gone: gone.uids),
    (BINDER, EVICT.name): ("delete", lambda ask: ask.uids, lambda _, answer: answer.pods.uids),
    (BINDER, POD_NODES.name): (
        "placement",
        lambda ask: [(uid, "") for uid in ask.uids],
        lambda _, answer: answer.nodes,
    ),
    (BINDER, RESOLVE.name): (
        "placement",
        lambda ask: list(zip(ask.uids, ask.tokens, strict=True)),
        lambda _, answer: answer.nodes,
    ),
    (BINDER, FENCE_OWNER.name): ("fence", lambda owner: (owner.name, owner.epoch), _nothing),
    (QUEUE, LEASE.name): (
        "lease",
        lambda ask: (ask.owner, ask.epoch),
        lambda _, leased: (leased.lease_id, leased.pods.uids),
    ),
    (QUEUE, REPORT.name): (
        "end",
        lambda report: (
            report.lease_id,
            None,
            (*report.bound, *(each.uid for each in report.returned)),
            *report.evicted.uids,
        ),
        _nothing,
    ),
    (QUEUE, REMOVE_DELETED.name): ("end", lambda gone: (None, None, gone.uids), _nothing),
    (QUEUE, END_OWNER.name): ("end", lambda end: (None, end.owner.name, end.uids), _nothing),
}
"""(actor, method) → (kind of call, recorded part of the message, recorded part of the answer)."""
