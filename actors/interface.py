"""The interface between actors and runtimes.

An actor is a plain class whose handlers are async methods with one message and one reply. A
`Method` names a handler and the types of both; a caller has a `Ref` and uses `call`. Actors run on
a runtime: `inline` (one mailbox task per actor, in this process) or `ray` (one process per group of
actors). Both encode and decode every message, so that no object is shared by accident.

    caller ── Ref.call(METHOD, message, timeout_s) ──► Envelope bytes ──► Dispatcher.receive
           ◄──────────── reply, or the error ───────── Envelope bytes ◄── handler(message)
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from roadstead.protocol.codec import Envelope, from_wire, to_message
from roadstead.protocol.errors import (
    IllegalTransitionError,
    InputError,
    RoadsteadError,
    UnsupportedError,
)
from roadstead.protocol.plain_data import CodecError, DecodeLimits
from roadstead.report.ray_nodes import RayNodeUse

Q = TypeVar("Q")
"""Type of a method's message (question)."""
A = TypeVar("A")
"""Type of its reply (answer)."""

ERROR = "error"
REPLY = "reply"
"""`Envelope.kind` of replies; that of a message is the name of its method."""

UNEXPECTED = "UnexpectedError"
"""`Failure.kind` of an exception that is no RoadsteadError: a mistake in the program."""

BUGS = frozenset({UNEXPECTED, IllegalTransitionError.__name__})
"""Failures that are mistakes in the program: logged with traceback and transcript. All others are
errors of input or operation, whose text is enough."""

TRANSCRIPT = "\nThe last messages of "
"""The text of a failure in `BUGS` ends with the actor's transcript, which begins so."""


class ActorError(RoadsteadError):
    """The handler of an actor failed."""


class ActorLostError(RoadsteadError):
    """An actor no longer runs: its process ended, or it was stopped."""


class FencedError(RoadsteadError):
    """A message was sent by an earlier incarnation of an actor that has been replaced."""


class NoNodeError(RoadsteadError):
    """No node of the Ray cluster had room for a process before the deadline."""


class DeadlineError(RoadsteadError):
    """An actor did not answer in time."""


class RunFailedError(RoadsteadError):
    """A run ended early; the text names the actor that failed, what it had done, and why."""


@dataclass(frozen=True, slots=True)
class Method(Generic[Q, A]):
    """Name of a handler, with the types of its message and its reply."""

    name: str
    message: type[Q]
    reply: type[A]


@dataclass(frozen=True, slots=True)
class Nothing:
    """A message or a reply without content."""


