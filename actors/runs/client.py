"""Client: sends a run's inputs to its actors, follows its progress, and collects its outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from roadstead.actors.interface import NOTHING, A, Method, Q, ResendingRef, RunFailedError, clock_s
from roadstead.actors.messages import (
    ADD_NODES,
    ADD_PENDING,
    ADD_RUNNING,
    BOUND,
    CLAIMS,
    END_RUN,
    NOMINATE,
    PENDING,
    PREEMPTED,
    QUEUE_STATE,
    RUN,
    STORE_OUTCOME,
    SUBMIT,
    NominateBatch,
    OutcomePart,
    PageRequest,
    PodList,
    QueueStatus,
    RunEnded,
    RunningPods,
    node_batch,
    pod_list,
)
from roadstead.actors.messages.recovery import (
    BOUND_BEFORE,
    BOUND_MEMBERS,
    EVICTED_PODS,
    LOAD_STORAGE,
    POD_NODES,
    STORAGE_LOG,
    BoundBefore,
    Uids,
)
from roadstead.actors.names import BINDER, CACHE, QUEUE, scheduler_name
from roadstead.actors.runs.outcomes import encode_outcome
from roadstead.actors.runs.scores import with_scores
from roadstead.actors.runs.session import (
    NODES_PER_MESSAGE,
    PODS_PER_MESSAGE,
    check_accepted,
    is_idle,
)
from roadstead.actors.scheduler.concurrency_report import concurrency_of
from roadstead.actors.supervisor.replacing import in_gangs
from roadstead.actors.supervisor.supervisor import Supervisor
from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.pod import Pod
from roadstead.report.devices import claimed_devices
from roadstead.report.result import ClaimedDevice, PendingPod, PlacedPod, PreemptedPod
from roadstead.run import Progress, RunInputs, RunOutcome, RunPlan

T = TypeVar("T")
"""Type of the objects in a list."""

OUTCOME_PART_BYTES = 4 << 20
"""Bytes of the outcome in one message."""

CLAIMS_PER_MESSAGE = 512
"""Claims of devices in one message: fewer than pods, since each may have 32 devices."""

POLL_S = 0.1
"""Interval between two progress requests."""

COLLECT_MAX = 10
"""Maximum number of attempts to collect results: a queue that was replaced needs another one."""


class Client:
    """One run, from inputs to outcome. timings_s: seconds by phase of the run."""

    def __init__(
        self, supervisor: Supervisor, plan: RunPlan, progress: Callable[[Progress], None]
    ) -> None:
        self._supervisor = supervisor
        self._plan = plan
        self._progress = progress
        self.timings_s: dict[str, float] = {}
        # Pods that were bound before the run was resumed.
        self._bound_before = 0
        # How long the last `_follow` took.
        self._followed_s = 0.0

    async def run(self, inputs: RunInputs) -> RunOutcome:
        """Schedule all inputs. RunFailedError, or the error of an actor, if that fails."""
        inputs.check_identities()
        if self._plan.resume:
            inputs = await self._without_removed(inputs)
        with self._phase("load the cluster"):
            await self._load(inputs)
        started = time.perf_counter()
        with self._phase("submit pods"):
            await self._submit(inputs)
        for _ in range(COLLECT_MAX):
            with self._phase("schedule"):
                await self._follow(len(inputs.pending))
            scheduling_s = time.perf_counter() - started
            with self._phase("collect results"):
                outcome = await self._collect(inputs, scheduling_s)
                if not _missing(inputs, outcome) and is_idle(await self._queue_state()):
                    return outcome
            # The queue was replaced meanwhile: the new one still schedules pods that were due, or
            # had not received all pods when it seemed idle.
        missing = len(_missing(inputs, outcome))
        raise RunFailedError(
            f"{missing} pods are neither placed nor pending: the queue never became idle"
        )

    async def end(self, outcome: RunOutcome) -> None:
        """Let the binder write the outcome next to the journal, and then the end mark into it.

        Raises the binder's error if that cannot be made durable.
        """
        if self._plan.settings.journal is None:
            return
        data, digest = encode_outcome(outcome)
        part_bytes = min(OUTCOME_PART_BYTES, self._plan.limits.max_bytes // 2)
        # Continue at the size in the answer: a binder that replaced another may have fewer bytes.
        offset, is_stored = 0, False
        while not is_stored:
            part = data[offset : offset + part_bytes]
            is_last = offset + len(part) == len(data)
            message = OutcomePart(offset, part, is_last)
            stored = await self._call(BINDER, STORE_OUTCOME, message)
            is_stored = is_last and stored.size_bytes == len(data)
            offset = stored.size_bytes
        await self._call(BINDER, END_RUN, RunEnded(digest))

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        spent = time.perf_counter() - started
        self.timings_s[name] = self.timings_s.get(name, 0.0) + spent

    async def _call(self, name: str, method: Method[Q, A], message: Q) -> A:
        timeout_s = self._plan.settings.deadlines.call_s
        # Resend after a deadline: the actor may only be slow. The supervisor decides whether an
        # actor is lost.
        ref = ResendingRef(self._supervisor.refs[name])
        return await ref.call(method, message, timeout_s=timeout_s)

    async def _load(self, inputs: RunInputs) -> None:
        """Send nodes and running pods to the binder, then to the cache for its followers."""
        self._progress(Progress("loading the cluster"))
        for start in range(0, len(inputs.nodes), NODES_PER_MESSAGE):
            nodes = node_batch(inputs.nodes[start : start + NODES_PER_MESSAGE])
            # The binder first: a replaced cache is restored from it.
            await self._call(BINDER, ADD_NODES, nodes)
            await self._call(CACHE, ADD_NODES, nodes)
        for bound in _chunks(inputs.running):
            pods = pod_list((identity, facts) for identity, facts, _ in bound)
            running = RunningPods(pods, tuple(node for _, _, node in bound))
            await self._call(BINDER, ADD_RUNNING, running)
            await self._call(CACHE, ADD_RUNNING, running)

    async def _without_removed(self, inputs: RunInputs) -> RunInputs:
        """Return the inputs of a resumed run without pods that were evicted or deleted before.

        Also send the changes that earlier commits made to claims to the cache.
        """
        removed = set((await self._call(BINDER, EVICTED_PODS, NOTHING)).uids)
        await self._call(CACHE, LOAD_STORAGE, await self._call(BINDER, STORAGE_LOG, NOTHING))
        return RunInputs(
            inputs.nodes,
            tuple(each for each in inputs.running if each[0].uid not in removed),
            tuple(each for each in inputs.pending if each[0].uid not in removed),
        )

    async def _unbound_pods(self, pods: Sequence[Pod]) -> Sequence[Pod]:
        """Return the pods that are not bound yet; send the bound ones to cache and queue."""
        answer = await self._call(BINDER, POD_NODES, Uids(tuple(who.uid for who, _ in pods)))
        rows = list(zip(pods, answer.nodes, strict=True))
        bound = [(pod, node) for pod, node in rows if node]
        message = RunningPods(pod_list(pod for pod, _ in bound), tuple(node for _, node in bound))
        await self._call(CACHE, ADD_RUNNING, message)
        # The queue counts the bound pods of each gang; other bound pods do not concern it.
        if members := in_gangs(pod for pod, _ in bound):
            await self._call(QUEUE, BOUND_MEMBERS, pod_list(members))
        self._bound_before += len(bound)
        return [pod for pod, node in rows if node == ""]

    async def _submit(self, inputs: RunInputs) -> None:
        """Submit all pods before the first decision, in the order of the input."""
        self._progress(Progress("submitting pods", total=len(inputs.pending)))
        for part in _chunks(inputs.pending):
            batch = pod_list(part)
            await self._call(BINDER, ADD_PENDING, batch)
            if self._plan.resume:
                part = await self._unbound_pods(part)
                batch = pod_list(part)
            await self._nominate(part)
            await self._submit_batch(batch)
        if self._plan.resume:
            await self._call(QUEUE, BOUND_BEFORE, BoundBefore(self._bound_before))

    async def _nominate(self, pods: Sequence[Pod]) -> None:
        """Send the nominations in the pods' manifests to the cache, before their first decision."""
        named = [pod for pod in pods if pod[1].nominated_node_name]
        if named:
            nodes = tuple(facts.nominated_node_name for _, facts in named)
            message = NominateBatch(pod_list(named), nodes, (False,) * len(named))
            await self._call(CACHE, NOMINATE, message)

    async def _submit_batch(self, batch: PodList) -> None:
        answer = await self._call(QUEUE, SUBMIT, batch)
        check_accepted(answer, self._plan)

    async def _follow(self, total: int) -> None:
        """Start the schedulers and report progress until the queue is idle."""
        began_s = clock_s()
        for index in range(self._plan.settings.scheduler_count):
            await self._call(scheduler_name(index), RUN, NOTHING)
        while True:
            state = await self._queue_state()
            waiting = state.unschedulable + state.gated
            self._progress(Progress("scheduling", state.done, waiting, total))
            if is_idle(state):
                self._followed_s = clock_s() - began_s
                return
            await asyncio.sleep(POLL_S)

    async def _queue_state(self) -> QueueStatus:
        return await self._call(QUEUE, QUEUE_STATE, NOTHING)

    async def _collect(self, inputs: RunInputs, scheduling_s: float) -> RunOutcome:
        """Read the outcome from the actors, page by page."""
        self._progress(Progress("collecting results", total=len(inputs.pending)))
        key_of = {identity.uid: identity.key for identity, _ in inputs.pending}
        placements: list[PlacedPod] = []
        while True:
            page = await self._call(BINDER, BOUND, PageRequest(len(placements), PODS_PER_MESSAGE))
            placements += [
                PlacedPod(key_of[uid], uid, node)
                for uid, node in zip(page.uids, page.nodes, strict=True)
            ]
            if len(placements) >= page.total:
                break
        settings, refs = self._plan.settings, self._supervisor.refs
        schedulers = [refs[scheduler_name(n)] for n in range(settings.scheduler_count)]
        scored = await with_scores(placements, schedulers, settings.deadlines.call_s)
        pending = await self._pending()
        preempted = await self._preempted()
        devices = await self._devices()
        # The queue may list an evicted pod as pending: it may not have received the report yet.
        removed = {each.uid for each in preempted}
        last_status = self._supervisor.statuses.last_of
        statuses = {name: await last_status(name) for name in self._supervisor.refs}
        for name, status in statuses.items():
            self.timings_s |= {f"{name}: {what}": spent for what, spent in status.timings_s}
        replaced: dict[str, float] = {}
        for each in self._supervisor.restarts:
            phase = f"replace {', '.join(each.gone)}"
            replaced[phase] = replaced.get(phase, 0.0) + each.took_s
        self.timings_s |= replaced
        return RunOutcome(
            scored,
            pending=tuple(each for each in pending if each.uid not in removed),
            scheduling_s=scheduling_s,
            timings_s=self.timings_s,
            preempted=preempted,
            devices=devices,
            concurrency=concurrency_of(self._plan.settings, statuses, self._followed_s),
            ray_nodes=self._supervisor.ray_nodes(),
        )

    async def _pending(self) -> list[PendingPod]:
        pending: list[PendingPod] = []
        while True:
            page = await self._call(QUEUE, PENDING, PageRequest(len(pending), PODS_PER_MESSAGE))
            pending += [
                PendingPod(each.key, each.uid, each.message, each.reasons, each.plugins)
                for each in page.pending_reasons
            ]
            if len(pending) >= page.total:
                return pending

    async def _preempted(self) -> tuple[PreemptedPod, ...]:
        preempted: list[PreemptedPod] = []
        while True:
            page = await self._call(
                BINDER, PREEMPTED, PageRequest(len(preempted), PODS_PER_MESSAGE)
            )
            preempted += [
                PreemptedPod(each.key, each.uid, each.node_name, each.preemptor)
                for each in page.pods
            ]
            if len(preempted) >= page.total:
                return tuple(preempted)

    async def _devices(self) -> tuple[ClaimedDevice, ...]:
        claims: list[DeviceClaimFacts] = []
        while True:
            page = await self._call(BINDER, CLAIMS, PageRequest(len(claims), CLAIMS_PER_MESSAGE))
            claims += page.claims
            if len(claims) >= page.total:
                return claimed_devices(claims)


def _missing(inputs: RunInputs, outcome: RunOutcome) -> set[str]:
    """Return the UIDs of the pending pods of the inputs that are not in the outcome."""
    results = (outcome.placements, outcome.pending, outcome.preempted)
    return {who.uid for who, _ in inputs.pending} - {each.uid for part in results for each in part}


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), PODS_PER_MESSAGE):
        yield items[start : start + PODS_PER_MESSAGE]
