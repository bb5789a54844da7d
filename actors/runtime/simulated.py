"""The simulated runtime: actors of this process that exchange messages over a faulty network.

It is the inline runtime with a `Network` between caller and handler, on a VirtualLoop. When an
actor crashes, all tasks that it started are cancelled, and its later messages are dropped. The same
seed gives the same run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
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
from roadstead.actors.runtime.simulated_network import Network
from roadstead.actors.runtime.virtual_time import VirtualLoop
from roadstead.protocol.plain_data import DecodeLimits
from roadstead.report.ray_nodes import RayNodeUse

OUTSIDE = "client"
"""Name of a caller that is no actor."""

_current_incarnation: ContextVar[SimulatedActor | None] = ContextVar("incarnation", default=None)
"""The incarnation whose code runs now; a new task copies it, as every context variable."""


class SimulatedActor:
    """One incarnation of an actor: its handlers, its tasks in start order, and pending replies."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.actor: object = None
        self._dispatcher: Dispatcher | None = None
        self._tasks: dict[asyncio.Task[object], None] = {}
        self._pending: dict[asyncio.Future[bytes], None] = {}

    def build_actor(self, build: Callable[[], object], limits: DecodeLimits) -> None:
        """Build the actor; tasks that it starts now or later belong to this incarnation."""
        before = _current_incarnation.set(self)
        try:
            self.actor = build()
        finally:
            _current_incarnation.reset(before)
        self._dispatcher = Dispatcher(self.name, self.actor, limits)

    def adopt(self, task: asyncio.Task[object]) -> None:
        """Cancel a task when this incarnation ends."""
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def fail_on_end(self, future: asyncio.Future[bytes]) -> None:
        """Fail this future when this incarnation ends."""
        self._pending[future] = None
        future.add_done_callback(lambda done: self._pending.pop(done, None))

    def handle(self, data: bytes, answer: Callable[[bytes], None]) -> None:
        """Start the handler of one message, in the order of calls."""
        assert self._dispatcher is not None
        before = _current_incarnation.set(self)
        try:
            _keep_running(asyncio.create_task(_answer(self._dispatcher.receive(data), answer)))
        finally:
            _current_incarnation.reset(before)

    def end(self) -> None:
        """Crash: cancel all tasks; pending calls raise ActorLostError."""
        self.is_alive = False
        for task in list(self._tasks):
            task.cancel()
        self.cut_off()

    def cut_off(self) -> None:
        """Make pending calls raise ActorLostError, as if the node of the actor were lost."""
        for future in list(self._pending):
            if not future.done():
                future.set_exception(ActorLostError(f"{self.name} is gone"))


_running: set[asyncio.Task[None]] = set()
"""Handlers that run: the loop itself has only weak references to tasks."""


def _keep_running(task: asyncio.Task[None]) -> None:
    _running.add(task)
    task.add_done_callback(_running.discard)


async def _answer(handling: Awaitable[bytes], answer: Callable[[bytes], None]) -> None:
    answer(await handling)


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: object, **options: object
) -> asyncio.Task[object]:
    """Task factory that assigns every task to the incarnation that starts it."""
    task: asyncio.Task[object] = asyncio.Task(coroutine, loop=loop, **options)  # type: ignore[arg-type]
    incarnation = _current_incarnation.get()
    if incarnation is not None:
        incarnation.adopt(task)
    return task


