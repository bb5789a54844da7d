"""Refs to actors in Ray processes, and the calls that they make.

A Ref is the address of one of the run's actors (`actors/interface.py`), not Ray's ObjectRef. A Ray
process, itself an actor of Ray, hosts one or several of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnavailableError, RayActorError, RayError

from roadstead.actors.interface import (
    UNFENCED,
    A,
    ActorLostError,
    Method,
    Q,
    Stamp,
    deadline_error,
    decode_reply,
)
from roadstead.actors.runtime.ray_joining import first_line
from roadstead.protocol.plain_data import DecodeLimits

T = TypeVar("T")
"""Type of a reply."""

POLL_S = 0.1
"""Interval between two checks of whether the node of a called actor is lost."""

PART_BYTES = 90 * 1024
"""Longest argument of a call on a Ray cluster that the run did not start itself. Ray writes an
argument of more than 100 KiB into its object store, which takes longer. The store is part of the
raylet, and while the raylet does not answer, the write blocks the calling process."""

RETRY_PAUSE_S = 0.05
"""Pause before a lost call is repeated."""


@dataclass(frozen=True, slots=True)
class RayRef:
    """A Ref to an actor in a Ray process.

    handle: of the process; name: of the actor in it. stamp: the sender that each message names,
    UNFENCED if it is never replaced. part_bytes: longest argument of a call, 0 for any. host_lost:
    returns why the actor's node counts as lost, "" while it answers; None if the node is not
    watched.
    """

    name: str
    handle: ActorHandle
    limits: DecodeLimits
    stamp: Stamp = UNFENCED
    part_bytes: int = 0
    host_lost: Callable[[], str] | None = None

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        send = self._send(self.stamp.envelope(method.name, message))
        return await self._reply(method, send, None, timeout_s)

    def begin(
        self, method: Method[Q, A], message: Q, *, timeout_s: float
    ) -> Coroutine[Any, Any, A]:
        """Send a request at once; the coroutine awaits the reply."""
        send = self._send(self.stamp.envelope(method.name, message))
        sent: Awaitable[bytes] | None = None
        with contextlib.suppress(RayError):
            # If this fails, the coroutine sends again, and raises the error of that attempt.
            sent = send()
        return self._reply(method, send, sent, timeout_s)

    def _send(self, data: bytes) -> Callable[[], Awaitable[bytes]]:
        parts = parts_of(data, self.part_bytes)
        return partial(self.handle.receive.remote, self.name, *parts)

    async def _reply(
        self,
        method: Method[Q, A],
        send: Callable[[], Awaitable[bytes]],
        sent: Awaitable[bytes] | None,
        timeout_s: float,
    ) -> A:
        try:
            async with asyncio.timeout(timeout_s):
                call = call_until_available(send, sent)
                reply = await reply_unless_lost(self.host_lost, self.name, call)
        except TimeoutError:
            raise deadline_error(self.name, method.name, timeout_s) from None
        except RayActorError as lost:
            raise ActorLostError(f"{self.name} is gone: {first_line(lost)}") from None
        except RayError as failure:
            raise ActorLostError(f"{self.name} cannot be reached: {first_line(failure)}") from None
        return decode_reply(self.name, method, reply, self.limits)


@dataclass(frozen=True, slots=True)
class RayDirectory:
    """Lookup of the actors of one run by name; sent to each of its actors.

    run: unique name of the run, and part of the names of its Ray actors, because several runs may
    share a namespace. hosts: actor → name of its process; an actor that is not in it has a process
    of the same name. part_bytes: as for `RayRef`.
    """

    run: str
    namespace: str
    limits: DecodeLimits
    hosts: Mapping[str, str]
    part_bytes: int = 0

    def find(self, name: str, stamp: Stamp = UNFENCED) -> RayRef:
        """Return a Ref to a running actor. ActorLostError if there is none of this name."""
        try:
            host = ray_name(self.run, self.hosts.get(name, name))
            handle = ray.get_actor(host, namespace=self.namespace)
        except ValueError:
            raise ActorLostError(f"there is no actor {name}") from None
        return RayRef(name, handle, self.limits, stamp, self.part_bytes)


def ray_name(run: str, process: str) -> str:
    """Return the name of the Ray actor that is a process of a run."""
    return f"{run}.{process}"


async def reply_unless_lost(
    host_lost: Callable[[], str] | None, name: str, reply: Coroutine[object, object, T]
) -> T:
    """Return the reply of an actor. ActorLostError as soon as its node is lost.

    Ray itself would wait for the reply until its own check of the node fails, after 16 s.
    """
    if host_lost is None:
        return await reply
    task = asyncio.ensure_future(reply)
    try:
        while not task.done():
            if why := host_lost():
                raise ActorLostError(f"{name} is gone: {why}")
            await asyncio.wait({task}, timeout=POLL_S)
        return await task
    finally:
        task.cancel()


async def call_until_available(
    call: Callable[[], Awaitable[T]], begun: Awaitable[T] | None = None
) -> T:
    """Return the reply to a call; repeated while Ray loses it, so it may be received twice.

    begun: the first call, if it is made already.
    """
    while True:
        try:
            return await (call() if begun is None else begun)
        except ActorUnavailableError:
            begun = None
            await asyncio.sleep(RETRY_PAUSE_S)


def parts_of(data: bytes, part_bytes: int) -> tuple[bytes, ...]:
    """Return the parts of a message, each an argument of the call. part_bytes: 0 for one part."""
    if not part_bytes or len(data) <= part_bytes:
        return (data,)
    starts = range(0, len(data), part_bytes)
    return tuple(data[start : start + part_bytes] for start in starts)
