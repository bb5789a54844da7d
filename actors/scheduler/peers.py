"""Peers: sends the requests of a scheduler to queue, cache and binder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TypeVar

from roadstead.actors.interface import (
    SENDS,
    ActorLostError,
    DeadlineError,
    Directory,
    Method,
    ResendingRef,
)
from roadstead.actors.messages import (
    ASSUME,
    BIND,
    EVICT,
    LEASE,
    NOMINATE,
    RENEW,
    REPORT,
    UPDATE_ASSUMPTIONS,
    AssumeBatch,
    BindBatch,
    Evict,
    LeaseReport,
    LeaseRequest,
    NominateBatch,
    PodList,
    Renew,
    UpdateAssumptions,
    pod_list,
    pod_list_of_columns,
)
from roadstead.actors.names import BINDER, CACHE, QUEUE
from roadstead.attempts.pods import Attempt
from roadstead.binder.answers import BindAnswers
from roadstead.cache.answers import CacheAnswer
from roadstead.facts.pod import Pod, identity_of
from roadstead.scheduler.needs import (
    AssumePods,
    BindPods,
    EvictPods,
    LeasedPods,
    Need,
    NominatePods,
    RenewLeases,
    ReportPods,
    RequestLease,
    UpdateAttempts,
)

Q = TypeVar("Q")
A = TypeVar("A")

LEASE_WAIT_S = 0.5
"""How long the queue waits for the first pod of a lease."""


class Peers:
    """Messages of one scheduler to queue, cache and binder.

    spent_s: seconds by phase. _losses: calls in a row that found an actor lost (`_call_once`).
    """

    def __init__(self, owner: str, epoch: int, directory: Directory, call_s: float) -> None:
        self.spent_s: dict[str, float] = {}
        self._owner, self._epoch = owner, epoch
        self._directory, self._call_s = directory, call_s
        self._refs: dict[str, ResendingRef] = {}
        self._losses = 0

    async def handle(self, need: Need) -> object:
        """Return the answer to a request, except a bind."""
        match need:
            case RequestLease():
                return await self._lease(need)
            case RenewLeases(lease_ids):
                return (await self._call(QUEUE, RENEW, Renew(lease_ids))).lease_ids
            case ReportPods():
                await self._report(need)
                return None
            case AssumePods():
                return await self._assume(need)
            case UpdateAttempts(forget, finish, confirm, rows, known_changes):
                message = UpdateAssumptions(forget, finish, confirm, known_changes, rows)
                return await self._call(CACHE, UPDATE_ASSUMPTIONS, message)
            case NominatePods():
                return await self._nominate(need)
            case EvictPods():
                return await self._evict(need)
        raise AssertionError(f"{type(need).__name__} is not for queue, cache or binder")

    async def bind(self, need: BindPods, number: int) -> BindAnswers | None:
        """Send a batch and return the binder's answer; None if there is none in time.

        number: of the batch among those of this scheduler, in the order of sending.
        """
        started = time.perf_counter()
        attempts = need.attempts
        batch = BindBatch(
            *(self._owner, self._epoch, _pods(attempts)),
            tuple(a.node_name for a in attempts),
            tuple(a.token for a in attempts),
            volumes=need.volumes,
            read_versions=need.read_versions,
            transactions=need.transactions,
            number=number,
        )
        answer = await self._call_once(BINDER, BIND, batch, self._call_s)
        if answer is not None:
            self.add_time("bind", started)
        return answer

    def add_time(self, phase: str, started: float) -> None:
        self.spent_s[phase] = self.spent_s.get(phase, 0.0) + time.perf_counter() - started

    async def _lease(self, need: RequestLease) -> LeasedPods | None:
        started = time.perf_counter()
        request = LeaseRequest(
            self._owner,
            self._epoch,
            need.max_pods,
            wait_s=LEASE_WAIT_S,
            profile=need.profile,
            gangs=need.gangs,
        )
        timeout_s = self._call_s + LEASE_WAIT_S
        leased = await self._call_once(QUEUE, LEASE, request, timeout_s)
        if leased is None:
            return None
        self.add_time("lease", started)
        return LeasedPods(
            leased.lease_id,
            tuple(leased.pods.keyed()),
            lease_counts=leased.lease_counts,
            tie_break_numbers=leased.tie_break_numbers,
            waiting=leased.waiting,
            turn=leased.turn,
            gangs=leased.gangs,
        )

    async def _report(self, need: ReportPods) -> None:
        started = time.perf_counter()
        evicted = pod_list(need.evicted)
        report = LeaseReport(
            need.lease_id, need.bound, need.returned, need.pending_reasons, evicted
        )
        await self._call(QUEUE, REPORT, report)
        self.add_time("report", started)

    async def _assume(self, need: AssumePods) -> CacheAnswer:
        started = time.perf_counter()
        batch = AssumeBatch(
            _pods(need.attempts),
            tuple(a.node_name for a in need.attempts),
            tuple(a.token for a in need.attempts),
            known_changes=need.known_changes,
            bind_next=need.bind_next,
        )
        answer = await self._call(CACHE, ASSUME, batch)
        self.add_time("assume", started)
        return answer

    async def _nominate(self, need: NominatePods) -> CacheAnswer:
        started = time.perf_counter()
        message = NominateBatch(
            pod_list((identity_of(each.uid, each.key), each.facts) for each in need.nominations),
            tuple(each.node_name for each in need.nominations),
            preempts=tuple(bool(each.victims) for each in need.nominations),
            evicted=need.evicted,
            known_changes=need.known_changes,
            # Claims of devices, in place of victims: (key, UID of the pod).
            deallocated=tuple((n.deallocates, n.uid) for n in need.nominations if n.deallocates),
        )
        answer = await self._call(CACHE, NOMINATE, message)
        self.add_time("preempt", started)
        return answer

    async def _evict(self, need: EvictPods) -> list[Pod]:
        started = time.perf_counter()
        answer = await self._call(BINDER, EVICT, Evict(need.uids, need.preemptors, need.claims))
        self.add_time("preempt", started)
        return list(answer.pods.pods())

    async def _call_once(
        self, name: str, method: Method[Q, A], message: Q, timeout_s: float
    ) -> A | None:
        """Return the answer; None after a failure, since the actor may be about to be replaced.

        Raises ActorLostError if `SENDS` calls found an actor lost and none was answered meanwhile.
        """
        try:
            answer = await self._ref(name).ref.call(method, message, timeout_s=timeout_s)
        except (DeadlineError, ActorLostError) as failure:
            self._losses += isinstance(failure, ActorLostError)
            if self._losses >= SENDS:
                raise
            return None
        self._losses = 0
        return answer

    async def _call(self, name: str, method: Method[Q, A], message: Q) -> A:
        return await self._ref(name).call(method, message, timeout_s=self._call_s)

    def _ref(self, name: str) -> ResendingRef:
        ref = self._refs.get(name)
        if ref is None:
            ref = self._refs[name] = ResendingRef(self._directory.find(name))
        return ref


def _pods(attempts: Sequence[Attempt]) -> PodList:
    uids, keys = [each.uid for each in attempts], [each.key for each in attempts]
    return pod_list_of_columns(uids, keys, [each.facts for each in attempts])
