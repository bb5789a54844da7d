"""The seam between actors and what runs them.

An actor is a plain class whose handlers are async methods; each takes one message and returns one.
A `Method` names a handler and the types on both sides; callers hold a `Ref` and `call` it. What
runs behind the Ref is a runtime: `inline` (one mailbox task per actor in this process) or `ray`
(one process per actor). Messages are packed and unpacked on both, so that aliasing cannot hide.

    caller ── Ref.call(METHOD, message, timeout_s) ──► Envelope bytes ──► Dispatcher.receive
           ◄──────────── reply, or the error ───────── Envelope bytes ◄── handler(message)
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from roadstead.protocol.codec import CodecError, Envelope, Limits, from_wire, to_wire
from roadstead.protocol.errors import (
    IllegalTransitionError,
    InputError,
    RoadsteadError,
    UnsupportedError,
)

Q = TypeVar("Q")
A = TypeVar("A")

ERROR = "error"
REPLY = "reply"

UNEXPECTED = "UnexpectedError"
"""The kind of a failure that is no error of ours: a mistake in the program."""

BUGS = frozenset({UNEXPECTED, IllegalTransitionError.__name__})
"""Kinds of failures that only a mistake in the program explains. All others are errors of input or
operation, whose text is enough."""

TRANSCRIPT = "\nThe last messages of "
"""Begins the lines on the messages before such a failure; they are the end of its text."""


class ActorError(RoadsteadError):
    """An actor could not do what it was asked: its handler failed."""


class ActorLostError(RoadsteadError):
    """An actor is gone: its process ended, or it was stopped."""


class FencedError(RoadsteadError):
    """A message came from an earlier life of its sender, which has been replaced."""


class DeadlineError(RoadsteadError):
    """An actor did not answer in time."""


class RunFailedError(RoadsteadError):
    """A run ended before its time: which actor failed, what it did, and why."""


@dataclass(frozen=True, slots=True)
class Method(Generic[Q, A]):
    """A handler by its name, with the types of its message and its reply."""

    name: str
    message: type[Q]
    reply: type[A]


@dataclass(frozen=True, slots=True)
class Nothing:
    """A message or a reply without content."""


NOTHING = Nothing()


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong on the other side, as it travels."""

    kind: str
    text: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who sends, and in which of its lives; a sender of epoch 0 is never fenced."""

    sender: str = ""
    epoch: int = 0

    def envelope(self, kind: str, message: object) -> bytes:
        """The bytes of a message."""
        return Envelope(kind, 0, self.epoch, self.sender, to_wire(message)).encode()


NOBODY = Stamp()


class Ref(Protocol):
    """A way to an actor, wherever it runs."""

    @property
    def name(self) -> str: ...

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        """The reply. ActorError, ActorLostError, DeadlineError, or the error that was raised."""
        ...


TRIES = 10
"""How often a patient caller asks before it takes an actor for lost."""


@dataclass(frozen=True, slots=True)
class PatientRef:
    """A Ref for messages that may come twice: asked again where no answer comes in time, or none
    any more because the actor ended: another one may be about to take its place.

    Whether an actor is gone is for the supervisor to say, which sees more than one caller.
    """

    ref: Ref

    @property
    def name(self) -> str:
        return self.ref.name

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        """The reply. As the last of `TRIES` messages ended, when none has come to any."""
        for _ in range(TRIES - 1):
            with contextlib.suppress(DeadlineError, ActorLostError):
                return await self.ref.call(method, message, timeout_s=timeout_s)
        return await self.ref.call(method, message, timeout_s=timeout_s)


class Directory(Protocol):
    """Finds actors by name; every actor is built with one."""

    def find(self, name: str, stamp: Stamp = NOBODY) -> Ref:
        """A way to a running actor, for the sender of the stamp."""
        ...


Factory = Callable[[Directory], object]
"""Builds an actor where it will run."""


class Runtime(Directory, Protocol):
    """Starts and ends actors."""

    async def start(
        self, groups: Mapping[str, Mapping[str, Factory]], *, timeout_s: float
    ) -> dict[str, Ref]:
        """Starts actors by name, each group in a process of its own; all of them answer then."""
        ...

    def lost(self) -> str:
        """What carries the actors and is gone for good, and how it ended; "" while it is there."""
        ...

    async def kill(self, name: str) -> None: ...

    async def stop(self) -> None: ...


def clock_s() -> float:
    """The time of the running loop, in seconds: virtual in a simulation."""
    return asyncio.get_running_loop().time()


def late(actor: str, method_name: str, timeout_s: float) -> DeadlineError:
    return DeadlineError(f"{actor} did not answer {method_name} within {timeout_s:g} s")


METHODS: dict[str, Method[object, object]] = {}


def method(name: str, message: type[Q], reply: type[A]) -> Method[Q, A]:
    """Declares a method once for all actors; names are unique."""
    assert name not in METHODS, f"method {name} is declared twice"
    declared = Method(name, message, reply)
    METHODS[name] = declared  # type: ignore[assignment]
    return declared


def failure_out(failure: BaseException) -> Failure:
    """An exception as it travels: known kinds in their parts, others as text with their place."""
    if isinstance(failure, InputError):
        place = (failure.rule, failure.source, failure.obj, failure.field, failure.value)
        return _failure("InputError", str(failure), place)
    if isinstance(failure, UnsupportedError):
        need = (failure.plugin, failure.obj, failure.field)
        return _failure("UnsupportedError", str(failure), need)
    if isinstance(failure, RoadsteadError):
        return _failure(type(failure).__name__, str(failure))
    last = traceback.extract_tb(failure.__traceback__)[-1:]
    where = f" at {last[0].name}:{last[0].lineno}" if last else ""
    return _failure(UNEXPECTED, f"{type(failure).__name__}: {failure}{where}")


def _failure(kind: str, text: str, parts: tuple[str, ...] = ()) -> Failure:
    """A Failure that can be packed: what is no text of Unicode is escaped."""
    text, *parts_out = (each.encode(errors="backslashreplace").decode() for each in (text, *parts))
    return Failure(kind, text, tuple(parts_out))


def failure_in(actor: str, failure: Failure) -> RoadsteadError:
    """The exception that a caller raises for a failure on the other side."""
    if failure.kind == "InputError" and len(failure.parts) == 5:
        rule, source, obj, field, value = failure.parts
        return InputError(rule, source=source, obj=obj, field=field, value=value)
    if failure.kind == "UnsupportedError" and len(failure.parts) == 3:
        return UnsupportedError(*failure.parts)
    known: dict[str, type[RoadsteadError]] = {
        each.__name__: each for each in (ActorLostError, DeadlineError, FencedError)
    }
    if failure.kind in known:
        return known[failure.kind](failure.text)
    return ActorError(f"{actor}: {failure.text}")


def open_reply(actor: str, declared: Method[Q, A], data: bytes, limits: Limits) -> A:
    """The reply in bytes that came back, or the error it carries."""
    envelope = Envelope.decode(data, limits, typed=True)
    if envelope.kind == ERROR:
        raise failure_in(actor, from_wire(Failure, envelope.body))
    if envelope.kind != REPLY:
        raise CodecError(f"{actor} answered with {envelope.kind!r}")
    return from_wire(declared.reply, envelope.body)
