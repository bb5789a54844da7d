"""Commands of AttemptsCore to its caller, and the Outbox that puts them in order of execution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from roadstead.attempts.pods import Attempt, AttemptRecord
from roadstead.cycle.batch import PodInCycle
from roadstead.facts.pod import PodFacts
from roadstead.framework.victims import Victim


class RequeueCause(StrEnum):
    """Reason that a pod returns to the queue; values as in `roadstead.queue.RequeueReason`."""

    CONFLICT = "conflict"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class ReportKind(StrEnum):
    """Subject of a message to the user.

    UNSCHEDULABLE: the pod was rejected. FAILED: the attempt ended with an error, and the pod is
    retried. WARNING: a plugin failed without consequences for the pod (Unreserve, PostBind).
    """

    UNSCHEDULABLE = "unschedulable"
    FAILED = "failed"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class RequeueItem:
    """A pod that returns to the queue. pending: the rejecting plugins that returned Pending.

    nominated_node: None leaves the pod's nomination as it is, "" clears it. preempts: pods are
    evicted from the nominated node for this pod.
    """

    uid: str
    reason: RequeueCause
    rejected_by: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    message: str = ""
    nominated_node: str | None = None
    preempts: bool = False


@dataclass(frozen=True, slots=True)
class PodReport:
    """A message to the user about a pod.

    key: namespace/name. reasons: sorted (reason, number of nodes). nominated_node: None leaves the
    pod's nomination as it is, "" clears it.
    """

    uid: str
    key: str
    kind: ReportKind
    message: str
    reasons: tuple[tuple[str, int], ...] = ()
    plugins: tuple[str, ...] = ()
    nominated_node: str | None = None


@dataclass(frozen=True, slots=True)
class Forget:
    """Command: the cache forgets these attempts, whether or not it counts them."""

    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class Assume:
    """Command: the cache assumes these attempts; its answer goes to `assumed`."""

    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class RetryBind:
    """Command: send these bind requests again; the answers go to `bind_answered`.

    The binder repeats its answer for a known token, and decides a request that was lost. A query
    without a bind would not suffice: after "not bound yet" the first request may still arrive.
    """

    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class FinishBinding:
    """Command: report to the cache that the binder is about to receive these attempts.

    It gives each assumption a new deadline, after which its outcome is requested.
    """

    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Command: request the commit of these attempts; the answers go to `bind_answered`."""

    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class Confirm:
    """Command: report to the cache that these attempts are bound."""

    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class Nomination:
    """A pod's new nominated node; "" ends its nomination. victims: pods to be evicted for it.

    key: namespace/name of the pod. preempting_plugin: the plugin that chose the victims.
    deallocates: key of a claim of devices that loses its allocation for the pod, or "".
    """

    uid: str
    key: str
    facts: PodFacts
    node_name: str
    victims: tuple[Victim, ...] = ()
    preempting_plugin: str = ""
    deallocates: str = ""


