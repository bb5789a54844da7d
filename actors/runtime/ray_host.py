"""The process of a run on Ray: one Ray actor with one of our actors, or several that share it.

Messages to an actor are envelopes (`actors.interface`); an actor finds the others by a `Directory`.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from roadstead.actors.interface import (
    ActorLostError,
    Directory,
    Factory,
    Failure,
    encode_failure,
)
from roadstead.actors.logs import log
from roadstead.actors.messages import ActorStatus
from roadstead.actors.process_warnings import ProcessWarnings
from roadstead.actors.runtime.dispatch import Dispatcher, error_reply
from roadstead.actors.runtime.log_location import LogLocation, read_on_node
from roadstead.actors.runtime.ray_heartbeats import (
    DRIVER_LOST_BEATS,
    LOST_BEATS,
    Address,
    await_loss,
)
from roadstead.garbage_collection import raise_gc_thresholds
from roadstead.protocol.errors import InputError
from roadstead.protocol.plain_data import DecodeLimits

END_AFTER_S = 0.1
"""Delay before this process exits, so that the reply can be sent first."""


@dataclass(frozen=True, slots=True)
class HostSetup:
    """Work of a process besides that of its actors.

    run: name of the run on a joined cluster (one that existed before the run). logs: where it
    writes its log. metrics_interval_s: between two publications of metrics, 0 for none. driver,
    own: addresses of the raylets on the driver's node and on that of the process; None if the run
    started Ray itself.
    """

    run: str = ""
    logs: LogLocation = field(default_factory=LogLocation)
    metrics_interval_s: float = 0.0
    driver: Address | None = None
    own: Address | None = None


def end_after_loss(raylet: Address, beats: int, of: str) -> None:
    """End this process once a raylet is lost; Ray itself would leave it running for long.

    If the driver's node is lost, the run is over. If this node's raylet is lost, the run starts a
    replacement elsewhere, and this process must not keep the journal locked. beats: number of
    heartbeats in a row without an answer until the raylet counts as lost. of: whose raylet it is,
    for the log.
    """
    await_loss(raylet, beats)
    log("host", "raylet lost", of=of, node=raylet[0])
    # Without cleaning up, like a process that is killed: a journal is readable at any moment.
    os._exit(1)


class RayHost:
    """The Ray actor: a process with one of our actors, or several that share it.

    _dispatchers: by actor name. _handling: tasks that handle a message. _failure: of the build.
    """

    def __init__(
        self,
        process: str,
        builds: Mapping[str, Factory],
        directory: Directory,
        limits: DecodeLimits,
        setup: HostSetup,
    ) -> None:
        setup.logs.open(process)
        self._warnings = ProcessWarnings(process)
        self._warnings.open()
        self._process, self._setup = process, setup
        self._publishing: asyncio.Task[None] | None = None
        for raylet, beats, of in (
            (setup.driver, DRIVER_LOST_BEATS, "the driver's node"),
            (setup.own, LOST_BEATS, "this node"),
        ):
            if raylet is not None:
                end = partial(end_after_loss, raylet, beats, of)
                threading.Thread(target=end, daemon=True).start()
        if setup.own is not None:
            # If the driver ends first, Ray ends this process in order: Python then frees all
            # objects, for a second or more after the run. Registered last, this is called first.
            atexit.register(os._exit, 0)
        raise_gc_thresholds()
        self._limits = limits
        self._dispatchers: dict[str, Dispatcher] = {}
        self._handling: set[asyncio.Task[object]] = set()
        self._failure: Failure | None = None
        self._build(builds, directory)

    def _build(self, builds: Mapping[str, Factory], directory: Directory) -> None:
        try:
            for name, build in builds.items():
                actor = build(directory)
                # The dispatcher adds the warnings of this process to the replies of the actor.
                collect = self._warnings.collect
                self._dispatchers[name] = Dispatcher(name, actor, self._limits, collect)
        except InputError as failure:
            # For example a plugin that only the driver can import. Not raised, because Ray would
            # replace its text.
            if not self._setup.run:
                failed = failure.at(source=f"in the process {self._process} on Ray")
            else:
                # The machine is named even if the error names a file: its content may differ.
                where = f"in the process {self._process} on {socket.gethostname()}"
                failed = failure.at(obj=where) if failure.source else failure.at(source=where)
            self._failure = encode_failure(failed)

    def __repr__(self) -> str:
        """Return the name that Ray's dashboard and state API show with the class."""
        return f"{self._setup.run or 'roadstead'} {self._process}"

    async def receive(self, name: str, *parts: bytes) -> bytes:
        """Dispatch one envelope to one actor and return the envelope of the reply.

        parts: consecutive bytes of the envelope, which is sent in parts if it is long.
        """
        dispatcher, handling = self._dispatchers.get(name), asyncio.current_task()
        if dispatcher is None or handling is None:
            return error_reply(ActorLostError(f"{name} is gone"))
        self._handling.add(handling)
        try:
            return await dispatcher.receive(parts[0] if len(parts) == 1 else b"".join(parts))
        except asyncio.CancelledError:
            if self._dispatchers.get(name) is dispatcher:
                raise
            # `retire` ended the actor, not the call: the caller receives ActorLostError.
            handling.uncancel()
            return error_reply(ActorLostError(f"{name} is gone"))
        finally:
            self._handling.discard(handling)

    async def retire(self) -> None:
        """End the actors of this process as a kill would; the process waits for `rebuild`."""
        retired, self._dispatchers = self._dispatchers, {}
        for dispatcher in retired.values():
            dispatcher.release()
        for task in self._handling:
            task.cancel()

    async def rebuild(self, builds: Mapping[str, Factory], directory: Directory) -> int | Failure:
        """Build the next incarnations of retired actors; return as `ready` does."""
        await self.retire()
        self._failure = None
        self._build(builds, directory)
        return self._failure or os.getpid()

    async def end(self) -> None:
        """End this process after the reply.

        Ray kills an actor through its head; this works even if the head is down.
        """
        timer = threading.Timer(END_AFTER_S, os._exit, (0,))
        timer.daemon = True
        timer.start()

    async def log_part(self, name: str, start: int, count: int) -> bytes:
        """Answer a request for the logs of this node; see `read_on_node`."""
        return read_on_node(self._setup.logs.run, name, start, count)

    async def _status_of(self, name: str) -> ActorStatus:
        dispatcher = self._dispatchers.get(name)
        return ActorStatus("") if dispatcher is None else await dispatcher.status()

    async def ready(self) -> int | Failure:
        """Return the process id once the actors are built, or the error in their input."""
        interval_s = self._setup.metrics_interval_s
        if interval_s and not self._failure and self._publishing is None:
            # Only a joined cluster collects metrics.
            from roadstead.actors.runtime.ray_metrics import MetricsPublisher

            readers = {name: partial(self._status_of, name) for name in self._dispatchers}
            publisher = MetricsPublisher(self._setup.run, readers)
            self._publishing = asyncio.create_task(publisher.run(interval_s))
        return self._failure or os.getpid()
