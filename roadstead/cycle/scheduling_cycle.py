"""SchedulingCycle: chooses the pods of a batch, the state they are decided on, and the batch's end.

    next: scope, pods ──► catch up ──► delay ──► prepare ──► decide ──► decisions
                            ▲                    ▲            │
                            │                    └────────────┤ preempted, or nominated and placed
                            └── stale, and a pod fits nowhere ┘

The cycle does no I/O and reads no clock: `decide` is a generator that yields requests (`needs.py`),
which a driver answers. Between `hold` and `release` only its own decisions change the table. The
delay is the simulated latency of a job (the pods of one gang or controller). A scope is all nodes,
or with partitions the scheduler's own. To catch up, the table applies all changes of the cache so
far; its state then is a *reading* for a scope, fresh for the batch that it was made for, stale for
later ones. A chain is batches that are decided one after another before their messages are sent.

Upstream: pkg/scheduler/schedule_one.go (schedulingCycle), for a batch of pods in place of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Protocol, TypeAlias, TypeVar

from roadstead.config.settings import Settings
from roadstead.cycle.batch import Batch, Decision, PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.chain import Chain
from roadstead.cycle.continuing_batch import ContinuingBatch
from roadstead.cycle.extender_preemption import call_extenders
from roadstead.cycle.gangs import fails_gang
from roadstead.cycle.jobs import SimulatedLatency, pods_of_first_job
from roadstead.cycle.needs import (
    ApplyWaiting,
    CatchUp,
    ListBest,
    NeedGenerator,
    Phase,
    ReadClock,
    ScoreClasses,
    WaitUntil,
    YieldToMessages,
    kernel_for_batch,
    request_lists,
    run_with_extenders,
    time_after,
)
from roadstead.cycle.node_search import NodeSearch, PendingSearch
from roadstead.cycle.partitions import Partition
from roadstead.cycle.preempting import dry_run_to_make, post_filter_result
from roadstead.cycle.scopes import Scope
from roadstead.cycle.tentative import Tentative
from roadstead.extenders.sequence import Extenders
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.nodes.table import NodeTable

ResultT = TypeVar("ResultT")
"""What steps on a held table return."""

DECISIONS_PER_PAUSE = 128
"""Number of decisions after which the cycle pauses, so that this process can answer messages. One
call of the kernel makes at most as many."""

Decided: TypeAlias = tuple[list[Decision], int]
"""Decisions for the first pods of a batch, and how many pods were decided or passed on."""

LimitBatch: TypeAlias = Callable[[BatchBuilder, Sequence[PodInCycle]], Sequence[PodInCycle]]
"""Returns the first pods of a batch: fewer if workers score or list their classes, because the
workers' results for a row are out of date once a pod is placed on it."""


class LockedTable(Protocol):
    """The node table of one scheduler. tentative: placements that the cache has not confirmed."""

    table: NodeTable
    tentative: Tentative

    def hold(self) -> None:
        """Delay changes of the cluster until `release`."""

    def release(self) -> None:
        """End the delay that `hold` began."""

    def row_versions(self, decisions: Sequence[Decision]) -> dict[str, int] | None:
        """Return the versions of the chosen rows; None if versions are not compared."""


@dataclass(frozen=True, slots=True)
class CycleParts:
    """The parts of a scheduling cycle.

    partition: the scheduler's own nodes, which it tries first. limit_batch: with workers that score
    or list for batches, else None.
    """

    nodes: LockedTable
    settings: Settings
    profiles: Mapping[str, Profile]
    node_search: NodeSearch | None = None
    partition: Partition | None = None
    limit_batch: LimitBatch | None = None


