"""A shadow of the binder: its state, answers and journal records, followed call by call.

It has pods, nodes, tokens, fences and rows as plain tables (`plain_binder`), without quickly
accepted batches, trials, undo, columns or transition tables. It does not model which node a pod
fits: it accepts the core's answer and checks all consequences. A life begins with the journal's
records, replayed by `plain_binder.replayed`.
"""

import zlib

from roadstead.binder import BindConflictError
from roadstead.binder.pods import (
    Acknowledge,
    AppendJournal,
    Bound,
    Halted,
    RejectCause,
    Rejected,
    Released,
)
from roadstead.facts.run_mark import EPOCH, VOID, RunMark
from roadstead.journal import JournalRecord, RecordKind
from roadstead.protocol.status import SUCCESS
from tests.simulation.plain_binder import (
    BOUND,
    COUNTED,
    DELETED,
    PENDING,
    TENTATIVE,
    PlainBinder,
    Pod,
    journaled,
    listed,
    nodes_to_compare,
    short,
)
from tests.simulation.shadow_groups import Batch, gang_of

CALLS = (
    *("bind", "flushed", "flush_failed", "add_pods", "load", "update_pods", "delete", "evict"),
    *("void", "fence", "advance_epoch", "add_node", "add_nodes", "update_node", "remove_node"),
    "describe",
)
REVISED = (
    "add_pods",
    "update_pods",
    "delete",
    "add_node",
    "add_nodes",
    "update_node",
    "remove_node",
)
"""Calls whose revision may be omitted where it is 0."""
HALTING = ("add_pods", "load", "update_pods", "delete", "evict", "void", "fence")
"""Calls that a binder refuses after its journal has failed."""
STATES = {DELETED: RejectCause.DELETED, None: RejectCause.UNKNOWN_POD}
SAY_WHY = (
    *(RejectCause.CONSTRAINT, RejectCause.VERSION),
    *(RejectCause.TRANSACTION, RejectCause.CHANGED, RejectCause.FAILED),
)
PAST_EPOCHS = (None, RejectCause.UNKNOWN_NODE, RejectCause.VERSION, RejectCause.CHANGED)


def asked_for(request):
    """The fields that must be equal under one token."""
    who = request.uid, request.key, request.facts
    return *who, request.node_name, request.owner, request.epoch


class FilterError(Exception):
    """A filter's error that aborts a batch."""