NOTHING = Nothing()


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception of a handler as it is sent to the caller.

    kind: its type. parts: its fields, for the types that `decode_failure` builds from them.
    """

    kind: str
    text: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stamp:
    """Sender of a message and the epoch of its incarnation; a sender of epoch 0 is never fenced."""

    sender: str = ""
    epoch: int = 0

    def envelope(self, kind: str, message: object) -> bytes:
        """Return the encoded envelope of a message."""
        body = to_message(message)
        return Envelope(kind, seq=0, epoch=self.epoch, token=self.sender, body=body).encode()


UNFENCED = Stamp()
"""The stamp of senders that are never replaced."""


class Ref(Protocol):
    """Reference to an actor, on any runtime."""

    @property
    def name(self) -> str: ...

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        """Send a message and return the reply.

        Raises ActorError, ActorLostError, DeadlineError, or the error that the handler raised.
        """
        ...

    def begin(
        self, method: Method[Q, A], message: Q, *, timeout_s: float
    ) -> Coroutine[Any, Any, A]:
        """As `call`, but on Ray the message is sent before this returns, not when it is awaited."""
        ...


SENDS = 10
"""Number of times that a `ResendingRef` sends a message before it raises."""


@dataclass(frozen=True, slots=True)
class ResendingRef:
    """A Ref that resends: for messages that may be received twice.

    A message is sent again after a missed deadline, and after the actor ended, since the supervisor
    may replace it. Only the supervisor, which watches all actors, decides whether one is lost.
    """

    ref: Ref

    @property
    def name(self) -> str:
        return self.ref.name

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        """Return the reply; raises the error of the last of `SENDS` sends if all of them fail."""
        for _ in range(SENDS - 1):
            with contextlib.suppress(DeadlineError, ActorLostError):
                return await self.ref.call(method, message, timeout_s=timeout_s)
        return await self.ref.call(method, message, timeout_s=timeout_s)

    def begin(
        self, method: Method[Q, A], message: Q, *, timeout_s: float
    ) -> Coroutine[Any, Any, A]:
        return self.call(method, message, timeout_s=timeout_s)


class Directory(Protocol):
    """Lookup of actors by name; every actor is built with one."""

    def find(self, name: str, stamp: Stamp = UNFENCED) -> Ref:
        """Return a Ref to a running actor; its messages carry the stamp."""
        ...


Factory = Callable[[Directory], object]
"""Builder of an actor, called in the process where it runs."""


Announce = Callable[[str], None]
"""Receiver of messages for the user."""


class Runtime(Directory, Protocol):
    """Interface that starts, looks up and ends actors: inline, Ray or simulated."""

    def report_to(self, announce: Announce) -> None:
        """Send messages for the user, such as what a start waits for, to this function."""
        ...

    async def start(
        self, groups: Mapping[str, Mapping[str, Factory]], *, timeout_s: float
    ) -> dict[str, Ref]:
        """Start actors by name, each group in its own process; return once all of them answer."""
        ...

    def lost(self) -> str:
        """Return which process of the runtime itself ended, and how; "" while all run."""
        ...

    def journal_lost(self) -> str:
        """Return how the node whose disk has the journal was lost; "" while it answers."""
        ...

    def journal_node(self) -> str:
        """Return the node whose disk has the journal; "" if there is only one."""
        ...

    def node_of(self, name: str) -> str:
        """Return the node of a started actor, for messages; "" if there is only one."""
        ...

    def ray_nodes(self) -> tuple[RayNodeUse, ...]:
        """Return the nodes of the Ray cluster that the run joined, with their processes.

        () for a run on this machine alone: inline, or on a Ray that it started itself.
        """
        ...

    async def room_for_workers(self, others: Sequence[str] = ()) -> int | None:
        """Return how many further workers fit on the cluster that the run joined.

        others: names of processes that must fit, too. None on one machine.
        """
        ...

    def move_journal(self) -> None:
        """Record that the copy of the journal, on its node, has become the journal."""
        ...

    async def kill(self, name: str) -> None: ...

    async def retire(self, name: str) -> None:
        """End an actor that still answers; its process may be kept for the next incarnation."""
        ...

    async def gather_logs(self, *, timeout_s: float) -> None:
        """Copy logs that processes wrote on other machines to this one; report missing ones."""
        ...

    async def stop(self) -> None: ...


def ignore_message(_: str) -> None:
    """Ignore a message for the user: an `Announce` until a run sets another one."""


def clock_s() -> float:
    """Return the time of the running loop in seconds; in a simulation it is virtual."""
    return asyncio.get_running_loop().time()


def deadline_error(actor: str, method_name: str, timeout_s: float) -> DeadlineError:
    return DeadlineError(f"{actor} did not answer {method_name} within {timeout_s:g} s")


METHODS: dict[str, Method[object, object]] = {}
"""All declared methods by name."""


def method(name: str, message: type[Q], reply: type[A]) -> Method[Q, A]:
    """Declare a method, once for all actors; names are unique."""
    assert name not in METHODS, f"method {name} is declared twice"
    declared = Method(name, message, reply)
    METHODS[name] = declared  # type: ignore[assignment]
    return declared


def encode_failure(failure: BaseException) -> Failure:
    """Encode an exception for the caller. The text of an unexpected one names its line of code."""
    if isinstance(failure, InputError):
        fields = (failure.rule, failure.source, failure.obj, failure.field, failure.value)
        return _failure("InputError", str(failure), fields)
    if isinstance(failure, UnsupportedError):
        needed = (failure.plugin, failure.obj, failure.field)
        return _failure("UnsupportedError", str(failure), needed)
    if isinstance(failure, RoadsteadError):
        return _failure(type(failure).__name__, str(failure))
    innermost = traceback.extract_tb(failure.__traceback__)[-1:]
    where = f" at {innermost[0].name}:{innermost[0].lineno}" if innermost else ""
    return _failure(UNEXPECTED, f"{type(failure).__name__}: {failure}{where}")


def _failure(kind: str, text: str, parts: tuple[str, ...] = ()) -> Failure:
    """Return a Failure that can be sent: characters that UTF-8 cannot encode are escaped."""
    text, *escaped = (each.encode(errors="backslashreplace").decode() for each in (text, *parts))
    return Failure(kind, text, tuple(escaped))


def decode_failure(actor: str, failure: Failure) -> RoadsteadError:
    """Return the exception that the caller raises for a failure of the handler."""
    if failure.kind == "InputError" and len(failure.parts) == 5:
        rule, source, obj, field, value = failure.parts
        return InputError(rule, source=source, obj=obj, field=field, value=value)
    if failure.kind == "UnsupportedError" and len(failure.parts) == 3:
        return UnsupportedError(*failure.parts)
    error_types: dict[str, type[RoadsteadError]] = {
        each.__name__: each for each in (ActorLostError, DeadlineError, FencedError)
    }
    if failure.kind in error_types:
        return error_types[failure.kind](failure.text)
    return ActorError(f"{actor}: {failure.text}")


def decode_reply(actor: str, declared: Method[Q, A], data: bytes, limits: DecodeLimits) -> A:
    """Decode a reply. Raises the handler's error if it is one, CodecError if it is no reply."""
    envelope = Envelope.decode(data, limits, typed=True)
    if envelope.kind == ERROR:
        raise decode_failure(actor, from_wire(Failure, envelope.body))
    if envelope.kind != REPLY:
        raise CodecError(f"{actor} answered with {envelope.kind!r}")
    return from_wire(declared.reply, envelope.body)