class SchedulingCycle:
    """Decide the batches of one scheduler.

    passed_on: number of pods so far without a feasible node in the scheduler's own partitions.
    _own_nodes, _all_nodes: the scopes; one and the same without partitions.
    """

    def __init__(self, parts: CycleParts, latency: SimulatedLatency) -> None:
        settings, profiles, partition = parts.settings, parts.profiles, parts.partition
        self._parts, self._nodes, self._partition = parts, parts.nodes, partition
        self._staleness_s = settings.staleness_s
        self._latency = latency
        # One list of waiting pods, shared by all profiles.
        self._waiting_for_permit = next(iter(profiles.values())).waiting
        self._tie_break = TieBreak(settings.tie_break, settings.seed)
        self._own_nodes = self._all_nodes = Scope(self._new_builder(profiles))
        if partition is not None:
            limited = {name: each.with_filter(partition.nodes) for name, each in profiles.items()}
            self._own_nodes = Scope(self._new_builder(limited), is_own=True)
        self.passed_on = 0

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """All scopes: the one of all nodes, and the one of own nodes if there is a partition."""
        return tuple({id(each): each for each in (self._all_nodes, self._own_nodes)}.values())

    def _new_builder(self, profiles: Mapping[str, Profile]) -> BatchBuilder:
        settings = self._parts.settings
        # One builder for batches on own nodes, another one for batches on all nodes.
        scopes = 2 if settings.concurrency == "partitioned" else 1
        return BatchBuilder(
            self._nodes.table,
            profiles,
            self._tie_break,
            node_search=self._parts.node_search,
            memory_sharers=scopes * settings.scheduler_count,
            allocates_devices=True,
        )

    def drop(self) -> None:
        """Read the state again before the next batch, because a decision on it failed."""
        for each in self.scopes:
            each.drop()

    def next(self, undecided: Sequence[PodInCycle]) -> tuple[Scope, Sequence[PodInCycle]]:
        """Return the scope and pods of the next batch."""
        scope = self._scope_of(undecided[0])
        pods = scope.builder.next_batch(self.in_scope(scope, undecided))
        if self._parts.limit_batch is not None:
            pods = self._parts.limit_batch(scope.builder, pods)
        return scope, pods_of_first_job(pods) if self._latency.is_on else pods

    def in_scope(self, scope: Scope, pods: Sequence[PodInCycle]) -> Sequence[PodInCycle]:
        """Return the pods that are decided on a scope."""
        if self._partition is None:
            return pods
        return [pod for pod in pods if self._scope_of(pod) is scope]

    def _scope_of(self, pod: PodInCycle) -> Scope:
        partition = self._partition
        if (
            partition is None
            or not partition.tries_own_nodes_first(pod)
            or self._own_nodes.builder.searches_nodes(pod)
        ):
            return self._all_nodes
        return self._own_nodes

    def pods_of_chain(
        self, scope: Scope, pods: Sequence[PodInCycle], undecided: Sequence[PodInCycle]
    ) -> Sequence[PodInCycle]:
        """Return the pods of a batch and the undecided ones that its chain may decide next."""
        if self._latency.is_on:
            return pods
        in_scope = self.in_scope(scope, undecided)
        if self._parts.limit_batch is None:
            return in_scope
        # A chain requests no scores: it continues only with pods that workers do not score, which
        # are those that are tried on their nominated nodes first.
        behind = takewhile(
            lambda pod: pod.pod_class.facts.nominated_node_name, in_scope[len(pods) :]
        )
        return [*pods, *behind]

    def decide(
        self,
        scope: Scope,
        pods: Sequence[PodInCycle],
        now_s: float,
        chain_pods: Sequence[PodInCycle] = (),
    ) -> NeedGenerator[Decided]:
        """Return decisions for the first pods, and how many pods were decided or passed on.

        As many pods as possible, at least one, are decided on one reading of the state. Pods that
        are passed on to all nodes have no decision. chain_pods: the pods and those behind them, see
        `Chain`.
        """
        wait_s = self._latency.wait_s(pods)
        if wait_s and self._parts.settings.concurrency == "exact":
            # In mode exact no other scheduler changes the state: it is read after the latency.
            now_s = yield from time_after(WaitUntil(now_s + wait_s))
            wait_s = 0.0
        is_fresh = not scope.is_reusable(now_s, self._staleness_s)
        if is_fresh:
            now_s = yield from self._read(scope, now_s)
        if wait_s:
            now_s = yield from time_after(WaitUntil(now_s + wait_s))
            if scope.is_older(now_s, self._staleness_s):
                is_fresh = True
                now_s = yield from self._read(scope, now_s)
        chain = yield from self._decide_on_reading(scope, pods, chain_pods, is_fresh=is_fresh)
        # A pod that fits nowhere on an old reading is decided again on a new one.
        if not is_fresh and not chain.processed:
            now_s = yield from time_after(ReadClock())
            yield from self._read(scope, now_s)
            chain = yield from self._decide_on_reading(scope, pods, chain_pods, is_fresh=True)
        return chain.decisions, chain.processed

    def _read(self, scope: Scope, began_s: float) -> NeedGenerator[float]:
        now_s = yield from time_after(CatchUp())
        scope.read(began_s)
        return now_s

    def _decide_on_reading(
        self,
        scope: Scope,
        pods: Sequence[PodInCycle],
        chain_pods: Sequence[PodInCycle],
        *,
        is_fresh: bool,
    ) -> NeedGenerator[Chain]:
        """Decide a chain on the state that was read for a scope.

        is_fresh: it was read for this batch; only then may a pod be rejected.
        """
        yield Phase("evaluate")
        scope.builder.compiled_kernel = yield from kernel_for_batch(len(pods))
        if self._parts.limit_batch is not None:
            yield from time_after(ScoreClasses(scope, pods))
            if is_fresh and not self._latency.is_on:
                # Attempts may have ended while workers answered.
                yield from time_after(CatchUp(is_again=True))
        chain = Chain(scope.builder, self._nodes.tentative, pods, chain_pods)
        yield from with_locked_table(
            self._nodes, self._decide_chain(scope, chain, is_fresh=is_fresh)
        )
        return chain

    def _decide_chain(self, scope: Scope, chain: Chain, *, is_fresh: bool) -> NeedGenerator[None]:
        # Workers do not know which nodes are a scheduler's own.
        uses_lists = self._parts.limit_batch is not None and not scope.is_own
        while pods := chain.pods:
            decide = partial(self._decide_pods, scope, pods, is_fresh=is_fresh, chain=chain)
            steps = decide_batch(self._nodes, scope.builder, pods, decide, uses_lists=uses_lists)
            chain.record_batch(*(yield from steps))
            if chain.pods:
                chain.pause((yield from time_after(YieldToMessages())))
        # Each attempt sends the version of its row to the binder, which compares it.
        if (versions := self._nodes.row_versions(chain.decisions)) is not None:
            scope.builder.row_versions = versions

    def _decide_pods(
        self,
        scope: Scope,
        pods: Sequence[PodInCycle],
        batch: Batch,
        *,
        is_fresh: bool,
        chain: Chain,
    ) -> NeedGenerator[Decided]:
        yield Phase("decide")
        batch.has_unassumed = chain.has_placed
        decisions: list[Decision] = []
        index = paused = 0
        while index < len(pods):
            next_pods = pods[index : index + DECISIONS_PER_PAUSE]
            if decided := batch.decide_by_kernel(next_pods):
                decisions += decided
                index += len(decided)
                # A pod with a substitute is decided alone (device claims): no pause after each.
                if decided[0].pod.substitute is None or index - paused >= DECISIONS_PER_PAUSE:
                    paused = index
                    yield from time_after(YieldToMessages())
                continue
            decision = batch.decide(next_pods[0])
            # No pod is rejected on a reading of an earlier batch: `decide` reads the state again.
            # After None, the pod may need the assumptions of those before it, so a new reading.
            if decision is None or not (is_fresh or decision.node_name):
                scope.drop()
                break
            index += 1
            if self._passes_on(scope, decision):
                continue
            profile = self._parts.profiles[decision.pod.pod_class.facts.scheduler_name]
            decision, changes_state = yield from after_failure(
                decision, profile, self._tie_break, batch, scope.builder.extenders
            )
            decisions.append(decision)
            if changes_state or fails_gang(decision, decisions, self._waiting_for_permit):
                # Its evictions, a claim without allocation, or the end of its gang change the state
                # for the next pod.
                scope.drop()
                break
            if index % DECISIONS_PER_PAUSE == 0:
                now_s = yield from time_after(YieldToMessages())
                if scope.is_older(now_s, self._staleness_s):
                    break
        yield Phase("")
        return decisions, index

    def _passes_on(self, scope: Scope, decision: Decision) -> bool:
        """Whether a pod without a feasible own node is passed on to all nodes; records it."""
        if self._partition is None or not scope.is_own or decision.diagnosis is None:
            return False
        self._partition.pass_on(decision.pod)
        self.passed_on += 1
        return True


