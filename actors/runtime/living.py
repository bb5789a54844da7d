"""Ways to actors that may be replaced: found anew when they are gone, stamped with who sends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from roadstead.actors.seam import (
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
"""How long to wait between two looks for an actor that is being replaced."""


class LivingRef:
    """A Ref to whatever life of an actor there is; for messages that may come twice.

    What a life took before it ended may have been done: the next one is told again.
    """

    def __init__(self, name: str, find: Callable[[], Ref]) -> None:
        self._name = name
        self._find = find
        self._ref: Ref | None = None

    @property
    def name(self) -> str:
        return self._name

    async def call(self, method: Method[Q, A], message: Q, *, timeout_s: float) -> A:
        """The reply. ActorLostError when none is there for `timeout_s`; else as any Ref."""
        until_s = clock_s() + timeout_s
        while True:
            try:
                if self._ref is None:
                    self._ref = self._find()
                return await self._ref.call(method, message, timeout_s=timeout_s)
            except ActorLostError:
                self._ref = None
                if clock_s() >= until_s:
                    raise
                await asyncio.sleep(FIND_AGAIN_S)


@dataclass(frozen=True, slots=True)
class LivingDirectory:
    """The directory of one life of an actor."""

    directory: Directory
    stamp: Stamp

    def find(self, name: str, stamp: Stamp | None = None) -> Ref:
        return LivingRef(name, lambda: self.directory.find(name, stamp or self.stamp))


@dataclass(frozen=True, slots=True)
class Life:
    """A Factory of one life of an actor: `build` as it is, with a directory that stamps."""

    build: Factory
    name: str
    epoch: int

    def __call__(self, directory: Directory) -> object:
        return self.build(LivingDirectory(directory, Stamp(self.name, self.epoch)))
