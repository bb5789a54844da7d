"""Supervisor: starts the actors of a run, watches them, and ends them.

An actor that is gone, cannot go on, or does not answer is reported with what it last said of
itself, and the run ends: recovery is still to come, hanging is not an option.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

from roadstead.actors.binder_actor import BinderActor
from roadstead.actors.cache_actor import CacheActor
from roadstead.actors.logs import log
from roadstead.actors.messages import STATUS, STOP, ActorStatus
from roadstead.actors.names import (
    BINDER,
    CACHE,
    CONTROL,
    QUEUE,
    SCHEDULER,
    scheduler_name,
    worker_name,
)
from roadstead.actors.queue_actor import QueueActor
from roadstead.actors.scheduler import SchedulerActor
from roadstead.actors.seam import (
    NOTHING,
    ActorError,
    ActorLostError,
    DeadlineError,
    Factory,
    Failure,
    Ref,
    Runtime,
    failure_in,
)
from roadstead.actors.worker import WorkerActor
from roadstead.protocol.errors import InputError, RoadsteadError, UnsupportedError
from roadstead.run import RunPlan

WATCH_S = 0.5
"""How often every actor is asked how it is."""

ROOT_S = 2.0
"""How long to look for the failure from which another one follows."""


class RunFailedError(RoadsteadError):
    """A run ended before its time: which actor failed, what it did, and why."""


class ActorGoneError(RunFailedError):
    """A run ended because an actor is gone or silent; others fail for want of it."""


class Supervisor:
    """The actors of one run by name."""

    def __init__(self, runtime: Runtime, plan: RunPlan) -> None:
        self._runtime = runtime
        self._plan = plan
        self.refs: dict[str, Ref] = {}
        self.last: dict[str, ActorStatus] = {}

    def groups(self) -> dict[str, dict[str, Factory]]:
        """Process → the actors in it, and how each is built where it runs."""
        plan, settings = self._plan, self._plan.settings
        control: dict[str, Factory] = {
            QUEUE: partial(QueueActor, plan),
            CACHE: partial(CacheActor, plan),
            BINDER: partial(BinderActor, plan),
        }
        if settings.control == "together":
            groups = {CONTROL: control}
        else:
            groups = {name: {name: build} for name, build in control.items()}
        for index in range(settings.shards):
            name = worker_name(index)
            groups[name] = {name: partial(WorkerActor, name, plan)}
        for index in range(settings.schedulers):
            name = scheduler_name(index)
            groups[name] = {name: partial(SchedulerActor, name, plan)}
        return groups

    async def start(self) -> None:
        """Starts all actors side by side. RunFailedError if one does not come up in time."""
        timeout_s = self._plan.settings.deadlines.start_s
        try:
            self.refs = await self._runtime.start(self.groups(), timeout_s=timeout_s)
        except (ActorLostError, DeadlineError) as failure:
            raise RunFailedError(f"the run did not start: {failure}") from failure
        log("supervisor", "started", actors=", ".join(self.refs))

    async def watch(self) -> None:
        """Runs until an actor fails; raises RunFailedError or the error that stopped it."""
        while True:
            try:
                await asyncio.gather(*(self.look(name) for name in self.refs))
            except ActorGoneError:
                raise
            except RunFailedError as failure:
                raise await self._root_of(failure) from None
            await asyncio.sleep(WATCH_S)

    async def _root_of(self, failure: RunFailedError) -> RunFailedError:
        """The actor that is gone, if `failure` was only seen before it."""
        looks = [asyncio.create_task(self.look(name)) for name in self.refs]
        await asyncio.wait(looks, timeout=ROOT_S)
        for task in looks:
            task.cancel()
        outcomes = await asyncio.gather(*looks, return_exceptions=True)
        return next((each for each in outcomes if isinstance(each, ActorGoneError)), failure)

    async def look(self, name: str) -> ActorStatus:
        """What an actor says of itself. RunFailedError if it is gone or cannot go on."""
        timeout_s = self._plan.settings.deadlines.call_s
        try:
            status = await self.refs[name].call(STATUS, NOTHING, timeout_s=timeout_s)
        except (ActorLostError, DeadlineError) as failure:
            raise ActorGoneError(self._story(name, str(failure))) from failure
        self.last[name] = status
        if status.error:
            raise self._stopped_by(name, status)
        return status

    def _stopped_by(self, name: str, status: ActorStatus) -> RoadsteadError:
        """Why an actor cannot go on: what the user can mend as it is, all else as its story."""
        failed = failure_in(name, Failure(status.error_kind, status.error, status.error_parts))
        if isinstance(failed, (InputError, UnsupportedError)):
            return failed
        return RunFailedError(self._story(name, f"{name} cannot go on: {status.error}"))

    def _story(self, name: str, what: str) -> str:
        last = self.last.get(name)
        did = f" It {last.text}." if last is not None else ""
        return f"{what}.{did} The run ends here; what the binder acknowledged is in its list."

    async def stop(self) -> None:
        """Schedulers take no more, the binder closes its journal, and all actors end, in time."""
        timeout_s = self._plan.settings.deadlines.stop_s
        schedulers = [ref for name, ref in self.refs.items() if name.startswith(SCHEDULER)]
        stops = (ref.call(STOP, NOTHING, timeout_s=timeout_s) for ref in schedulers)
        await asyncio.gather(*stops, return_exceptions=True)
        if BINDER in self.refs:
            with contextlib.suppress(ActorError, ActorLostError, DeadlineError):
                await self.refs[BINDER].call(STOP, NOTHING, timeout_s=timeout_s)
        async with asyncio.timeout(timeout_s):
            await self._runtime.stop()