def with_locked_table(nodes: LockedTable, steps: NeedGenerator[ResultT]) -> NeedGenerator[ResultT]:
    """Return the result of steps; no change of the cluster is applied to the table meanwhile."""
    nodes.hold()
    try:
        result = yield from steps
    finally:
        nodes.release()
    yield from time_after(ApplyWaiting())
    return result


def decide_batch(
    nodes: LockedTable,
    builder: BatchBuilder,
    pods: Sequence[PodInCycle],
    decide: Callable[[Batch], NeedGenerator[Decided]],
    *,
    uses_lists: bool = False,
) -> NeedGenerator[Decided]:
    """Build and decide one batch on a held table; `decide` decides its pods.

    uses_lists: request workers' lists of the best rows, where they may help.
    """
    nodes.tentative.remove_from_table(pods)
    batch = builder.begin(pods)
    if isinstance(batch, PendingSearch):
        batch = builder.searched(
            (yield from run_with_extenders(batch.node_search.extenders, batch.run))
        )
    elif uses_lists and isinstance(batch, ContinuingBatch):
        yield from _request_lists(batch, pods)
    decisions, processed = yield from decide(batch)
    batch.flush()
    nodes.tentative.record_decisions(decisions)
    return decisions, processed


def _request_lists(batch: ContinuingBatch, pods: Sequence[PodInCycle]) -> NeedGenerator[None]:
    """Request workers' lists of the best rows for new classes of which the batch has one pod."""
    if new := batch.unlisted(pods):
        best = yield from request_lists(ListBest(new, batch.tie_break_hashes(new)))
        if best is not None:
            batch.use_lists(best, len(pods))


