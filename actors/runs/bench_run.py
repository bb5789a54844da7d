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
from roadstead.actors.runs.profiling import Profiler
from roadstead.actors.runs.session import NODES_PER_MESSAGE, PODS_PER_MESSAGE, RunSession, is_idle
from roadstead.bench import script as steps
from roadstead.bench.machine import peak_memory, processor_seconds, processor_spent
from roadstead.bench.metrics import Measurement, pods_since
from roadstead.bench.script import Script, Step, WaitMode
from roadstead.bench.series import NodeSeries, PodSeries, SeriesPods
from roadstead.bench.tracking import SubmittedSeries, Tracker
from roadstead.facts.wire import encode_facts
from roadstead.run import Progress

BENCH_POLL_S = 0.05
"""Interval between two progress requests; the measured times are the binder's."""

STEADY_POLL_S = 0.005
"""The same in a steady state, whose next pods wait for the last ones."""

PREBUILT_PODS = 200_000
"""Size of a pod series up to which its messages are built before the clock starts."""

LOAD_KERNEL_S = 600.0
"""Deadline for compiling the kernel, at its first use on a machine."""

DELETE_EVERY_S = 0.02
TENTHS = 10
WAITING_SHOWN = 3


@dataclass(slots=True)
class _OpenMeasurement:
    """A measurement in progress. step: selects the measured pods by namespace and labels.

    processor_s: processor time of each process at the beginning; binder_s: of the binder's.
    """

    name: str
    started_s: float
    before: Mapping[str, ActorStatus]
    processor_s: Mapping[int, float]
    binder_s: float
    step: steps.BeginMeasuring | None = None
    followed: list[SubmittedSeries] = field(default_factory=list)


