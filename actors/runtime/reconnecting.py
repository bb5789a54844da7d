"""Refs that reconnect to replaced actors, and name sender and epoch in each message."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from roadstead.actors.interface import (
    A,
    ActorLostError,
    Directory,
    Factory,
    Method,
    Q,
    Ref,
    Stamp,
    clock_s,
)

FIND_AGAIN_S = 0.05
"""Pause between two lookups of an actor that is being replaced."""


class ReconnectingRef:
    """A Ref to the current incarnation of an actor; for messages that may be received twice.

    If an incarnation ends without answering, the message is sent to the next one, even though the
    ended one may have handled it.
    """

    def __init__(self, name: str, find: Callable[[], Ref]) -> None:
        self._name = name
        self._find = find
        self._ref: Ref | None = None

    @property
    def name(self) -> str:
        return self._name

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        """Return the reply. ActorLostError if no incarnation runs for `timeout_s`."""
        return await self.begin(method, message, timeout_s=timeout_s)

    def begin(
        self, method: Method[Q, A], message: Q, *, timeout_s: float
    ) -> Coroutine[Any, Any, A]:
        begun: Coroutine[Any, Any, A] | None = None
        # If the actor has ended, `_reply` looks it up again.
        with contextlib.suppress(ActorLostError):
            begun = self._current().begin(method, message, timeout_s=timeout_s)
        return self._reply(begun, method, message, timeout_s)

    def _current(self) -> Ref:
        """Return the Ref to the incarnation that was found last; look one up if there is none."""
        if self._ref is None:
            self._ref = self._find()
        return self._ref

    async def _reply(
        self,
        begun: Coroutine[Any, Any, A] | None,
        method: Method[Q, A],
        message: Q,
        timeout_s: float,
    ) -> A:
        until_s = clock_s() + timeout_s
        while True:
            try:
                if begun is None:
                    begun = self._current().call(method, message, timeout_s=timeout_s)
                return await begun
            except ActorLostError:
                begun = None
                self._ref = None
                if clock_s() >= until_s:
                    raise
                await asyncio.sleep(FIND_AGAIN_S)


@dataclass(frozen=True, slots=True)
class ReconnectingDirectory:
    """The directory of one incarnation of an actor. stamp: sender and epoch of its messages."""

    directory: Directory
    stamp: Stamp

    def find(self, name: str, stamp: Stamp | None = None) -> Ref:
        return ReconnectingRef(name, lambda: self.directory.find(name, stamp or self.stamp))


@dataclass(frozen=True, slots=True)
class IncarnationFactory:
    """A Factory of one incarnation of an actor: `build` with a directory that stamps messages."""

    build: Factory
    name: str
    epoch: int

    def __call__(self, directory: Directory) -> object:
        return self.build(ReconnectingDirectory(directory, Stamp(self.name, self.epoch)))
