"""Supervisor: starts the actors of a run, watches them, and ends them.

An actor that is gone, cannot go on, or does not answer is reported with what it last said of
itself, and the run ends: recovery is still to come, hanging is not an option.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from roadstead.actors.binder_actor import BinderActor
from roadstead.actors.cache_actor import CacheActor
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
    ActorLostError,
    DeadlineError,
    Factory,
    Failure,
    Ref,
    Runtime,
    failure_in,
)
from roadstead.actors.worker import WorkerActor
from roadstead.protocol.errors import RoadsteadError
from roadstead.run import RunPlan

LOG = logging.getLogger("roadstead.supervisor")

WATCH_S = 0.5
"""How often every actor is asked how it is."""


class RunFailedError(RoadsteadError):
    """A run ended before its time: which actor failed, what it did, and why."""


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
        LOG.info("started %s", ", ".join(self.refs))

    async def watch(self) -> None:
        """Runs until an actor fails; raises RunFailedError or the error that stopped it."""
        while True:
            await asyncio.gather(*(self.look(name) for name in self.refs))
            await asyncio.sleep(WATCH_S)

    async def look(self, name: str) -> ActorStatus:
        """What an actor says of itself. RunFailedError if it is gone or cannot go on."""
        timeout_s = self._plan.settings.deadlines.call_s
        try:
            status = await self.refs[name].call(STATUS, NOTHING, timeout_s=timeout_s)
        except (ActorLostError, DeadlineError) as failure:
            raise RunFailedError(self._story(name, failure)) from failure
        self.last[name] = status
        if status.error:
            failed = Failure(status.error_kind, status.error, status.error_parts)
            raise (
                failure_in(name, failed)
                if status.error_kind
                else RunFailedError(f"{name} cannot go on: {status.error}")
            )
        return status

    def _story(self, name: str, failure: RoadsteadError) -> str:
        last = self.last.get(name)
        did = f" It {last.text}." if last is not None else ""
        return f"{failure}.{did} The run ends here; what the binder acknowledged is in its list."

    async def stop(self) -> None:
        """Tells the schedulers to take no more, then ends all actors, within the deadline."""
        timeout_s = self._plan.settings.deadlines.stop_s
        schedulers = [ref for name, ref in self.refs.items() if name.startswith(SCHEDULER)]
        stops = (ref.call(STOP, NOTHING, timeout_s=timeout_s) for ref in schedulers)
        await asyncio.gather(*stops, return_exceptions=True)
        async with asyncio.timeout(timeout_s):
            await self._runtime.stop()
