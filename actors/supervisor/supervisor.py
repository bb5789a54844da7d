"""Supervisor: starts the actors of a run, watches them, replaces lost ones, and ends them.

      watch ── lost, silent ──► replace its process, and all actors that depend on its lost state
        ▲                          │ no journal, or too often: the run ends with its last status
        │                          │ the journal's node is lost: its copy is promoted
        └── the run continues ◄────┘
      Ray itself is lost: the run ends with that error

An actor that cannot continue (bad input, a broken invariant, a journal that failed) ends the run: a
new one would fail the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.interface import (
    NOTHING,
    A,
    ActorError,
    ActorLostError,
    Announce,
    DeadlineError,
    Factory,
    Method,
    NoNodeError,
    Q,
    Ref,
    RunFailedError,
    Runtime,
    clock_s,
)
from roadstead.actors.logs import log
from roadstead.actors.messages import RUN, STATUS, STOP
from roadstead.actors.messages.process import FENCE, Fences
from roadstead.actors.messages.recovery import COMPARE
from roadstead.actors.names import (
    BINDER,
    CACHE,
    JOURNAL_COPY,
    SCHEDULER,
    WORKER,
    follower_names,
)
from roadstead.actors.runtime.reconnecting import ReconnectingRef
from roadstead.actors.supervisor.factories import ActorFactories, BuildBinder
from roadstead.actors.supervisor.journal_copies import JournalCopies
from roadstead.actors.supervisor.replacing import Budget, Refill, Restart, actors_to_replace
from roadstead.actors.supervisor.statuses import ActorGoneError, Statuses
from roadstead.actors.supervisor.worker_growth import StartedWorkers, WorkerGrowth
from roadstead.extenders.caller import CallerOf
from roadstead.report.ray_nodes import RayNodeUse
from roadstead.run import RunPlan

WATCH_S = 0.5
"""Interval between two status requests to every actor."""

FURTHER_FAILURES_S = 2.0
"""How long to collect further failures after the first: one may be the cause of the others."""

LOGS_S = 3.0
"""How long the logs of other machines are gathered after a run."""


class _RunRef(ReconnectingRef):
    """A Ref for callers that are no actors; it records which schedulers were sent RUN."""

    def __init__(self, name: str, supervisor: Supervisor) -> None:
        super().__init__(name, lambda: supervisor.present_ref(name))
        self._running = supervisor.running

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        if method.name == RUN.name:
            self._running.add(self.name)
        return await super().call(method, message, timeout_s=timeout_s)


class Supervisor:
    """The actors of one run by name.

    All dictionaries are by actor name. refs: for callers outside; they follow replacements.
    _present_refs: to the present incarnations only. epochs: of the present incarnations. running:
    schedulers that were sent RUN. restarts: replacements, in order. _unfinished: actors whose
    replacement failed and is repeated.
    """

    def __init__(
        self,
        runtime: Runtime,
        plan: RunPlan,
        *,
        has_journal: bool | None = None,
        build_binder: BuildBinder = BinderActor,
        caller_of: CallerOf | None = None,
    ) -> None:
        """has_journal: whether a new binder recovers its state; by default, as the plan says.
        caller_of: makes the callers of extenders; over HTTP by default.
        """
        in_plan = plan.settings.journal is not None
        self._has_journal = in_plan if has_journal is None else has_journal
        self._copies = JournalCopies(runtime, plan)
        self._factories = ActorFactories(plan, self._copies, build_binder, caller_of)
        self._runtime = runtime
        self._plan = plan
        self._present_refs: dict[str, Ref] = {}
        self._budget = Budget()
        self._growth = WorkerGrowth(runtime)
        self._unfinished: set[str] = set()
        self.epochs: dict[str, int] = {}
        self.refs: dict[str, Ref] = {}
        self.statuses = Statuses(self._present_refs, runtime, plan, self._journal_text)
        self.running: set[str] = set()
        self.restarts: list[Restart] = []

    def groups(self) -> dict[str, dict[str, Factory]]:
        """Return the actors of each process, with factories of their present incarnations."""
        return self._factories.groups(self.epochs)

    def _groups_of(self, plan: RunPlan) -> dict[str, dict[str, Factory]]:
        """Return the processes of another plan of this run."""
        return replace(self._factories, plan=plan).groups(self.epochs)

    async def start(self) -> None:
        """Start all actors in parallel. RunFailedError if one does not start in time."""
        groups = self.groups()
        try:
            self._present_refs.update(await self._start(groups))
        except (ActorLostError, DeadlineError, NoNodeError) as failure:
            self._check_runtime()
            text = f"the run did not start: {failure}"
            if not isinstance(failure, NoNodeError):
                # The binder may have begun its journal, which only a resumed run may continue.
                how = "with --resume" if self._has_journal else "again"
                text += f". Nothing was placed; start it {how}: lost nodes are then left out."
            raise RunFailedError(text) from failure
        self.refs = {name: _RunRef(name, self) for name in self._present_refs}
        self.epochs = dict.fromkeys(self._present_refs, self._plan.first_epoch)
        log("supervisor", "started", actors=", ".join(self.refs))

    async def _start(self, groups: dict[str, dict[str, Factory]]) -> dict[str, Ref]:
        timeout_s = self._plan.settings.deadlines.start_s
        starting = asyncio.create_task(self._runtime.start(groups, timeout_s=timeout_s))
        runtime_watch = asyncio.create_task(self._watch_runtime())
        try:
            await asyncio.wait({starting, runtime_watch}, return_when=asyncio.FIRST_COMPLETED)
            # Without this check, a start on a lost Ray would wait for the whole deadline.
            self._check_runtime()
            return dict(await starting)
        finally:
            starting.cancel()
            runtime_watch.cancel()
            await asyncio.gather(starting, runtime_watch, return_exceptions=True)

    def present_ref(self, name: str) -> Ref:
        """Return a Ref to the present incarnation of an actor only."""
        return self._present_refs[name]

    async def watch(self) -> None:
        """Watch until the run cannot continue; raises RunFailedError or the error that ended it."""
        actors = asyncio.create_task(self._watch_actors())
        runtime_watch = asyncio.create_task(self._watch_runtime())
        try:
            await asyncio.wait({actors, runtime_watch}, return_when=asyncio.FIRST_COMPLETED)
            self._check_runtime()
            await actors
        finally:
            actors.cancel()
            runtime_watch.cancel()
            await asyncio.gather(actors, runtime_watch, return_exceptions=True)
            await self._growth.cancel()

    async def _watch_runtime(self) -> None:
        """Return when the runtime itself (Ray) is lost, even if actors still answer."""
        while not self._runtime.lost():
            await asyncio.sleep(WATCH_S)

    def _check_runtime(self) -> None:
        """Raise RunFailedError if the runtime itself (Ray) is lost: no actor can be replaced."""
        if lost := self._runtime.lost():
            raise RunFailedError(f"{lost}. The run ends here; {self._journal_text()}.")

    def _journal_text(self) -> str:
        """Return, for the error of a run that ends here, where its binds are recorded."""
        if not self._has_journal:
            return "there is no journal of what was bound"
        journal = self._copies.text()
        return f"what the binder acknowledged is in {journal}, and --resume continues the run"

    async def _watch_actors(self) -> None:
        """Replace lost actors, and start further workers, until an actor cannot be replaced."""
        while True:
            # The failures of a status request to each actor.
            failures = await self.statuses.failures(return_when=asyncio.FIRST_EXCEPTION)
            if failures:
                # Wait for further failures: the first may only follow from a lost actor, and actors
                # of one process are lost together.
                failures += await self.statuses.failures(timeout_s=FURTHER_FAILURES_S)
            lost_actors = [each for each in failures if isinstance(each, ActorGoneError)]
            # A replacement that failed is repeated, even if all actors answer now.
            if lost_actors or (self._unfinished and not failures):
                await self._growth.cancel()
                await self._replace(lost_actors)
            elif failures:
                raise failures[0]
            # Workers that were started because the cluster has room for more than at the start.
            elif more := self._growth.step(self._plan, self._groups_of):
                await self._take_over(more)
            await asyncio.sleep(WATCH_S)

    async def compare(self) -> tuple[str, ...]:
        """Return and log differences of the cache from one rebuilt from scratch, one line each."""
        lines = (await self._call(CACHE, COMPARE, NOTHING)).lines
        log("supervisor", "cache compared", differences=len(lines), first="; ".join(lines[:5]))
        return lines

    async def _replace(self, lost_actors: Iterable[ActorGoneError]) -> None:
        """Replace lost actors and those that depend on their lost state; the run continues."""
        self._check_runtime()
        began_s = clock_s()
        errors = {each.name: each for each in lost_actors}
        hosts = {host: set(builds) for host, builds in self.groups().items()}
        names = actors_to_replace({*errors, *self._unfinished}, hosts)
        self._check_may_replace(errors, names, began_s)
        if BINDER in names and (lost := self._copies.loss()):
            await self._copies.promote(self._present_refs, lost, epoch=self.epochs[BINDER] + 1)
            names |= {JOURNAL_COPY}
        log("supervisor", "replacing", actors=", ".join(sorted(names)), gone=", ".join(errors))
        # After a replacement that failed, no process is trusted any more.
        retired = set() if self._unfinished else names - set(errors)
        # If the copy was promoted, its folder is the journal now, and the next copy runs on another
        # node. In its present process it would lock the folder that the new binder opens.
        retired.discard(JOURNAL_COPY)
        # The first sentence of each error: the rest describes another end of the run.
        losses = "; ".join(str(each).partition(". ")[0] for each in errors.values())
        if await self._try_restart(names, retired, losses or "Actors were lost"):
            self.restarts.append(Restart(tuple(sorted(errors)), clock_s() - began_s))

    async def _take_over(self, more: StartedWorkers) -> None:
        """Divide the nodes among more workers: replace all workers, and the schedulers."""
        self._plan = more.plan
        self._factories = replace(self._factories, plan=more.plan)
        self._present_refs |= more.refs
        self.refs |= {name: _RunRef(name, self) for name in more.refs}
        self.epochs |= dict.fromkeys(more.refs, self._plan.first_epoch)
        log(
            "supervisor",
            "dividing the nodes among more workers",
            workers=self._plan.settings.workers,
        )
        names = set(follower_names(self._plan.settings))
        await self._try_restart(names, names, "Workers were added")

    async def _try_restart(self, names: set[str], retired: set[str], why: str) -> bool:
        """Replace actors, and return whether all of them answer; else `_watch_actors` repeats it.

        retired: as for `_restart`. RunFailedError if no node has room; its text begins with `why`.
        """
        self._unfinished = names
        try:
            await self._restart(names, retired)
        except NoNodeError as failure:
            raise RunFailedError(
                f"{why}. No other node can run "
                f"{', '.join(sorted(names))}: {failure}. The run ends here; {self._journal_text()}."
            ) from failure
        except (ActorLostError, DeadlineError, ActorError) as failure:
            # Another actor was lost meanwhile: `_watch_actors` replaces all of them again, within
            # the budget.
            log("supervisor", "replacing failed", why=str(failure))
            return False
        self._unfinished = set()
        return True

    def _check_may_replace(
        self, errors: Mapping[str, ActorGoneError], names: set[str], now_s: float
    ) -> None:
        """Raise ActorGoneError for a binder without a journal, or if the budget is used up."""
        if BINDER in names and not self._has_journal:
            raise next(iter(errors.values()))
        # A repeated replacement without a further loss counts once, for any of its actors.
        for name in errors or sorted(self._unfinished)[:1]:
            if not self._budget.acquire(name, now_s):
                text = str(errors.get(name) or self._not_replaced(name))
                raise ActorGoneError(f"{text} It was replaced {Budget.TIMES} times in a minute.")

    def _not_replaced(self, name: str) -> str:
        return self.statuses.error_text(name, f"{name} could not be replaced")

    async def _restart(self, names: set[str], retired: set[str]) -> None:
        """Replace actors. retired: those of them that answer; their processes may be kept."""
        for name in sorted(names):
            await (self._runtime.retire if name in retired else self._runtime.kill)(name)
            self.epochs[name] += 1
        groups = {host: builds for host, builds in self.groups().items() if names & set(builds)}
        # Running actors must refuse the ended incarnations before new ones start. The new ones know
        # no epochs, and must refuse them as soon as they run.
        await self._fence(names, at=self._present_refs.keys() - names)
        self._present_refs.update(await self._start(groups))
        await self._fence(self.epochs.keys(), at=self._present_refs.keys())
        await self._fill_while_alive(names)
        for name in sorted(self.running & names):
            await self._call(name, RUN, NOTHING)

    async def _fill_while_alive(self, names: set[str]) -> None:
        """Restore the state of new incarnations. ActorLostError as soon as one of them is lost.

        Without this, the calls to a lost one would be repeated until their deadlines.
        """
        refill = Refill(self._present_refs, self.epochs, self._plan.settings)
        filling = asyncio.create_task(refill.fill(names))
        try:
            while not (await asyncio.wait({filling}, timeout=WATCH_S))[0]:
                for name in sorted(names):
                    with contextlib.suppress(DeadlineError):
                        await self._present_refs[name].call(STATUS, NOTHING, timeout_s=WATCH_S)
            await filling
        finally:
            filling.cancel()
            await asyncio.gather(filling, return_exceptions=True)

    async def _fence(self, names: Iterable[str], *, at: Iterable[str]) -> None:
        """Make actors refuse messages of earlier incarnations of these ones. at: who refuses."""
        fences = Fences(tuple((name, self.epochs[name]) for name in sorted(names)))
        receivers = sorted(at)
        calls = (self._call(name, FENCE, fences) for name in receivers)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        for name, outcome in zip(receivers, outcomes, strict=True):
            # A silent worker does not stop a replacement: no decision depends on it. Nor does an
            # actor that is lost: it handles no messages.
            if isinstance(outcome, DeadlineError) and not name.startswith(WORKER):
                raise outcome

    async def _call(self, name: str, method: Method[Q, A], message: Q) -> A:
        timeout_s = self._plan.settings.deadlines.call_s
        return await self._present_refs[name].call(method, message, timeout_s=timeout_s)

    def report_to(self, announce: Announce) -> None:
        """Send messages for the user to this function: the runtime's, and processes' warnings."""
        self._runtime.report_to(announce)
        self.statuses.report_to(announce)

    def ray_nodes(self) -> tuple[RayNodeUse, ...]:
        """Return which processes are on which node of a joined cluster; () on one machine."""
        return self._runtime.ray_nodes()

    async def stop(self, *, logs_s: float = LOGS_S, request_s: float = math.inf) -> None:
        """Stop the schedulers, let the binder close its journal, and end all actors, in time.

        logs_s: how long the actors' logs may be gathered from other machines. request_s: how long
        the schedulers, and then the binder, may take to stop, if that is less than the plan's time.
        """
        timeout_s = self._plan.settings.deadlines.stop_s
        self.statuses.report_left_out()
        try:
            if not self._runtime.lost():
                await self._request_stop(min(request_s, timeout_s))
                await self._runtime.gather_logs(timeout_s=logs_s)
        finally:
            async with asyncio.timeout(timeout_s):
                await self._runtime.stop()

    async def _request_stop(self, timeout_s: float) -> None:
        schedulers = [ref for name, ref in self._present_refs.items() if name.startswith(SCHEDULER)]
        stops = (ref.call(STOP, NOTHING, timeout_s=timeout_s) for ref in schedulers)
        await asyncio.gather(*stops, return_exceptions=True)
        if BINDER in self._present_refs:
            with contextlib.suppress(ActorError, ActorLostError, DeadlineError):
                await self._present_refs[BINDER].call(STOP, NOTHING, timeout_s=timeout_s)
