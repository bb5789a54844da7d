"""The simulated runtime: actors of this process whose messages pass through a faulty network.

It is the inline runtime with a `Network` between caller and mailbox, to be run on a VirtualLoop.
An actor that crashes takes with it every task that it started; what it sends afterwards goes
nowhere. One seed gives one run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass

from roadstead.actors.runtime.dispatch import Dispatcher
from roadstead.actors.runtime.simulated_network import Network
from roadstead.actors.runtime.virtual_time import VirtualLoop
from roadstead.actors.seam import (
    NOBODY,
    A,
    ActorLostError,
    Factory,
    Method,
    Q,
    Ref,
    Stamp,
    late,
    open_reply,
)
from roadstead.protocol.codec import Limits

OUTSIDE = "client"
"""The caller of whoever is no actor."""

_life: ContextVar[SimulatedActor | None] = ContextVar("life", default=None)


class SimulatedActor:
    """One life of an actor: its handlers, its tasks in the order of their start, what it owes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.actor: object = None
        self._dispatcher: Dispatcher | None = None
        self._tasks: dict[asyncio.Task[object], None] = {}
        self._owed: dict[asyncio.Future[bytes], None] = {}

    def live(self, build: Callable[[], object], limits: Limits) -> None:
        """Builds the actor; tasks that it starts are its own from here on."""
        token = _life.set(self)
        try:
            self.actor = build()
        finally:
            _life.reset(token)
        self._dispatcher = Dispatcher(self.name, self.actor, limits)

    def adopt(self, task: asyncio.Task[object]) -> None:
        """A task ends with this life at the latest."""
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def owe(self, future: asyncio.Future[bytes]) -> None:
        """Whoever waits for this reply learns of the end."""
        self._owed[future] = None
        future.add_done_callback(lambda done: self._owed.pop(done, None))

    def handle(self, data: bytes, answer: Callable[[bytes], None]) -> None:
        """Starts the handler of one message, in the order of calls."""
        assert self._dispatcher is not None
        token = _life.set(self)
        try:
            _keep(asyncio.create_task(_answer(self._dispatcher.receive(data), answer)))
        finally:
            _life.reset(token)

    def end(self) -> None:
        """A crash: nothing in flight is answered, nothing goes on."""
        self.is_alive = False
        for task in list(self._tasks):
            task.cancel()
        for future in list(self._owed):
            if not future.done():
                future.set_exception(ActorLostError(f"{self.name} is gone"))


_running: set[asyncio.Task[None]] = set()


def _keep(task: asyncio.Task[None]) -> None:
    _running.add(task)
    task.add_done_callback(_running.discard)


async def _answer(handling: Awaitable[bytes], answer: Callable[[bytes], None]) -> None:
    answer(await handling)


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: object, **how: object
) -> asyncio.Task[object]:
    """A task factory that gives every task to the life in which it starts."""
    task: asyncio.Task[object] = asyncio.Task(coroutine, loop=loop, **how)  # type: ignore[arg-type]
    life = _life.get()
    if life is not None:
        life.adopt(task)
    return task