class ShadowBinder(PlainBinder):
    """Follows one core. wrong: called with each difference. gangs: see `shadow_groups`."""

    def __init__(self, core, gangs, wrong):
        super().__init__(core.settings)
        self._core, self._gangs, self._wrong = core, gangs, wrong
        self.halted, self._is_inside, self._calls = None, False, 0
        for name in CALLS:
            setattr(core, name, self._followed(name, getattr(core, name)))

    def _followed(self, name, original):
        original = self._breaking(original) if name == "bind" else original

        def call(*what, **how):
            if self._is_inside:
                return original(*what, **how)
            if what and name not in ("flushed", "flush_failed", "describe", "fence"):
                # Batches may be iterators, which can be read once.
                what = what if isinstance(what[0], str) else (listed(what[0]), *what[1:])
            self._is_inside = True
            version, halted = self._core.version, self._core.halted
            if name == "bind":
                self._compare_needs(*what)
            is_counted = name not in REVISED or what[1:] != (0,)
            try:
                answer = original(*(what if is_counted else what[:1]), **how)
            except BaseException as failure:
                if isinstance(failure, BindConflictError) and not self._conflicts(*what):
                    self._wrong(f"a batch is refused as a contradiction: {failure}")
                self.compare(f"{name}, which raised", version)
                raise
            finally:
                self._is_inside = False
            if halted is not None and name in HALTING:
                self._wrong(f"{name} is taken by a binder that has halted")
            wanted = getattr(self, f"_{name}")(*what, **how, **self._more(name, answer, version))
            if answer != wanted:
                self._wrong(f"{name} is answered by {short(answer, wanted)}")
            self.compare(name)
            return answer

        return call

    @staticmethod
    def _more(name, answer, version):
        return {"answer": answer, "version": version} if name == "bind" else {}

    def _breaking(self, bind):
        """Abort some batches first: a filter raises in the middle, and nothing may remain.

        A batch with fewer filter calls is decided at once.
        """
        core = self._core

        def decided(requests):
            mark = zlib.crc32("".join(each.token for each in requests).encode())
            if mark % 4:
                return bind(requests)
            left, version = [None] * (mark // 8 % max(1, len(requests))), core.version
            verify, verify_prefix, dry_run = core._verify, core._verify_prefix, core._dry_run

            def breaks(request):
                if not left:
                    raise FilterError
                left.pop()
                return verify(request)

            core._verify, core._verify_prefix = breaks, lambda _: 0
            core._dry_run = breaks if mark // 4 % 2 else dry_run
            try:
                return bind(requests)
            except FilterError:
                self.compare("a bind whose filter raised", version)
            finally:
                core._verify, core._verify_prefix, core._dry_run = verify, verify_prefix, dry_run
            return bind(requests)

        return decided

    def _compare_needs(self, requests):
        """Compare the needs of gangs before any commit, and the tokens that name other requests."""
        needs = self._gangs.missing(self, requests)
        for facts in (each.facts for each in requests if each.facts.pod_group is not None):
            if self._core._missing_members(facts) != needs.get(gang_of(facts), 0):
                self._wrong(
                    f"{gang_of(facts)} lacks {self._core._missing_members(facts)}, not {needs}"
                )

    def _contradicted(self, requests):
        """Tokens that name other requests than before, or twice within a batch."""
        known = {token: asked_for(request) for token, (request, _) in self.tokens.items()}
        found = set()
        for each in requests:
            if known.setdefault(each.token, asked_for(each)) != asked_for(each):
                found.add(each.token)
        return found

    def _conflicts(self, requests):
        """Whether tokens name other requests than before; the pod may know a forgotten token."""
        pods = ((each, self.pods.get(each.uid)) for each in requests)
        elsewhere = (pod and pod.token == r.token and pod.node != r.node_name for r, pod in pods)
        return any(elsewhere) or self._contradicted(requests)

    # State.

    def compare(self, name, version=None):
        """Compare all counts and every pod of the core. version: the expected one."""
        core = self._core
        numbers = (core.last_lsn, core.flushed_lsn, len(core.placements), len(core._unflushed))
        counted = sum(each.state in COUNTED for each in self.pods.values())
        should = (self.last_lsn, self.flushed_lsn, counted, len(self.unflushed))
        if numbers != should:
            self._wrong(f"after {name}: numbers of records and pods are {numbers}, not {should}")
        if version is not None and core.version != version:
            self._wrong(f"after {name}: the version is {core.version}, not {version}")
        if core.halted != self.halted:
            self._wrong(f"after {name}: halted is {core.halted}, not {self.halted}")
        self._compare_pods(name)
        for what, here, there in (
            ("nodes", *nodes_to_compare(name, core.placements.nodes, self.nodes)),
            ("epochs", core._epochs, self.epochs),
            ("void tokens", list(core._voided), list(self.voided)),
            ("rows", core.row_versions._rows, self.rows),
            ("tokens", self._tokens_there(), self.tokens),
        ):
            if here != there:
                self._wrong(f"after {name}: {what} are {short(here, there)}")

    def _tokens_there(self):
        memory = self._core._tokens
        return {t: (r, memory._results.get(t)) for t, r in memory._requests.items()}

    def _compare_pods(self, name):
        core = self._core
        here, gone = core.pods.present, core.pods.ended
        if here.keys() != self.pods.keys() or list(gone) != list(self.gone):
            self._wrong(f"after {name}: pods are {short(set(here), set(self.pods))}")
        for uid, pod in (*self.pods.items(), *self.gone.items()):
            record = here.get(uid) or gone.get(uid)
            if record is None:
                continue
            if not record.history or not record.history[-1].endswith(f"→{record.state.value}"):
                self._wrong(f"after {name}: {uid} is {record.state}, by {record.history}")
            actual = (record.state.value, record.key, record.node_name, record.token)
            actual = (*actual, record.owner, record.epoch, record.lsn)
            if (
                actual != pod.facts_but_version
                or record.version != pod.version
                or record.facts != pod.facts
            ):
                self._wrong(f"after {name}: {uid} is {actual}, not {pod.facts_but_version}")
            node = pod.node if pod.state in COUNTED else None
            if core.placements.node_of(uid) != node:
                self._wrong(f"after {name}: {uid} is counted on {core.placements.node_of(uid)}")

    # Calls.

    def _bind(self, requests, answer, version):
        if wrong := self._contradicted(requests):
            self._wrong(f"tokens name other requests than before, and are answered: {wrong}")
        decisions, taken = {}, set()
        for effect in answer:
            if isinstance(effect, AppendJournal):
                taken = {each.token for each in effect.records}
            else:
                decisions[effect.token] = effect.result
        batch = Batch(self, requests, taken, self._gangs.missing(self, requests))
        # Trials count, too.
        has_groups = any(each.transaction or each.facts.pod_group for each in requests)
        before = version if not has_groups else self._core.version - len(taken)
        effects, records = [], []
        for request in requests:
            known, pod = self.tokens.get(request.token), self.pods.get(request.uid)
            if known is not None:
                decision = known[1]
            elif pod is not None and pod.token == request.token:
                decision = pod.bound
            elif request.token in taken:
                decision = None
                records.append(self._accept(request, pod, before + len(records) + 1, batch))
            else:
                given = decisions.get(request.token)
                decision = self._refuse(request, pod, given, before + len(records), batch)
            if decision is not None:
                effects.append(Acknowledge(request.token, request.owner, decision))
        batch.check(decisions)
        self.forget_oldest()
        if self._core.version != before + len(records) or before < version:
            self._wrong(f"{len(records)} binds: version {version} is {self._core.version}")
        return [*effects, *journaled(records)]

    def forbids(self, request, pod, *, may_be_busy=True):
        """Return the reason to refuse a commit, apart from the filters, or None."""
        if self.halted is not None:
            return RejectCause.HALTED
        if may_be_busy and len(self.unflushed) >= self.settings.max_unflushed:
            return RejectCause.BUSY
        if request.token in self.voided:
            return RejectCause.EXPIRED
        if pod is None or pod.state != PENDING:
            state = getattr(pod or self.gone.get(request.uid), "state", None)
            return STATES.get(state, RejectCause.ALREADY_BOUND)
        if request.epoch < self.epochs.get(request.owner, request.epoch):
            return RejectCause.STALE_EPOCH
        if request.node_name not in self.nodes:
            return RejectCause.UNKNOWN_NODE
        if self.settings.checks_versions and self.missed(
            request.node_name, request.owner, request.read_version
        ):
            return RejectCause.VERSION
        return RejectCause.CHANGED if request.facts != pod.facts else None

    def _accept(self, request, pod, version, batch):
        if (cause := self.forbids(request, pod)) is not None:
            self._wrong(f"{request.uid} is accepted under {request.token}: {cause}")
            pod = pod or Pod(request.uid, request.key, request.facts)
        batch.accepted.append(request)
        self.fence(request.owner, request.epoch)
        self.last_lsn += 1
        pod.state, pod.node, pod.token = TENTATIVE, request.node_name, request.token
        pod.owner, pod.epoch, pod.lsn, pod.version = (
            *(request.owner, request.epoch),
            *(self.last_lsn, version),
        )
        self.unflushed.append((self.last_lsn, pod, request.token))
        self.remember(request.token, request, None)
        if self.settings.checks_versions:
            self.changed(pod.node, pod.lsn, pod.owner)
        by = pod.token, pod.owner, pod.epoch, pod.facts
        return JournalRecord(pod.lsn, RecordKind.BIND, pod.uid, pod.key, pod.node, *by)

    def _refuse(self, request, pod, given, version, batch):
        """Return the expected refusal; where filters decide, its cause and text are the core's."""
        cause = self.forbids(request, pod)
        if cause in PAST_EPOCHS:
            batch.reaches_epoch(request)
        of_filters = {RejectCause.CONSTRAINT, RejectCause.FAILED}
        allowed = ({cause} if cause else of_filters) | batch.others(request)
        if cause is RejectCause.BUSY and (request.transaction or request.facts.pod_group):
            # It was tried before the accepted requests of the batch filled the binder.
            allowed.add(self.forbids(request, pod, may_be_busy=False))
        if given is None or isinstance(given, Bound) or given.cause not in allowed:
            self._wrong(f"{request.uid} under {request.token} gets {given}, wants {allowed}")
            return given
        row = self.rows.get(request.node_name, (0,))[0]
        status = given.status if given.cause in SAY_WHY else SUCCESS
        refused = Rejected(request.uid, given.cause, version, status, row)
        if given.cause is not RejectCause.HALTED:
            self.remember(request.token, request, refused)
        return refused

    # Consequences.

    def _flushed(self, lsn):
        effects = []
        if self.halted is not None:
            return effects
        while self.unflushed and self.unflushed[0][0] <= lsn:
            _, pod, what = self.unflushed.pop(0)
            if pod.state == TENTATIVE:
                pod.state = BOUND
            if isinstance(what, str):
                request = self.tokens[what][0]
                # The pod may have been deleted meanwhile; it was bound all the same.
                self.remember(what, request, pod.bound)
                effects.append(Acknowledge(what, pod.owner, pod.bound))
                if pod.state == BOUND:
                    self.listed[pod.uid] = pod.node
            elif what is not None:
                effects.append(what)
                self.listed.pop(pod.uid, None)
        self.flushed_lsn = max(self.flushed_lsn, lsn)
        return effects

    def _flush_failed(self, reason):
        if self.halted is None:
            waiting = tuple(token for token, (_, answer) in self.tokens.items() if answer is None)
            self.halted = Halted(reason, self.flushed_lsn, self.last_lsn, waiting)
        return [self.halted]

    def _number(self, pod, kind, **more):
        self.last_lsn += 1
        return JournalRecord(self.last_lsn, kind, pod.uid, pod.key, pod.node, **more)

    def _add_pods(self, pods, revision=0):
        fresh, updated = {}, []
        for uid, key, facts in pods:
            known = self.pods.get(uid)
            if known is None:
                fresh.setdefault(uid, Pod(uid, key, facts))
            elif known.state == PENDING and known.facts != facts:
                known.facts = facts
                updated.append(known)
        for pod in fresh.values():
            self.comes(pod)
        pods = [*fresh.values(), *updated] if self._core._journals_all else []
        return journaled(
            self._number(pod, RecordKind.ADD, epoch=revision, facts=pod.facts) for pod in pods
        )

    def _load(self, pods):
        records = []
        for uid, key, facts, node in pods:
            pod = self.pods.get(uid) or Pod(uid, key, facts)
            if pod.state in COUNTED:
                continue
            pod.state, pod.node, pod.facts = BOUND, node, facts
            self.comes(pod)
            records.append(self._number(pod, RecordKind.LOAD, facts=facts))
            pod.lsn = self.last_lsn
            self.unflushed.append((pod.lsn, pod, None))
        return journaled(records)

    def _update_pods(self, pods, revision=0):
        records = []
        for uid, facts in pods:
            pod = self.find(uid)
            if pod.facts == facts:
                continue
            pod.facts = facts
            if pod.state in COUNTED or self._core._journals_all:
                records.append(self._number(pod, RecordKind.ADD, epoch=revision, facts=facts))
            if pod.state in COUNTED:
                self.changed(pod.node, self.last_lsn)
        return journaled(records)

    def _delete(self, uids, revision=0):
        return self._release(uids, RecordKind.DELETE, epoch=revision)

    def _evict(self, uids, preemptors=()):
        return self._release(uids, RecordKind.EVICT, dict(preemptors))

    def _release(self, uids, kind, by=None, **more):
        records = []
        # A pod that is evicted first may be forgotten to remember the later ones.
        for uid, pod in {uid: self.find(uid) for uid in uids}.items():
            if pod.state == DELETED:
                continue
            preemptor = (by or {}).get(uid, "")
            record = self._number(pod, kind, **more, owner=preemptor)
            if pod.state in COUNTED:
                self.changed(pod.node, record.lsn)
            self.leaves(pod)
            effect = Released(uid, pod.key, pod.node, kind is RecordKind.EVICT, preemptor)
            self.unflushed.append((record.lsn, pod, effect))
            records.append(record)
        return journaled(records)

    def _of_nobody(self, what, **more):
        self.last_lsn += 1
        mark = RunMark(what)
        return JournalRecord(self.last_lsn, RecordKind.RUN, "", "", "", **more, subject=mark)

    def _void(self, tokens):
        records = []
        for token in tokens:
            if token not in self.voided:
                self.void(token)
                records.append(self._of_nobody(VOID, token=token))
        return journaled(records)

    def _fence(self, owner, epoch):
        if self.epochs.get(owner, epoch - 1) >= epoch:
            return []
        self.fence(owner, epoch)
        return journaled([self._of_nobody(EPOCH, owner=owner, epoch=epoch)])

    def _advance_epoch(self, owner, epoch):
        self.fence(owner, epoch)

    def _journal(self, kind, name, subject, revision=0, *, is_due=False):
        """is_due: it needs a number, also where there is no journal."""
        if not (is_due or self._core._journals_all):
            return []
        self.last_lsn += 1
        who = kind, name, name, name
        return [JournalRecord(self.last_lsn, *who, epoch=revision, subject=subject)]

    def _node_records(self, nodes, revision=0):
        for facts in nodes:
            is_other = self.nodes.get(facts.name, facts) != facts
            yield from self._journal(RecordKind.NODE, facts.name, facts, revision, is_due=is_other)
            if is_other:
                self.changed(facts.name, self.last_lsn)
            self.nodes[facts.name] = facts

    def _add_nodes(self, nodes, revision=0):
        return journaled(self._node_records(nodes, revision))

    def _add_node(self, facts, revision=0):
        return self._add_nodes([facts], revision)

    _update_node = _add_node

    def _remove_node(self, name, revision=0):
        del self.nodes[name]
        is_due = self.settings.checks_versions
        records = self._journal(RecordKind.NODE_GONE, name, None, revision, is_due=is_due)
        self.changed(name, self.last_lsn)
        return journaled(records)

    def _describe(self, subject, kind=RecordKind.CLUSTER):
        return journaled(self._journal(kind, "", subject))