def after_failure(
    decision: Decision,
    profile: Profile,
    tie_break: TieBreak,
    batch: Batch,
    extenders: Extenders | None,
) -> NeedGenerator[tuple[Decision, bool]]:
    """Return a decision with PostFilter's result, and whether that changes the cluster's state.

    A preemption may change it, and the deallocation of a claim changes it. If no plugin wants a dry
    run, and the pod has no claims of devices, PostFilter runs later, when the failed attempt is
    reported (`roadstead.attempts.attempt_results`).
    """
    pod, diagnosis = decision.pod, decision.diagnosis
    if diagnosis is None:
        return decision, False
    request = dry_run_to_make(profile, pod, diagnosis, tie_break)
    if request is None:
        if not pod.pod_class.facts.device_claims:
            return decision, False
        # Now, because later pods of the batch may allocate the devices that PostFilter looks for.
        result = post_filter_result(profile, pod, diagnosis, tie_break)
        return decision._replace(post_filter=result), bool(result.deallocated)
    tried = batch.dry_run(pod, request)
    # With sampling alone, `extenders` has none.
    if extenders is not None and extenders.preempts(pod.pod_class.facts):
        tried = yield from run_with_extenders(
            extenders, partial(call_extenders, extenders, pod, tried)
        )
    result = post_filter_result(profile, pod, diagnosis, tie_break, tried)
    return decision._replace(post_filter=result), True