@dataclass(frozen=True, slots=True)
class Nominate:
    """Command: evict the victims, then nominate at the cache.

    It precedes RequeuePods for the same pods: none is tried again before its victims are evicted.
    """

    nominations: tuple[Nomination, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """Command: report to the queue that these pods of a lease are bound."""

    lease_id: int
    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequeuePods:
    """Command: return pods of a lease to the queue."""

    lease_id: int
    items: tuple[RequeueItem, ...]


@dataclass(frozen=True, slots=True)
class SendReports:
    """Command: send messages to the user."""

    reports: tuple[PodReport, ...]


Command = (
    Forget
    | Assume
    | RetryBind
    | FinishBinding
    | Bind
    | Confirm
    | Nominate
    | Done
    | RequeuePods
    | SendReports
)


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The result of an attempt that ended without a bind.

    reason: why the pod returns to the queue; None if it does not. reasons: sorted (reason, number
    of nodes). plugins: those that rejected it; pending: those of them that returned Pending.
    is_bound_elsewhere: another attempt bound it. victims: pods that preemption evicts from the
    nominated node. preempting_plugin: the plugin that chose them. deallocates: as in `Nomination`.
    """

    reason: RequeueCause | None = None
    message: str = ""
    reasons: tuple[tuple[str, int], ...] = ()
    plugins: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    nominated_node: str | None = None
    is_bound_elsewhere: bool = False
    victims: tuple[Victim, ...] = ()
    preempting_plugin: str = ""
    deallocates: str = ""

    def report(self, pod: PodInCycle) -> PodReport:
        """Return the message to the user about the pod."""
        is_failed = self.reason is RequeueCause.ERROR
        kind = ReportKind.FAILED if is_failed else ReportKind.UNSCHEDULABLE
        return PodReport(
            pod.uid, pod.key, kind, self.message, self.reasons, self.plugins, self.nominated_node
        )


@dataclass(slots=True)
class Outbox:
    """Collect the commands of one call, one per type (and lease), in the order of execution.

    Forget and Nominate, with its evictions, come first: later commands use the space that these
    free, and no pod may return to the queue before them.
    """

    forget: list[Attempt] = field(default_factory=list)
    assume: list[Attempt] = field(default_factory=list)
    retry_bind: list[Attempt] = field(default_factory=list)
    bind: list[Attempt] = field(default_factory=list)
    confirm: list[Attempt] = field(default_factory=list)
    done: dict[int, list[str]] = field(default_factory=dict)
    nominate: list[Nomination] = field(default_factory=list)
    requeue: dict[int, list[RequeueItem]] = field(default_factory=dict)
    reports: list[PodReport] = field(default_factory=list)

    def add_result(self, record: AttemptRecord, result: AttemptResult) -> None:
        """Add the commands for a pod whose attempt ended without a bind."""
        uid, reason = record.uid, result.reason
        if result.is_bound_elsewhere:
            self.add_done([record])
        if reason is None:
            return
        rejected_by = result.plugins if reason is RequeueCause.UNSCHEDULABLE else ()
        if result.deallocates:
            # The devices of the claim are free now: the pod is tried again after its backoff.
            rejected_by = ()
        item = RequeueItem(
            uid,
            reason,
            rejected_by,
            result.pending,
            result.message,
            nominated_node=result.nominated_node,
            preempts=bool(result.victims),
        )
        self._nominate(record, result)
        self.requeue.setdefault(record.lease_id, []).append(item)
        if reason is not RequeueCause.CONFLICT:
            self.reports.append(result.report(record.pod))

    def _nominate(self, record: AttemptRecord, result: AttemptResult) -> None:
        pod, node_name = record.pod, result.nominated_node
        is_cleared = node_name == "" and bool(pod.pod_class.facts.nominated_node_name)
        if node_name or is_cleared or result.deallocates:
            self.nominate.append(
                Nomination(
                    pod.uid,
                    pod.key,
                    pod.pod_class.facts,
                    node_name or "",
                    result.victims,
                    result.preempting_plugin,
                    result.deallocates,
                )
            )

    def add_done(self, records: Iterable[AttemptRecord]) -> None:
        """Add Done for bound pods, which leave the queue."""
        for record in records:
            self.done.setdefault(record.lease_id, []).append(record.uid)

    def warn(self, record: AttemptRecord, texts: Iterable[str]) -> None:
        """Add warnings about plugins whose failure has no consequences for the pod."""
        uid, key = record.uid, record.pod.key
        self.reports += [PodReport(uid, key, ReportKind.WARNING, text) for text in texts]

    def commands(self) -> list[Command]:
        """Return the commands in the order of execution."""
        found: list[Command] = []
        if self.forget:
            found.append(Forget(tuple(self.forget)))
        if self.nominate:
            found.append(Nominate(tuple(self.nominate)))
        if self.assume:
            found.append(Assume(tuple(self.assume)))
        if self.retry_bind:
            found.append(RetryBind(tuple(self.retry_bind)))
        if self.bind:
            found += [FinishBinding(tuple(self.bind)), Bind(tuple(self.bind))]
        if self.confirm:
            found.append(Confirm(tuple(self.confirm)))
        found += [Done(lease_id, tuple(uids)) for lease_id, uids in self.done.items()]
        found += [RequeuePods(lease_id, tuple(items)) for lease_id, items in self.requeue.items()]
        if self.reports:
            found.append(SendReports(tuple(self.reports)))
        return found
