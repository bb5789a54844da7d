"""Binder: BinderCore with its filters, its journal and the outcomes of pods, in one object.

    bind, add, delete … ──► BinderCore ──► commands ──► journal: append, flush
                                ▲                             │
         results, outcomes ◄────┴── flushed, or halted ◄──────┘

Synchronous, without a clock: returned binds are durable.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile

from roadstead.binder.binder_journal import BinderJournal, RunDescription
from roadstead.binder.commit_log import CommitLog
from roadstead.binder.core import BinderCore
from roadstead.binder.gangs import GangShortfall
from roadstead.binder.outcomes import PodOutcomes
from roadstead.binder.pods import (
    Acknowledge,
    AppendJournal,
    BinderCommand,
    BinderHaltedError,
    BinderRecord,
    BinderSettings,
    BinderState,
    BindRequest,
    Bound,
    CommitResult,
    KeyedPod,
    Released,
)
from roadstead.binder.verification import Verifier
from roadstead.binder.volumes import BinderVolumes
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts, without_nomination
from roadstead.facts.run_mark import FINISHED, RunMark
from roadstead.framework.profile import Profile
from roadstead.journal import Journal, JournalError, NullJournal, RecordKind
from roadstead.placements import TableStore
from roadstead.protocol.status import Status
from roadstead.revisions import Revisions, newer_nodes
from roadstead.storage.claim_messages import AttemptBindings

_log = logging.getLogger("roadstead.binder")


class Binder:
    """Commit binds in order, as the only writer of its journal; repeated calls change nothing.

    store: empty; the table of the nodes, with the pods that are counted on each. profiles: by
    scheduler name, built with the pod classes of that table. State is recovered from a journal that
    has records; `run` is written to an empty one. revision: of a change of the cluster, see
    `roadstead.revisions`. Methods that change something raise BinderHaltedError if the journal
    fails or has failed; `bind` then leaves requests unanswered. Commands are those of the core
    (`BinderCommand`).

    verifier: all hard filters; may be replaced by one that checks less. commits: when binds were
    acknowledged; the caller calls its `mark` when it sends the answers. node_revisions,
    pod_revisions: the last revision of each name or UID; a message with an older revision is
    ignored. outcomes: the pods that are bound, and those that were removed. batches: number of
    calls of `bind`.
    """

    def __init__(
        self,
        store: TableStore,
        profiles: Mapping[str, Profile],
        journal: Journal,
        run: RunDescription,
        settings: BinderSettings,
    ) -> None:
        self.verifier = Verifier(store.table, profiles)
        self.volumes = BinderVolumes(profiles)
        gangs = GangShortfall(run.cluster, profiles, store.table, self._uncounted_pods)
        self.core = BinderCore(
            store,
            self._verify,
            settings,
            journals_all=not isinstance(journal, NullJournal),
            missing_members=gangs.missing_members,
            dry_run=self._dry_run,
            undo=self.volumes.undo,
            verify_prefix=self._verify_prefix,
        )
        self.node_revisions, self.pod_revisions = Revisions(), Revisions()
        self.outcomes, self.commits = PodOutcomes(), CommitLog()
        revisions = self.node_revisions, self.pod_revisions
        self.journal = BinderJournal(journal, self.core, self.volumes, self.outcomes, *revisions)
        self.batches = 0
        if not self.journal.recover():
            self._perform(self.journal.begin(run))

    @property
    def error(self) -> str:
        """Reason that the binder has halted, and the durable records; "" if it has not."""
        halted = self.core.halted
        if halted is None:
            return ""
        durable = f"records 1 to {halted.flushed_lsn} of {halted.last_lsn} are durable"
        return f"{halted.reason}; {durable}"

    # The cluster. Pods are stored without nominated nodes, which only schedulers and cache need.

    def add_nodes(self, nodes: NodeList, revision: int = 0) -> None:
        """Add nodes; update known ones."""
        current = newer_nodes(nodes, revision, self.node_revisions)
        self._perform_durably(self.core.add_nodes(current, revision))

    def remove_nodes(self, names: Iterable[str], revision: int = 0) -> None:
        """Remove nodes; their pods stay bound to them."""
        current = [name for name in names if self.node_revisions.apply_removal(name, revision)]
        known = [name for name in current if name in self.core.placements.nodes]
        remove = self.core.remove_node
        self._perform_durably([command for name in known for command in remove(name, revision)])

    def add_running(
        self, pods: Iterable[KeyedPod], node_names: Iterable[str], revision: int = 0
    ) -> None:
        """Add pods that already run, each on its node: bound from the start."""
        current = [
            (uid, key, without_nomination(facts), node_name)
            for (uid, key, facts), node_name in zip(pods, node_names, strict=True)
            if self.pod_revisions.apply_addition(uid, revision)
        ]
        self._perform_durably(self.core.load(current))

    def add_pending(self, pods: Sequence[KeyedPod], revision: int = 0) -> None:
        """Add pending pods, which may be bound from now on."""
        indices = self.pod_revisions.apply_additions([uid for uid, _, _ in pods], revision)
        current = pods if indices is None else [pods[index] for index in indices]
        pending = [(uid, key, without_nomination(facts)) for uid, key, facts in current]
        self._perform_durably(self.core.add_pods(pending, revision))

    def update_pods(self, pods: Sequence[KeyedPod], revision: int = 0) -> list[BinderRecord]:
        """Update the facts of pods, bound or not; return the updated records of known pods.

        Deleted pods stay deleted. The caller must not change the records.
        """
        records = self.core.records(uid for uid, _, _ in pods)
        known = {each.uid for each in records}
        changed = [
            (uid, without_nomination(facts))
            for uid, _, facts in pods
            if uid in known and self.pod_revisions.apply_addition(uid, revision)
        ]
        self._perform_durably(self.core.update_pods(changed, revision))
        return records

    def delete_pods(self, uids: Iterable[str], revision: int = 0) -> list[KeyedPod]:
        """Delete pods, bound or not; return those that are deleted now, or were before.

        Pods that were added again after this revision are kept.
        """
        known = [uid for uid in uids if self._state(uid) is not BinderState.UNKNOWN]
        current = [uid for uid in known if self.pod_revisions.apply_removal(uid, revision)]
        self._perform_durably(self._with_released(self.core.delete(current, revision), current))
        return self._deleted_of(known)

    def _with_released(
        self, commands: Sequence[BinderCommand], uids: Sequence[str]
    ) -> list[BinderCommand]:
        """Release the claims of removed pods; add the records of the claims to `commands`."""
        self.volumes.release(uids)
        return self.journal.with_claims(commands)

    # Binds and evictions.

    def bind(
        self, requests: Sequence[BindRequest], volumes: Sequence[AttemptBindings] = ()
    ) -> dict[str, CommitResult]:
        """Decide a batch; return results by token, in the order of the requests.

        volumes: the bindings of these attempts' claims. Requests whose records the journal did not
        keep have no result. Raises BindConflictError for a token that was used for another
        request, and JournalError if a snapshot fails; the same batch may then be sent again.
        """
        # Here, because the core may refuse requests before it reads their epoch, as when the
        # binder is busy; the epoch of a new owner must be recorded even then.
        for owner, epoch in dict.fromkeys((each.owner, each.epoch) for each in requests):
            if self.core.current_epoch(owner) is None:
                self.core.advance_epoch(owner, epoch)
        self.volumes.begin(volumes)
        results = self._perform(self.journal.with_claims(self.core.bind(requests)))
        self.journal.snapshot_if_grown()
        self.batches += 1
        return {each.token: results[each.token] for each in requests if each.token in results}

    def evict(self, uids: Sequence[str], preemptors: Sequence[str]) -> list[KeyedPod]:
        """Evict pods, each for a preemptor; return those that are deleted now.

        A pending pod is deleted, too: a bind that is requested later is refused.
        """
        known = [uid for uid in uids if self._state(uid) is not BinderState.UNKNOWN]
        commands = self.core.evict(known, dict(zip(uids, preemptors, strict=True)))
        self._perform_durably(self._with_released(commands, known))
        return self._deleted_of(known)

    def deallocate(self, claims: Sequence[tuple[str, str]]) -> None:
        """Deallocate claims of devices (key, UID of the pod for which it is done).

        Idempotent; a claim that another pod reserves keeps its allocation.
        """
        if claims:
            self.volumes.deallocate(claims)
            self._perform_durably(self.journal.with_claims(()))

    def resolve(self, uids: Iterable[str], tokens: Iterable[str]) -> tuple[str | None, ...]:
        """Return the pods' nodes as `bound_nodes`, and void the tokens of pods that are on no node.

        So the answer is final (I6 in docs/invariants.md): what is not committed now never will be.
        """
        uids = tuple(uids)
        pairs = zip(uids, tokens, strict=True)
        void = (token for uid, token in pairs if not self._node_of(uid))
        self._perform_durably(self.core.void(void))
        return self.bound_nodes(uids)

    def fence(self, owner: str, epoch: int) -> None:
        """Refuse binds of a scheduler's epochs before this one, also after a recovery."""
        self._perform_durably(self.core.fence(owner, epoch))

    # Queries.

    def bound_nodes(self, uids: Iterable[str]) -> tuple[str | None, ...]:
        """Return the node of each pod: "" if it is pending, None if it is unknown or deleted."""
        return tuple(self._node_of(uid) for uid in uids)

    def evicted(self) -> list[KeyedPod]:
        """Return all deleted and evicted pods, in the order in which they were removed.

        The records of the earliest may be forgotten (`BinderSettings.max_gone_remembered`): their
        facts are then empty but for the namespace.
        """
        removed = self.outcomes.removed
        return [(pod.uid, pod.key, self._facts_of(pod.uid, pod.key)) for pod in removed]

    # The end.

    def end_run(self, digest: str) -> None:
        """Record that all pods are decided. digest: of the outcome; the last one counts."""
        mark = RunMark(FINISHED, digest)
        self._perform_durably(self.journal.describe(mark, RecordKind.RUN))

    def end(self) -> None:
        """Write the end of the journal and release it: nothing is committed any more."""
        self.journal.end()

    def close(self) -> None:
        """Release the journal as it is."""
        self.journal.close()

    def _uncounted_pods(self) -> list[PodFacts]:
        """Return the bound pods whose nodes are unknown; no row of the table has them."""
        return self.core.placements.uncounted_pods()

    # Verification.

    def _verify(self, request: BindRequest) -> Status:
        return self._verify_with(request, self.volumes.commit)

    def _dry_run(self, request: BindRequest) -> Status:
        return self._verify_with(request, self.volumes.try_out)

    def _verify_with(
        self, request: BindRequest, bind_claims: Callable[[str, PodFacts, NodeFacts], Status]
    ) -> Status:
        """Run all hard filters, then `bind_claims`, which binds the pod's claims."""
        status = self.verifier.verify(request.facts, request.node_name)
        if not status.is_success or not request.facts.may_bind_claims:
            return status
        node = self.core.placements.nodes[request.node_name]
        return bind_claims(request.token, request.facts, node)

    def _verify_prefix(self, requests: Sequence[BindRequest]) -> int:
        """Verify requests in one batch; return how many of the first ones pass.

        It may return fewer: the core verifies the others one by one.
        """
        # Claims of volumes are bound pod by pod, so the batch check ends at the first of these.
        requests = list(takewhile(lambda each: not each.facts.volumes, requests))
        if not requests:
            return 0

        def bind_claims(index: int) -> bool:
            request = requests[index]
            node = self.core.placements.nodes[request.node_name]
            return self.volumes.commit(request.token, request.facts, node).is_success

        facts, nodes = [r.facts for r in requests], [r.node_name for r in requests]
        if any(each.device_claims for each in facts):
            return self.verifier.verify_prefix(facts, nodes, bind_claims)
        return self.verifier.verify_prefix(facts, nodes)

    # Commands of the core.

    def _perform_durably(self, commands: Sequence[BinderCommand]) -> None:
        """Perform commands; BinderHaltedError if the journal fails, for nothing is durable."""
        self._perform(commands)
        if self.core.halted is not None:
            raise BinderHaltedError(f"binder: halted: {self.core.halted.reason}")

    def _perform(self, commands: Sequence[BinderCommand]) -> dict[str, CommitResult]:
        """Perform commands and those that follow from them; return the results by token."""
        results: dict[str, CommitResult] = {}
        bound = self.outcomes.bound
        waiting = deque(commands)
        while waiting:
            command = waiting.popleft()
            if isinstance(command, Acknowledge):
                token, _, result = command
                results[token] = result
                if isinstance(result, Bound):
                    uid, node_name, _, _ = result
                    # A repeated token gets its first answer, even if its pod was deleted since.
                    if uid not in bound and self.core.is_bound_by(uid, token):
                        self.commits.note(uid)
                        bound[uid] = node_name
            elif isinstance(command, AppendJournal):
                waiting += self._write(command)
            elif isinstance(command, Released):
                if command.evicted:
                    self.pod_revisions.apply_unsent_removal(command.uid)
                self.outcomes.released(command)
        return results

    def _write(self, command: AppendJournal) -> list[BinderCommand]:
        try:
            self.journal.write(command.records)
        except Exception as failure:
            # On any error: accepted binds that are not in the journal must not be acknowledged.
            if not isinstance(failure, JournalError):
                fields = {"error": type(failure).__name__, "text": str(failure)}
                _log.info("journal failed", extra={"fields": fields})
            return self.core.flush_failed(str(failure) or type(failure).__name__)
        return self.core.flushed(command.last_lsn)

    # Pods.

    def _state(self, uid: str) -> BinderState:
        return self.core.pod_status(uid)[0]

    def _node_of(self, uid: str) -> str | None:
        state, node_name = self.core.pod_status(uid)
        return "" if state is BinderState.PENDING else node_name

    def _deleted_of(self, uids: Iterable[str]) -> list[KeyedPod]:
        deleted = (uid for uid in uids if self._state(uid) is BinderState.DELETED)
        return [(uid, *self.core.pod(uid)) for uid in deleted]

    def _facts_of(self, uid: str, key: str) -> PodFacts:
        if self._state(uid) is BinderState.UNKNOWN:
            return PodFacts(namespace=key.partition("/")[0])
        return self.core.pod(uid)[1]
