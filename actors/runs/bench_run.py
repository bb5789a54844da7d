"""BenchRun: executes a benchmark's script on the actors of a run, and measures it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod

from roadstead.actors.interface import NOTHING, RunFailedError
from roadstead.actors.messages import ActorStatus, PodList
from roadstead.actors.messages.process import LOAD_KERNEL
from roadstead.actors.names import SCHEDULER
from roadstead.actors.runs.process_times import read_usages
from roadstead.actors.runs.profiling import Profiler
from roadstead.actors.runs.session import NODES_PER_MESSAGE, PODS_PER_MESSAGE, RunSession, is_idle
from roadstead.actors.runs.status_changes import counts_between, seconds_between
from roadstead.bench import script as steps
from roadstead.bench.metrics import Measurement, pods_since
from roadstead.bench.process_usage import Usages, by_name, processor_spent
from roadstead.bench.script import Script, Step, WaitMode
from roadstead.bench.series import NodeSeries, PodSeries, PodSeriesPart
from roadstead.bench.tracking import SubmittedSeries, Tracker
from roadstead.facts.wire import encode_facts
from roadstead.run import Progress

BENCH_POLL_S = 0.05
"""Interval between two progress requests. It limits no result: times are measured by the binder."""

STEADY_POLL_S = 0.005
"""The same in a steady state, in which pods are submitted once the previous ones are bound."""

PREBUILT_PODS = 200_000
"""Size of a pod series up to which its messages are built before the clock starts."""

LOAD_KERNEL_S = 600.0
"""Deadline for compiling the kernel, at its first use on a machine."""

DELETE_EVERY_S = 0.02
"""Shortest interval between two deletions at a rate; each deletes all pods that are due."""

TENTHS = 10
"""Number of progress reports while nodes are created."""

WAITING_SHOWN = 3
"""Maximum number of pending pods in an error."""


@dataclass(slots=True)
class _OpenMeasurement:
    """A measurement in progress. step: selects the measured pods by namespace and labels.

    before, usages: statuses of the actors and usage of the processes at the beginning. binder_s:
    processor time of the binder's process then. followed: series of the measured pods, for which
    the tracker records the time of each bind.
    """

    name: str
    started_s: float
    before: Mapping[str, ActorStatus]
    usages: Usages
    binder_s: float
    step: steps.BeginMeasuring | None = None
    followed: list[SubmittedSeries] = field(default_factory=list)


class BenchRun:
    """One run of a script. timeout_s: how long to wait for pods. profiler: samples measurements.

    RunFailedError ends it if a step fails or pods cannot be bound.
    """

    def __init__(
        self,
        session: RunSession,
        script: Script,
        progress: Callable[[Progress], None],
        *,
        timeout_s: float,
        profiler: Profiler | None = None,
    ) -> None:
        self._session = session
        self._script = script
        self._progress = progress
        self._timeout_s = timeout_s
        self._profiler = profiler
        self._tracker = Tracker()
        self._began_s = time.monotonic()
        self._nodes = 0
        self._background: list[asyncio.Task[None]] = []
        self._measurement: _OpenMeasurement | None = None
        self.measured: list[Measurement] = []

    async def run(self) -> list[Measurement]:
        """Execute all steps, in order, and return the measurements."""
        await self._load_kernels()
        await self._session.begin()
        try:
            for step in self._script.steps:
                await self._execute(step)
                self._check_background()
        finally:
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
        return self.measured

    async def _load_kernels(self) -> None:
        """Let the schedulers load the kernel if it is on, so that no measurement includes it."""
        if not self._session.plan.settings.kernel:
            return
        self._progress(Progress("loading the kernel (its first use compiles it: half a minute)"))
        for name, ref in self._session.supervisor.refs.items():
            if name.startswith(SCHEDULER):
                await ref.call(LOAD_KERNEL, NOTHING, timeout_s=LOAD_KERNEL_S)

    @singledispatchmethod
    async def _execute(self, step: Step) -> None:
        raise AssertionError(f"no such step: {step}")

    @_execute.register
    async def _(self, step: steps.AddNodes) -> None:
        series = step.series
        reported_tenths = -1
        for start in range(0, series.count, NODES_PER_MESSAGE):
            if TENTHS * start // series.count > reported_tenths:
                reported_tenths = TENTHS * start // series.count
                self._progress(Progress(f"creating nodes: {start:,} of {series.count:,}"))
            nodes = series.part(start, start + NODES_PER_MESSAGE)
            # Before the first pod, the queue has none that new nodes could help.
            has_pods = bool(self._tracker.followed or self._background)
            await self._session.add_nodes(nodes, notify_queue=has_pods)
        self._nodes += series.count

    @_execute.register
    async def _(self, step: steps.SubmitPods) -> None:
        messages = _messages(step.series)
        if step.series.count <= PREBUILT_PODS:
            messages = iter(list(messages))
        if step.measured:
            await self._begin_measurement(self._script.name)
        followed = self._tracker.follow(step.series)
        if self._measurement is not None and step.measured:
            self._measurement.followed.append(followed)
        for message in messages:
            submitted_s = time.monotonic()
            await self._session.submit(message)
            # (index after the last pod that is submitted, time of the submission)
            followed.parts.append((followed.submitted + len(message.uids), submitted_s))
            self._report_progress("submitting pods", followed)
        if step.wait is not WaitMode.NOTHING:
            await self._until_bound([followed], or_idle=step.wait is WaitMode.IDLE)
        if step.measured:
            await self._end_measurement()

    @_execute.register
    async def _(self, step: steps.SteadyPods) -> None:
        await self._begin_measurement(self._script.name)
        followed = self._tracker.follow(step.series)
        assert self._measurement is not None
        self._measurement.followed.append(followed)
        until_s, done = time.monotonic() + step.seconds, 0
        while done < step.series.count and time.monotonic() < until_s:
            part = step.series.part(done, done + step.at_once)
            first, done = done, done + len(part.uids)
            submitted_s = time.monotonic()
            await self._session.submit(_message(part))
            followed.parts.append((done, submitted_s))
            await self._until_bound([followed], poll_s=STEADY_POLL_S)
            await self._remove([(followed, index) for index in range(first, done)], 0)
        await self._end_measurement()

    @_execute.register
    async def _(self, step: steps.RemovePods) -> None:
        found = self._tracker.remaining(step.namespace, step.labels)
        if step.waits:
            await self._remove(found, step.per_s)
        else:
            self._start_background(self._remove(found, step.per_s))

    async def _remove(self, pods: Sequence[tuple[SubmittedSeries, int]], per_s: int) -> None:
        """Delete pods, given by series and index; all at once with `per_s` 0, else at this rate."""
        started_s, done = time.monotonic(), 0
        while done < len(pods):
            end = len(pods)
            if per_s:
                await asyncio.sleep(max(DELETE_EVERY_S, 1 / per_s))
                end = min(end, int((time.monotonic() - started_s) * per_s))
            part = pods[done:end]
            uids = [each.series.part(index, index + 1).uids[0] for each, index in part]
            await self._session.delete_pods(uids)
            for each, index in part:
                each.remove(index)
            done = end

    @_execute.register
    async def _(self, step: steps.ChurnObjects) -> None:
        self._start_background(self._churn(step))

    async def _churn(self, step: steps.ChurnObjects) -> None:
        """Churn as upstream: at each interval create one object of each series.

        With `recreates` there are `number` slots, one for each interval in turn: in an empty slot
        the objects are created, in a full one they are deleted.
        """
        # By slot: index of its objects in their series.
        full: dict[int, int] = {}
        next_s, turn = time.monotonic(), 0
        while step.recreates or not step.number or turn < step.number:
            next_s += step.interval_s
            await asyncio.sleep(max(0.0, next_s - time.monotonic()))
            slot = turn % step.number if step.recreates else turn
            in_slot = full.pop(slot, None) if step.recreates else None
            for series in step.series:
                if in_slot is not None:
                    await self.delete_object(series, in_slot)
                else:
                    await self.create_object(series, turn)
            if in_slot is None:
                full[slot] = turn
            turn += 1

    async def create_object(self, series: NodeSeries | PodSeries, index: int) -> None:
        if isinstance(series, NodeSeries):
            await self._session.add_nodes(series.part(index, index + 1))
        else:
            await self._session.submit(_message(series.part(index, index + 1)))

    async def delete_object(self, series: NodeSeries | PodSeries, index: int) -> None:
        if isinstance(series, NodeSeries):
            await self._session.remove_nodes(series.part(index, index + 1))
        else:
            await self._session.delete_pods(series.part(index, index + 1).uids)

    @_execute.register
    async def _(self, step: steps.AwaitPods) -> None:
        if step.attempted:
            await self._until_attempted()
        else:
            await self._until_bound(self._tracker.of(step.namespaces, step.labels))

    @_execute.register
    async def _(self, step: steps.SleepStep) -> None:
        await asyncio.sleep(step.seconds)

    @_execute.register
    async def _(self, step: steps.BeginMeasuring) -> None:
        name = f"{self._script.name}/{step.name}" if step.name else self._script.name
        await self._begin_measurement(name)
        assert self._measurement is not None
        self._measurement.step = step

    @_execute.register
    async def _(self, step: steps.EndMeasuring) -> None:
        await self._catch_up()
        await self._end_measurement()

    def _start_background(self, work: Coroutine[None, None, None]) -> None:
        self._background.append(asyncio.create_task(work))

    def _check_background(self) -> None:
        """Raise the failure of a background task."""
        for task in self._background:
            if task.done() and (failure := task.exception()) is not None:
                raise failure

    async def _until_bound(
        self,
        wanted: Sequence[SubmittedSeries],
        *,
        or_idle: bool = False,
        poll_s: float = BENCH_POLL_S,
    ) -> None:
        """Wait until the pods of these series are bound, or, with or_idle, the queue is idle."""
        deadline_s = time.monotonic() + self._timeout_s
        while missing := sum(each.missing for each in wanted):
            state = await self._session.state()
            # Count 0: only the number of commits; they are fetched once enough were made.
            page = await self._session.commits(self._tracker.commits, 0)
            if page.total - self._tracker.commits >= missing:
                await self._catch_up()
                continue
            self._report_progress(
                "scheduling", wanted[-1], uncollected=page.total - self._tracker.commits
            )
            has_no_work = all(task.done() for task in self._background)
            if has_no_work and is_idle(state):
                await self._catch_up()
                if or_idle:
                    return
                if any(each.missing for each in wanted):
                    raise await self._stuck_error(wanted, "fit on no node")
            if time.monotonic() > deadline_s:
                raise await self._stuck_error(
                    wanted, f"were not bound within {self._timeout_s:g} s"
                )
            self._check_background()
            await asyncio.sleep(poll_s)

    async def _until_attempted(self) -> None:
        """Wait until no pod is in activeQ or leased: each was tried, whether it is bound or not."""
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            state = await self._session.state()
            if not (state.active or state.in_flight):
                return
            if time.monotonic() > deadline_s:
                raise RunFailedError(f"no attempt for some pods within {self._timeout_s:g} s")
            await asyncio.sleep(BENCH_POLL_S)

    async def _catch_up(self) -> None:
        """Fetch all commits so far and record them in the tracker."""
        while True:
            page = await self._session.commits(self._tracker.commits)
            self._tracker.record_commits(page.uids, page.times)
            if self._tracker.commits >= page.total:
                return

    async def _stuck_error(self, wanted: Sequence[SubmittedSeries], what: str) -> RunFailedError:
        """Return the error for pods that are not bound. what: completes `3 of 5 pods …`."""
        await self._catch_up()
        missing = sum(each.missing for each in wanted)
        total = sum(each.submitted for each in wanted)
        notes, waiting = await self._session.pending(WAITING_SHOWN)
        first = "; ".join(f"{note.key}: {note.message}" for note in notes)
        return RunFailedError(
            f"{self._script.name}: {missing:,} of {total:,} pods {what}. {waiting:,} pods wait"
            + (f", the first of them: {first}" if first else "")
        )

    async def _begin_measurement(self, name: str) -> None:
        if self._measurement is not None:
            raise RunFailedError(f"{self._script.name}: two measurements overlap")
        before = await self._session.statuses()
        if self._profiler is not None:
            await self._profiler.begin(self._session)
        usages = await read_usages(self._session)
        binder_s = (await self._session.commits(self._tracker.commits, 0)).processor_s
        started_s = time.monotonic()
        self._measurement = _OpenMeasurement(name, started_s, before, usages, binder_s)

    async def _end_measurement(self) -> None:
        measurement, self._measurement = self._measurement, None
        if measurement is None:
            raise RunFailedError(f"{self._script.name}: a measurement ends without a beginning")
        usages = await read_usages(self._session)
        # By process.
        processor_s = processor_spent(measurement.usages, usages)
        if self._profiler is not None:
            await self._profiler.end(self._session)
        after = await self._session.statuses()
        if measurement.step is not None:
            measurement.followed = self._tracker.of(
                measurement.step.namespaces, measurement.step.labels
            )
        pods, submitted_s, bound_s, bound_processor_s = pods_since(
            measurement.followed, measurement.started_s
        )
        self.measured.append(
            Measurement(
                measurement.name,
                nodes=self._nodes,
                pods=pods,
                started_s=measurement.started_s,
                submitted_s=submitted_s,
                bound_s=bound_s,
                started_processor_s=measurement.binder_s,
                bound_processor_s=bound_processor_s,
                spent_s=seconds_between(measurement.before, after),
                counts=counts_between(measurement.before, after),
                peak_bytes=sum(each.peak_bytes for each in usages.values()),
                processes=len(usages),
                setup_s=measurement.started_s - self._began_s,
                processor_s=sum(processor_s.values()),
                # That of the busiest process.
                critical_s=max(processor_s.values()),
                process_s=by_name(processor_s),
            )
        )

    def _report_progress(self, phase: str, followed: SubmittedSeries, uncollected: int = 0) -> None:
        """Report how many pods are bound.

        uncollected: number of commits that are not recorded in `followed` yet.
        """
        total = followed.series.count
        placed = min(total, followed.bound + max(0, uncollected))
        self._progress(Progress(phase, placed=placed, total=total))


def _messages(series: PodSeries) -> Iterator[PodList]:
    for start in range(0, series.count, PODS_PER_MESSAGE):
        yield _message(series.part(start, start + PODS_PER_MESSAGE))


def _message(columns: PodSeriesPart) -> PodList:
    classes = tuple(encode_facts(facts) for facts in columns.classes)
    return PodList(classes, columns.uids, columns.names, columns.class_of)