class BenchRun:
    """One run of a script. timeout_s: how long to wait for pods. profiler: samples measurements.

    A step that fails, or pods that cannot be bound, end it with RunFailedError.
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
        shown = -1
        for start in range(0, series.count, NODES_PER_MESSAGE):
            if TENTHS * start // series.count > shown:
                shown = TENTHS * start // series.count
                self._progress(Progress(f"creating nodes: {start:,} of {series.count:,}"))
            nodes = series.part(start, start + NODES_PER_MESSAGE)
            # Before the first pod, the queue has none that new nodes could help.
            waits = bool(self._tracker.followed or self._background)
            await self._session.add_nodes(nodes, notify_queue=waits)
        self._nodes += series.count

    @_execute.register
    async def _(self, step: steps.SubmitPods) -> None:
        batches = _batches(step.series)
        if step.series.count <= PREBUILT_PODS:
            batches = iter(list(batches))
        if step.measured:
            await self._begin(self._script.name)
        followed = self._tracker.follow(step.series)
        if self._measurement is not None and step.measured:
            self._measurement.followed.append(followed)
        for batch in batches:
            submitted_s = time.monotonic()
            await self._session.submit(batch)
            followed.parts.append((followed.submitted + len(batch.uids), submitted_s))
            self._report_progress("submitting pods", followed)
        if step.wait is not WaitMode.NOTHING:
            await self._until_bound([followed], or_idle=step.wait is WaitMode.IDLE)
        if step.measured:
            await self._end()

    @_execute.register
    async def _(self, step: steps.SteadyPods) -> None:
        await self._begin(self._script.name)
        followed = self._tracker.follow(step.series)
        assert self._measurement is not None
        self._measurement.followed.append(followed)
        until_s, done = time.monotonic() + step.seconds, 0
        while done < step.series.count and time.monotonic() < until_s:
            part = step.series.part(done, done + step.at_once)
            first, done = done, done + len(part.uids)
            submitted_s = time.monotonic()
            await self._session.submit(_batch(part))
            followed.parts.append((done, submitted_s))
            await self._until_bound([followed], poll_s=STEADY_POLL_S)
            await self._remove([(followed, index) for index in range(first, done)], 0)
        await self._end()

    @_execute.register
    async def _(self, step: steps.RemovePods) -> None:
        found = self._tracker.remaining(step.namespace, step.labels)
        if step.wait:
            await self._remove(found, step.per_s)
        else:
            self._start(self._remove(found, step.per_s))

    async def _remove(self, found: Sequence[tuple[SubmittedSeries, int]], per_s: int) -> None:
        """Delete pods; all at once with `per_s` 0, else so many per second."""
        started_s, done = time.monotonic(), 0
        while done < len(found):
            due = len(found)
            if per_s:
                await asyncio.sleep(max(DELETE_EVERY_S, 1 / per_s))
                due = min(due, int((time.monotonic() - started_s) * per_s))
            part = found[done:due]
            uids = [each.series.part(index, index + 1).uids[0] for each, index in part]
            await self._session.delete_pods(uids)
            for each, index in part:
                each.remove(index)
            done = due

    @_execute.register
    async def _(self, step: steps.ChurnObjects) -> None:
        self._start(self._churn(step))

    async def _churn(self, step: steps.ChurnObjects) -> None:
        """Churn as upstream: create objects; with `recreates`, delete each in its next turn.

        With `recreates`, `number` places take turns; `full`: place → number of the objects in it.
        """
        full: dict[int, int] = {}
        next_s, made = time.monotonic(), 0
        while step.recreates or not step.number or made < step.number:
            next_s += step.interval_s
            await asyncio.sleep(max(0.0, next_s - time.monotonic()))
            index = made % step.number if step.recreates else made
            before = full.pop(index, None) if step.recreates else None
            for maker in step.series:
                if before is not None:
                    await self.delete_object(maker, before)
                else:
                    await self.create_object(maker, made)
            if before is None:
                full[index] = made
            made += 1

    async def create_object(self, maker: NodeSeries | PodSeries, index: int) -> None:
        if isinstance(maker, NodeSeries):
            await self._session.add_nodes(maker.part(index, index + 1))
        else:
            await self._session.submit(_batch(maker.part(index, index + 1)))

    async def delete_object(self, maker: NodeSeries | PodSeries, index: int) -> None:
        if isinstance(maker, NodeSeries):
            await self._session.remove_nodes(maker.part(index, index + 1))
        else:
            await self._session.delete_pods(maker.part(index, index + 1).uids)

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
        await self._begin(name)
        assert self._measurement is not None
        self._measurement.step = step

    @_execute.register
    async def _(self, step: steps.EndMeasuring) -> None:
        await self._catch_up()
        await self._end()

    def _start(self, work: Coroutine[None, None, None]) -> None:
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
        """Wait until the pods of these series are bound; with or_idle, or the queue is idle."""
        deadline_s = time.monotonic() + self._timeout_s
        while missing := sum(each.missing for each in wanted):
            state = await self._session.state()
            # No commits, only their number: each is fetched once, when enough were made.
            page = await self._session.commits(self._tracker.commits, 0)
            if page.total - self._tracker.commits >= missing:
                await self._catch_up()
                continue
            self._report_progress(
                "scheduling", wanted[-1], uncollected=page.total - self._tracker.commits
            )
            idle = all(task.done() for task in self._background)
            if idle and is_idle(state):
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
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            state = await self._session.state()
            if not (state.active or state.in_flight):
                return
            if time.monotonic() > deadline_s:
                raise RunFailedError(f"no attempt for some pods within {self._timeout_s:g} s")
            await asyncio.sleep(BENCH_POLL_S)

    async def _catch_up(self) -> None:
        """Fetch all commits so far."""
        while True:
            page = await self._session.commits(self._tracker.commits)
            self._tracker.record_commits(page.uids, page.times)
            if self._tracker.commits >= page.total:
                return

    async def _stuck_error(self, wanted: Sequence[SubmittedSeries], what: str) -> RunFailedError:
        await self._catch_up()
        missing = sum(each.missing for each in wanted)
        total = sum(each.submitted for each in wanted)
        notes, waiting = await self._session.pending(WAITING_SHOWN)
        first = "; ".join(f"{note.key}: {note.message}" for note in notes)
        return RunFailedError(
            f"{self._script.name}: {missing:,} of {total:,} pods {what}. {waiting:,} pods wait"
            + (f", the first of them: {first}" if first else "")
        )

    async def _begin(self, name: str) -> None:
        if self._measurement is not None:
            raise RunFailedError(f"{self._script.name}: two measurements overlap")
        before = await self._session.statuses()
        if self._profiler is not None:
            await self._profiler.begin(self._session)
        processor_s = processor_seconds()
        binder_s = (await self._session.commits(self._tracker.commits, 0)).processor_s
        started_s = time.monotonic()
        self._measurement = _OpenMeasurement(name, started_s, before, processor_s, binder_s)

    async def _end(self) -> None:
        measurement, self._measurement = self._measurement, None
        if measurement is None:
            raise RunFailedError(f"{self._script.name}: a measurement ends without a beginning")
        spent_s = processor_spent(measurement.processor_s, processor_seconds())
        if self._profiler is not None:
            await self._profiler.end(self._session)
        after = await self._session.statuses()
        if measurement.step is not None:
            measurement.followed = self._tracker.of(
                measurement.step.namespaces, measurement.step.labels
            )
        pods, submitted_s, bound_s, spent = pods_since(measurement.followed, measurement.started_s)
        peak_bytes, processes = await asyncio.to_thread(peak_memory)
        self.measured.append(
            Measurement(
                measurement.name,
                self._nodes,
                pods,
                measurement.started_s,
                submitted_s,
                bound_s,
                measurement.binder_s,
                spent,
                spent_s=_seconds_between(measurement.before, after),
                counts=_counts_between(measurement.before, after),
                peak_bytes=peak_bytes,
                processes=processes,
                setup_s=measurement.started_s - self._began_s,
                processor_s=sum(spent_s.values()),
                critical_s=max(spent_s.values()),
            )
        )

    def _report_progress(self, phase: str, followed: SubmittedSeries, uncollected: int = 0) -> None:
        total = followed.series.count
        placed = min(total, followed.bound + max(0, uncollected))
        self._progress(Progress(phase, placed=placed, total=total))


def _batches(series: PodSeries) -> Iterator[PodList]:
    for start in range(0, series.count, PODS_PER_MESSAGE):
        yield _batch(series.part(start, start + PODS_PER_MESSAGE))


def _batch(columns: SeriesPods) -> PodList:
    classes = tuple(encode_facts(facts) for facts in columns.classes)
    return PodList(classes, columns.uids, columns.names, columns.class_of)


def _seconds_between(
    before: Mapping[str, ActorStatus], after: Mapping[str, ActorStatus]
) -> dict[str, float]:
    """Return seconds per `actor: phase` between two statuses."""
    spent: dict[str, float] = {}
    for name, status in after.items():
        earlier = dict(before[name].timings_s) if name in before else {}
        for phase, total_s in status.timings_s:
            spent[f"{name}: {phase}"] = total_s - earlier.get(phase, 0.0)
    return spent


def _counts_between(
    before: Mapping[str, ActorStatus], after: Mapping[str, ActorStatus]
) -> dict[str, int]:
    """Return the increase of each `actor: count` between two statuses."""
    counted: dict[str, int] = {}
    for name, status in after.items():
        earlier = dict(before[name].counts) if name in before else {}
        for what, total in status.counts:
            counted[f"{name}: {what}"] = total - earlier.get(what, 0)
    return counted
