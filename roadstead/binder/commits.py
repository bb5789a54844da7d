"""Commits: from bind requests to accepted commits, one by one or for a whole batch.

    bind ──► can only filters refuse a request? ── no ──► one after another, each alone
                     │ yes
                     ▼
             how many of the first pass together? ──► accept these
                     ▲                                    │
                     └─── the others ◄── the next, alone ◄┘

    alone: known token? ──► its answer      a cause to refuse it (`RejectCause`)? ──► refuse
           otherwise ──► accept

The part of BinderCore that decides; `roadstead.binder.core` handles the flush. A batch is the
requests of one call of `bind`; if anything raises while it is decided, all of it is undone
(`roadstead.binder.batch_start`).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from roadstead.binder.all_or_nothing import BindRefusal, MissingMembers, refused_groups
from roadstead.binder.batch_start import BatchStart, Unflushed
from roadstead.binder.binder_store import BinderStore, to_journal
from roadstead.binder.pods import (
    Acknowledge,
    BinderCommand,
    BinderEvent,
    BinderRecord,
    BinderSettings,
    BinderState,
    BindRequest,
    RejectCause,
    Rejected,
    Verify,
    VerifyPrefix,
)
from roadstead.binder.tokens import TokenMemory, conflict
from roadstead.journal import JournalRecord, RecordKind
from roadstead.placements import NodeStore
from roadstead.protocol.status import SUCCESS, Code, unschedulable
from roadstead.transitions import History

_NOT_PENDING = {
    BinderState.TENTATIVE: RejectCause.ALREADY_BOUND,
    BinderState.BOUND: RejectCause.ALREADY_BOUND,
    BinderState.DELETED: RejectCause.DELETED,
}

_BIND = RecordKind.BIND

MIN_TOGETHER = 64
"""Minimum number of requests that are verified together after one did not pass."""

MAX_ONE_BY_ONE = 64
"""Maximum number of requests decided one by one before verifying together is tried again."""


@dataclass(slots=True)
class _BatchResult:
    """The outcome of a batch: answers, and the records of accepted requests."""

    answers: list[BinderCommand] = field(default_factory=list)
    journal: list[JournalRecord] = field(default_factory=list)

    def add(self, outcome: Acknowledge | JournalRecord | None) -> None:
        if isinstance(outcome, JournalRecord):
            self.journal.append(outcome)
        elif outcome is not None:
            self.answers.append(outcome)

    def commands(self) -> list[BinderCommand]:
        return [*self.answers, *to_journal(self.journal)]


class Commits(BinderStore):
    """Bind requests with their tokens, epochs and outcomes.

    verify: runs all hard filters of one node on `store`, which starts empty; if they pass, it also
    binds the pod's claims. next_lsn: the number of the first record, one after the last of the
    journal. journals_all: also journal nodes, submitted pods and the cluster, so that the journal
    alone suffices to check every bind. missing_members: how many pods of a gang must still be
    bound. dry_run: as `verify`, to try out a batch. undo: reverts the claims that `dry_run` bound,
    or `verify` in a batch that fails. verify_prefix: how many of the first requests pass one after
    another, as far as that is found quickly.
    """

    def __init__(
        self,
        store: NodeStore,
        verify: Verify,
        settings: BinderSettings | None = None,
        next_lsn: int = 1,
        *,
        journals_all: bool = False,
        missing_members: MissingMembers = lambda _: 0,
        dry_run: Verify | None = None,
        undo: Callable[[], None] = lambda: None,
        verify_prefix: VerifyPrefix = lambda _: 0,
    ) -> None:
        super().__init__(store, settings or BinderSettings(), next_lsn, journals_all=journals_all)
        self._verify, self._verify_prefix = verify, verify_prefix
        self._missing_members, self._dry_run, self._undo = missing_members, dry_run or verify, undo
        self._epochs: dict[str, int] = {}
        self._tokens = TokenMemory(self.settings.max_tokens)
        self._voided: OrderedDict[str, None] = OrderedDict()
        self._unflushed: Unflushed = deque()
        """Records not on disk yet (`roadstead.binder.batch_start`)."""

    def bind(self, requests: Sequence[BindRequest]) -> list[BinderCommand]:
        """Decide requests in order, each on top of all before it, flushed or not.

        Refusals and repeated answers are commands of this call. Accepted requests are one
        AppendJournal, acknowledged by `flushed`. A request that already waits for its flush has no
        command. Raises BindConflictError for a token that was used for another request, and any
        error of `verify`; nothing is changed then.
        """
        start = self._batch_start(requests)
        try:
            commands = self._decide(requests, start.histories)
        except BaseException:
            self._undo_batch(start, requests)
            raise
        self._tokens.forget_oldest()
        return commands

    def _batch_start(self, requests: Sequence[BindRequest]) -> BatchStart:
        nodes = {each.node_name for each in requests} if self.settings.checks_versions else ()
        return BatchStart(
            last_lsn=self.last_lsn,
            version=self.version,
            unflushed=len(self._unflushed),
            tokens=len(self._tokens),
            epochs=dict(self._epochs),
            rows={name: self.row_versions.row(name) for name in nodes},
            histories={},
        )

    def _undo_batch(self, start: BatchStart, requests: Sequence[BindRequest]) -> None:
        self._undo()
        start.reset_accepted(requests, self.pods.present, self.placements)
        start.drop_entries(self._unflushed, self._tokens, self.row_versions)
        self.last_lsn, self._epochs = start.last_lsn, dict(start.epochs)

    def _decide(
        self, requests: Sequence[BindRequest], histories: dict[str, History]
    ) -> list[BinderCommand]:
        """Decide a batch. histories: receives, by UID, the earlier histories of accepted pods."""
        records = self._records_if_all_pending(requests)
        if records is not None:
            return self._bind_pending(requests, records, histories)
        decided = _BatchResult()
        self._check_tokens(requests)
        refused = self._refused_groups(requests)
        for request in requests:
            decided.add(self._bind_one(request, refused.get(request.token), histories))
        return decided.commands()

    def _bind_pending(
        self,
        requests: Sequence[BindRequest],
        records: Sequence[BinderRecord],
        histories: dict[str, History],
    ) -> list[BinderCommand]:
        """Decide requests of pending pods as if one after another; accept those that pass together.

        If few pass together, more are decided one by one before the next try.
        """
        # Most batches of several schedulers contain a conflict. Verified pod by pod, a hard spread
        # over three zones at 50,000 nodes took 0.8 ms of the binder's time per pod.
        decided = _BatchResult()
        start, to_verify, one_by_one = 0, len(requests), 1
        while start < len(requests):
            verified = requests[start : start + to_verify]
            if passing := self._verify_prefix(verified):
                accepted = records[start : start + passing]
                decided.journal += self._accept_all(verified[:passing], accepted, histories)
                start += passing
            # Twice as many as passed: then about as many are verified in vain as pass.
            to_verify = max(2 * passing, MIN_TOGETHER)
            if passing == len(verified):
                continue
            for request in requests[start : start + one_by_one]:
                decided.add(self._bind_one(request, None, histories))
            start += one_by_one
            one_by_one = 1 if passing >= one_by_one else min(2 * one_by_one, MAX_ONE_BY_ONE)
        return decided.commands()

    def advance_epoch(self, owner: str, epoch: int) -> None:
        """Fence an owner: its requests of epochs before `epoch` are refused from now on."""
        self._epochs[owner] = max(epoch, self._epochs.get(owner, epoch))

    def current_epoch(self, owner: str) -> int | None:
        """Return the newest epoch seen of an owner; None for an unknown owner."""
        return self._epochs.get(owner)

    def _check_tokens(self, requests: Sequence[BindRequest]) -> None:
        """Raise BindConflictError if a token was used for another request, here or before."""
        in_batch: dict[str, BindRequest] = {}
        for request in requests:
            # Only because it raises if the token is known for another request.
            self._tokens.get(request)
            first = in_batch.setdefault(request.token, request)
            if not first.is_same(request):
                raise conflict(request, f"{first.key} on {first.node_name}")
            record = self.pods.present.get(request.uid)
            if record and record.token == request.token and record.node_name != request.node_name:
                raise conflict(request, f"{record.key} on {record.node_name}")

    def _records_if_all_pending(self, requests: Sequence[BindRequest]) -> list[BinderRecord] | None:
        """Return the pods' records if only the filters could refuse a request; else None."""
        if self.halted is not None or self.settings.checks_versions:
            return None
        if len(self._unflushed) + len(requests) > self.settings.max_unflushed:
            return None
        known, epochs = self.pods.present, self._epochs
        records: list[BinderRecord] = []
        # Facts in a message are copies, one per class: each pair is compared only once.
        equal: set[tuple[int, int]] = set()
        for request in requests:
            record = known.get(request.uid)
            if record is None or record.state is not BinderState.PENDING:
                return None
            facts, requested = record.facts, request.facts
            if requested is not facts and (id(requested), id(facts)) not in equal:
                if requested != facts:
                    return None
                equal.add((id(requested), id(facts)))
            if request.transaction or facts.pod_group is not None:
                return None
            records.append(record)
        if not self._are_new(requests):
            return None
        if self.placements.store.missing(each.node_name for each in requests):
            return None
        # One epoch per owner: of two epochs in a batch, the newer may make the older stale.
        senders = {(each.owner, each.epoch) for each in requests}
        are_current = all(epoch >= epochs.get(owner, epoch) for owner, epoch in senders)
        return records if are_current and len(dict(senders)) == len(senders) else None

    def _are_new(self, requests: Sequence[BindRequest]) -> bool:
        """Whether each request is for a different pod, under a token never seen before."""
        tokens, count = {each.token for each in requests}, len(requests)
        if len(tokens) < count or len({each.uid for each in requests}) < count:
            return False
        return tokens.isdisjoint(self._voided) and not self._tokens.knows_any(tokens)

    def _accept_all(
        self,
        requests: Sequence[BindRequest],
        records: Sequence[BinderRecord],
        histories: dict[str, History],
    ) -> list[JournalRecord]:
        """Accept requests as `_accept` would one after another."""
        for owner, epoch in {(each.owner, each.epoch) for each in requests}:
            self.advance_epoch(owner, epoch)
        version = self.version
        uids, facts = [each.uid for each in records], [each.facts for each in records]
        # The binder's own objects are stored, not the equal copies in the requests.
        node_names = self.placements.bulk_place(uids, [each.node_name for each in requests], facts)
        assert self.version == version + len(requests), "a pod on a known node is not counted"
        return self._record_accepted(requests, records, node_names, version, histories)

    def _record_accepted(
        self,
        requests: Sequence[BindRequest],
        records: Sequence[BinderRecord],
        node_names: Sequence[str],
        version: int,
        histories: dict[str, History],
    ) -> list[JournalRecord]:
        """Update the records of placed pods; return journal records. version: before these pods."""
        journal, lsn = [], self.last_lsn
        histories.update((each.uid, each.history) for each in records)
        self.pods.apply_all(records, BinderEvent.COMMIT)
        for request, record, node_name in zip(requests, records, node_names, strict=True):
            version, lsn = version + 1, lsn + 1
            token, owner, epoch = request.token, request.owner, request.epoch
            record.node_name, record.token, record.lsn = node_name, token, lsn
            record.owner, record.epoch, record.version = owner, epoch, version
            self._unflushed.append((lsn, record, token))
            fields = (
                lsn,
                _BIND,
                record.uid,
                record.key,
                node_name,
                token,
                owner,
                epoch,
                record.facts,
            )
            journal.append(JournalRecord(*fields))
        self._tokens.add_unanswered(requests)
        if self.settings.checks_versions:
            for record in records:
                self.row_versions.changed(record.node_name, record.lsn, record.owner)
        self.last_lsn = lsn
        return journal

    def _refused_groups(self, requests: Sequence[BindRequest]) -> dict[str, BindRefusal]:
        """Return, by token, refusals for gangs and transactions of which too few pods fit."""
        if all(r.facts.pod_group is None and not r.transaction for r in requests):
            return {}

        def refusal_of(request: BindRequest, placed: int) -> BindRefusal | None:
            if len(self._unflushed) + placed >= self.settings.max_unflushed:
                return RejectCause.BUSY, SUCCESS
            return self._refusal(request, self.pods.present.get(request.uid), self._dry_run)

        undecided = [each for each in requests if not self._is_decided(each)]
        refused = refused_groups(undecided, self.placements, refusal_of, self._missing_members)
        # `refused_groups` restored the placements; this reverts the claims that the dry run bound.
        self._undo()
        return refused

    def _is_decided(self, request: BindRequest) -> bool:
        """Whether the same request was answered before, or waits for its flush."""
        record = self.pods.present.get(request.uid)
        is_bound = record is not None and record.token == request.token
        return is_bound or self._tokens.get(request) is not None

    def _bind_one(
        self, request: BindRequest, refusal: BindRefusal | None, histories: dict[str, History]
    ) -> Acknowledge | JournalRecord | None:
        """Decide one request: return an answer, the record of a commit, or None if it waits.

        refusal: that of the request's group, if it is refused as a group.
        """
        remembered = self._tokens.get(request)
        if remembered is not None:
            if remembered.result is None:
                return None
            return Acknowledge(request.token, request.owner, remembered.result)
        record = self.pods.present.get(request.uid)
        if record is not None and record.token == request.token and record.bound is not None:
            # The token is forgotten, but the pod's record shows that this request bound it.
            return Acknowledge(request.token, request.owner, record.bound)
        refusal = refusal or self._refusal(request, record, self._verify)
        if refusal is None:
            assert record is not None
            return self._accept(request, record, histories)
        cause, status = refusal
        row_version = self.row_versions.of(request.node_name)
        rejected = Rejected(request.uid, cause, self.version, status, row_version)
        if cause is not RejectCause.HALTED:
            # Final even if the cause is not the pod (BUSY): the sender acts on the refusal at once,
            # and a delayed copy of the request must not be committed afterwards.
            self._tokens.put(request, rejected)
        return Acknowledge(request.token, request.owner, rejected)

    def _refusal(
        self, request: BindRequest, record: BinderRecord | None, verify: Verify
    ) -> BindRefusal | None:
        """Return the first reason to refuse this commit, in a fixed order; None if allowed."""
        if self.halted is not None:
            return RejectCause.HALTED, SUCCESS
        if len(self._unflushed) >= self.settings.max_unflushed:
            return RejectCause.BUSY, SUCCESS
        if request.token in self._voided:
            # The answer that this attempt is not committed is final (I6 in docs/invariants.md).
            return RejectCause.EXPIRED, SUCCESS
        if record is None or record.state is not BinderState.PENDING:
            state = self.pods.state_of(request.uid)
            return _NOT_PENDING.get(state, RejectCause.UNKNOWN_POD), SUCCESS
        if request.epoch < self._epochs.get(request.owner, request.epoch):
            # A replaced scheduler may still send requests; its successor has a higher epoch (I8).
            return RejectCause.STALE_EPOCH, SUCCESS
        self.advance_epoch(request.owner, request.epoch)
        if request.node_name not in self.placements.nodes:
            return RejectCause.UNKNOWN_NODE, SUCCESS
        if self._is_stale(request):
            change = f"the node changed with record {self.row_versions.of(request.node_name)}"
            return RejectCause.VERSION, unschedulable(f"{change}, {request.read_version} was read")
        if request.facts is not record.facts and request.facts != record.facts:
            # The cache counts the pod's old facts, so it must be decided and assumed again.
            return RejectCause.CHANGED, unschedulable("the pod was updated after it was read")
        status = verify(request)
        if status.is_success:
            return None
        has_failed = status.code is Code.ERROR
        return RejectCause.FAILED if has_failed else RejectCause.CONSTRAINT, status

    def _is_stale(self, request: BindRequest) -> bool:
        if not self.settings.checks_versions:
            return False
        return self.row_versions.changed_by_others(
            request.node_name, request.owner, request.read_version
        )

    def _accept(
        self, request: BindRequest, record: BinderRecord, histories: dict[str, History]
    ) -> JournalRecord:
        self.placements.place(record.uid, request.node_name, record.facts)
        node_names, version = (request.node_name,), self.version - 1
        return self._record_accepted((request,), (record,), node_names, version, histories)[0]