@dataclass(frozen=True, slots=True)
class SimulatedRef:
    """A Ref over the network. source, incarnation: name and incarnation of the caller (or None)."""

    runtime: SimulatedRuntime
    name: str
    source: str
    incarnation: SimulatedActor | None = None
    stamp: Stamp = UNFENCED

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        data = self.stamp.envelope(method.name, message)
        on_answer = self.runtime.on_call(self.name, method.name, message)
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._exchange(method.name, data)
        except TimeoutError:
            raise deadline_error(self.name, method.name, timeout_s) from None
        answer = decode_reply(self.name, method, reply, self.runtime.limits)
        if on_answer is not None:
            on_answer(answer)
        return answer

    def begin(
        self, method: Method[Q, A], message: Q, *, timeout_s: float
    ) -> Coroutine[Any, Any, A]:
        return self.call(method, message, timeout_s=timeout_s)

    async def _exchange(self, kind: str, data: bytes) -> bytes:
        """Return the reply; waits forever if the network loses the request or the reply."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        network = self.runtime.network

        def arrive() -> None:
            target = self.runtime.incarnations.get(self.name)
            if target is None or not target.is_alive:
                if not future.done():
                    future.set_exception(ActorLostError(f"{self.name} is gone"))
                return
            if not future.done():
                target.fail_on_end(future)
            target.handle(data, lambda reply: answer(target, reply))

        def answer(target: SimulatedActor, reply: bytes) -> None:
            if target.is_alive:
                self.runtime.on_reply(kind, reply)
                network.send(self.name, self.source, f"{kind} reply", lambda: deliver(reply))

        def deliver(reply: bytes) -> None:
            if not future.done():
                future.set_result(reply)

        # A process that ended sends nothing.
        if self.incarnation is None or self.incarnation.is_alive:
            network.send(self.source, self.name, kind, arrive)
        return await future


@dataclass(frozen=True, slots=True)
class _SimulatedDirectory:
    """The directory of one incarnation of an actor."""

    runtime: SimulatedRuntime
    incarnation: SimulatedActor

    def find(self, name: str, stamp: Stamp = UNFENCED) -> Ref:
        return SimulatedRef(self.runtime, name, self.incarnation.name, self.incarnation, stamp)


class SimulatedRuntime:
    """Runtime of simulated actors. Create it on the running loop.

    replacements: by actor name, factories that replace those passed to `start`. incarnations: the
    last one of each actor by name, ended or not. on_reply: called with every reply (method,
    bytes) when an actor sends it. on_call: called with every call (actor, method, message) when it
    is made; returns a callback for the answer, or None. _processes: the actors of each process,
    which crash together.
    """

    def __init__(
        self,
        network: Network,
        limits: DecodeLimits,
        replacements: Mapping[str, Factory] | None = None,
    ) -> None:
        self.network = network
        self.limits = limits
        self.incarnations: dict[str, SimulatedActor] = {}
        self.on_reply: Callable[[str, bytes], None] = lambda kind, reply: None
        self.on_call: Callable[[str, str, object], Callable[[object], None] | None] = (
            lambda name, method, message: None
        )
        self._replacements = dict(replacements or {})
        self._processes: list[tuple[str, ...]] = []
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "simulated actors need virtual time"
        loop.set_task_factory(_make_task)  # type: ignore[arg-type]
        # The loop adds this delay to each timer that is set.
        loop.late_s = self._late_s

    async def start(
        self, groups: Mapping[str, Mapping[str, Factory]], *, timeout_s: float
    ) -> dict[str, Ref]:
        """Start actors by name; one that has ended may be started again."""
        new = [tuple(builds) for builds in groups.values()]
        starting = {name for names in new for name in names}
        self._processes = [names for names in self._processes if not starting & set(names)] + new
        for name, build in (each for builds in groups.values() for each in builds.items()):
            before = self.incarnations.get(name)
            assert before is None or not before.is_alive, f"{name} is running"
            incarnation = SimulatedActor(name)
            chosen = self._replacements.get(name, build)
            incarnation.build_actor(
                lambda chosen=chosen, incarnation=incarnation: chosen(
                    _SimulatedDirectory(self, incarnation)
                ),  # type: ignore[misc]
                self.limits,
            )
            self.incarnations[name] = incarnation
            self.network.note("start", name)
        return {name: self.find(name) for builds in groups.values() for name in builds}

    def find(self, name: str, stamp: Stamp = UNFENCED) -> Ref:
        """Return a Ref to an actor, for the supervisor."""
        return SimulatedRef(self, name, "supervisor", stamp=stamp)

    def find_from(self, name: str, source: str) -> Ref:
        """Return a Ref to an actor for a caller that is no actor."""
        return SimulatedRef(self, name, source)

    def _late_s(self) -> float:
        """Return the delay of a timer that is set now: drawn for an actor's, 0 for others."""
        return self.network.late_s() if _current_incarnation.get() is not None else 0.0

    def report_to(self, announce: Announce) -> None:
        """Send nothing: actors of this process start without waiting for anything."""

    def lost(self) -> str:
        """Return "": only actors fail here, not the runtime."""
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
        """End an actor at once, unless it has ended."""
        if self.incarnations[name].is_alive:
            self.incarnations[name].end()
            self.network.gone(name)

    async def retire(self, name: str) -> None:
        """End an actor at once."""
        await self.kill(name)

    async def crash(self, name: str) -> None:
        """Crash the process of an actor, with all actors that were started in it."""
        self.network.record_fault("crash", name)
        (colocated,) = [names for names in self._processes if name in names]
        for each in colocated:
            await self.kill(each)

    async def gather_logs(self, *, timeout_s: float) -> None:
        """Do nothing: all actors log in this process."""

    async def stop(self) -> None:
        """End all actors."""
        for incarnation in self.incarnations.values():
            incarnation.end()
        self.incarnations.clear()
        await asyncio.sleep(0)