@dataclass(frozen=True, slots=True)
class SimulatedRef:
    """A Ref through the network. source: who calls; life: None for one who is no actor."""

    runtime: SimulatedRuntime
    name: str
    source: str
    life: SimulatedActor | None = None
    stamp: Stamp = NOBODY

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        data = self.stamp.envelope(method.name, message)
        ended = self.runtime.called(self.name, method.name, message)
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._ask(method.name, data)
        except TimeoutError:
            raise late(self.name, method.name, timeout_s) from None
        answer = open_reply(self.name, method, reply, self.runtime.limits)
        if ended is not None:
            ended(answer)
        return answer

    async def _ask(self, kind: str, data: bytes) -> bytes:
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        network = self.runtime.network

        def arrive() -> None:
            target = self.runtime.lives.get(self.name)
            if target is None or not target.is_alive:
                if not future.done():
                    future.set_exception(ActorLostError(f"{self.name} is gone"))
                return
            if not future.done():
                target.owe(future)
            target.handle(data, lambda reply: answer(target, reply))

        def answer(target: SimulatedActor, reply: bytes) -> None:
            if target.is_alive:
                self.runtime.listen(kind, reply)
                network.send(self.name, self.source, f"{kind} reply", lambda: hear(reply))

        def hear(reply: bytes) -> None:
            if not future.done():
                future.set_result(reply)

        if self.life is None or self.life.is_alive:
            network.send(self.source, self.name, kind, arrive)
        return await future


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """The directory of one life of an actor."""

    runtime: SimulatedRuntime
    life: SimulatedActor

    def find(self, name: str, stamp: Stamp = NOBODY) -> Ref:
        return SimulatedRef(self.runtime, name, self.life.name, self.life, stamp)


class SimulatedRuntime:
    """Starts, finds, crashes and ends actors. Make it on the running loop.

    instead: factories by actor name that stand for those it is told to start. listen: is told of
    every reply (method, bytes) as it leaves an actor. called: gets each call (actor, method,
    message) as its caller makes it, and returns what is to get the answer, if anything.
    """

    def __init__(
        self, network: Network, limits: Limits, instead: Mapping[str, Factory] | None = None
    ) -> None:
        self.network = network
        self.limits = limits
        self.lives: dict[str, SimulatedActor] = {}
        self.listen: Callable[[str, bytes], None] = lambda kind, reply: None
        self.called: Callable[[str, str, object], Callable[[object], None] | None] = (
            lambda name, method, message: None
        )
        self._instead = dict(instead or {})
        self._processes: list[tuple[str, ...]] = []
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "simulated actors live in virtual time"
        loop.set_task_factory(_make_task)  # type: ignore[arg-type]
        loop.late_s = self._late_s

    async def start(
        self, groups: Mapping[str, Mapping[str, Factory]], *, timeout_s: float
    ) -> dict[str, Ref]:
        """New actors by name; one that has ended may be started again."""
        begun = [tuple(builds) for builds in groups.values()]
        again = {name for names in begun for name in names}
        self._processes = [names for names in self._processes if not again & set(names)] + begun
        for name, build in (each for builds in groups.values() for each in builds.items()):
            before = self.lives.get(name)
            assert before is None or not before.is_alive, f"{name} is running"
            life = SimulatedActor(name)
            chosen = self._instead.get(name, build)
            life.live(lambda chosen=chosen, life=life: chosen(_Neighbours(self, life)), self.limits)  # type: ignore[misc]
            self.lives[name] = life
            self.network.note("start", name)
        return {name: self.find(name) for builds in groups.values() for name in builds}

    def find(self, name: str, stamp: Stamp = NOBODY) -> Ref:
        """A way to an actor, for whoever looks on."""
        return SimulatedRef(self, name, "supervisor", stamp=stamp)

    def find_from(self, name: str, source: str) -> Ref:
        """A way to an actor for someone who is no actor."""
        return SimulatedRef(self, name, source)

    def _late_s(self) -> float:
        """How late a timer is that is set now: one of an actor, by the network's faults."""
        return self.network.late_s() if _life.get() is not None else 0.0

    def lost(self) -> str:
        """What carries the actors does not fail here; they do."""
        return ""

    async def kill(self, name: str) -> None:
        """Ends an actor at once, if it has not ended by itself."""
        if self.lives[name].is_alive:
            self.lives[name].end()
            self.network.gone(name)

    async def crash(self, name: str) -> None:
        """A process ends at once, with all actors that were started in it."""
        self.network.happens("crash", name)
        (together,) = [names for names in self._processes if name in names]
        for each in together:
            await self.kill(each)

    async def stop(self) -> None:
        """Ends all actors."""
        for life in self.lives.values():
            life.end()
        self.lives.clear()
        await asyncio.sleep(0)
