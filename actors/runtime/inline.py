"""The inline runtime: every actor is one mailbox task in this process.

Handlers of one actor start in the order of the messages; while one awaits, the next may run, as in
an asynchronous Ray actor. A mailbox is bounded, including messages that are being handled: if it is
full, a sender waits until its deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roadstead.actors.interface import (
    UNFENCED,
    A,
    ActorLostError,
    Announce,
    Factory,
    Method,
    Q,
    Ref,
    Stamp,
    deadline_error,
    decode_reply,
)
from roadstead.actors.runtime.dispatch import Dispatcher
from roadstead.protocol.plain_data import DecodeLimits
from roadstead.report.ray_nodes import RayNodeUse

_Message = tuple[bytes, "asyncio.Future[bytes]"]
"""A received envelope, and the future of its reply."""


class InlineActor:
    """A mailbox, the task that empties it, and the futures of pending replies."""

    def __init__(self, name: str, dispatcher: Dispatcher, max_messages: int) -> None:
        self.name = name
        self.lost = False
        self._dispatcher = dispatcher
        self._free_slots = asyncio.Semaphore(max_messages)
        self._mailbox: asyncio.Queue[_Message] = asyncio.Queue()
        self._pending: set[asyncio.Future[bytes]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._start(self._run())

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=self.name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self) -> None:
        while True:
            data, future = await self._mailbox.get()
            handling = self._start(self._handle(data, future))
            handling.add_done_callback(lambda _: self._free_slots.release())

    async def _handle(self, data: bytes, future: asyncio.Future[bytes]) -> None:
        reply = await self._dispatcher.receive(data)
        if not future.done():
            future.set_result(reply)

    async def send(self, data: bytes) -> bytes:
        """Send one message and return the reply. ActorLostError if the actor ends before it."""
        await self._free_slots.acquire()
        if self.lost:
            # The next waiting sender raises at once, too.
            self._free_slots.release()
            raise ActorLostError(f"{self.name} is gone")
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        self._mailbox.put_nowait((data, future))
        return await future

    def end(self) -> None:
        """End the actor as a kill would: pending messages raise ActorLostError.

        A second call does nothing.
        """
        if self.lost:
            return
        self.lost = True
        self._dispatcher.release()
        for task in self._tasks:
            task.cancel()
        for future in list(self._pending):
            if not future.done():
                future.set_exception(ActorLostError(f"{self.name} is gone"))
        while not self._mailbox.empty():
            self._mailbox.get_nowait()
            self._free_slots.release()


@dataclass(frozen=True, slots=True)
class InlineRef:
    """A Ref to an actor of this process."""

    actor: InlineActor
    limits: DecodeLimits
    stamp: Stamp = UNFENCED

    @property
    def name(self) -> str:
        return self.actor.name

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        data = self.stamp.envelope(method.name, message)
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self.actor.send(data)
        except TimeoutError:
            raise deadline_error(self.name, method.name, timeout_s) from None
        return decode_reply(self.name, method, reply, self.limits)

    def begin(
        self, method: Method[Q, A], message: Q, *, timeout_s: float
    ) -> Coroutine[Any, Any, A]:
        return self.call(method, message, timeout_s=timeout_s)


class InlineRuntime:
    """Runtime of actors in this process."""

    def __init__(self, *, mailbox_max_messages: int, limits: DecodeLimits) -> None:
        self._mailbox_max_messages = mailbox_max_messages
        self._limits = limits
        self._actors: dict[str, InlineActor] = {}

    async def start(
        self, groups: Mapping[str, Mapping[str, Factory]], *, timeout_s: float
    ) -> dict[str, Ref]:
        """Start actors by name; all groups share this process."""
        for name, build in (each for builds in groups.values() for each in builds.items()):
            before = self._actors.get(name)
            assert before is None or before.lost, f"{name} is running"
            dispatcher = Dispatcher(name, build(self), self._limits)
            self._actors[name] = InlineActor(name, dispatcher, self._mailbox_max_messages)
        return {name: self.find(name) for builds in groups.values() for name in builds}

    def find(self, name: str, stamp: Stamp = UNFENCED) -> Ref:
        """Return a Ref to a running actor. ActorLostError if there is none of this name."""
        actor = self._actors.get(name)
        if actor is None:
            raise ActorLostError(f"there is no actor {name}")
        return InlineRef(actor, self._limits, stamp)

    def report_to(self, announce: Announce) -> None:
        """Send nothing: actors of this process start without waiting for anything."""

    def lost(self) -> str:
        """Return "": there is no process but this one."""
        return ""

    def journal_lost(self) -> str:
        """Return "": there is one node."""
        return ""

    def journal_node(self) -> str:
        """Return "": there is one node."""
        return ""

    def node_of(self, name: str) -> str:
        """Return "": there is one node."""
        return ""

    def ray_nodes(self) -> tuple[RayNodeUse, ...]:
        """Return (): there is one machine."""
        return ()

    async def room_for_workers(self, others: Sequence[str] = ()) -> int | None:
        """Return None: there is one machine."""
        return None

    def move_journal(self) -> None:
        """Note nothing: there is one node."""

    async def kill(self, name: str) -> None:
        """End an actor at once; without effect if there is none of this name."""
        if (actor := self._actors.get(name)) is not None:
            actor.end()

    async def retire(self, name: str) -> None:
        """End an actor at once."""
        await self.kill(name)

    async def gather_logs(self, *, timeout_s: float) -> None:
        """Do nothing: all actors log in this process."""

    async def stop(self) -> None:
        """End all actors."""
        for actor in self._actors.values():
            actor.end()
        self._actors.clear()
        await asyncio.sleep(0)
