"""Calls of users' plugins that are under way in a process, and those that are made no more.

    enter ──► the call ──► leave            a watch looks at `current` from another thread
                  ▲
                  └── interrupt (deadline)   a call that never returns leaves a mark on disk, which
                                             the next life of the process reads: `ended`

A plugin that was interrupted, or with which its process ended, is struck: for one class of pods it
is not asked again after MAX_FOR_CLASS strikes; once the process has MAX_IN_PROCESS, no plugin that
has any is asked at all. So neither a pod nor a run can be kept by a plugin for ever.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from roadstead.facts.pod import PodFacts
from roadstead.facts.wire import facts_out
from roadstead.nodes.pod_class import PodClass

MAX_FOR_CLASS = 2
MAX_IN_PROCESS = 4
"""Below the number of times that an actor is replaced in a minute (`actors.replacing.Budget`)."""

_ABSORB_S, _ABSORB_TIMES = 0.001, 1000


class PluginInterrupt(BaseException):
    """Raised in a plugin's thread where its time is over; no `except Exception` keeps it."""


class NotAskedError(Exception):
    """A plugin is not asked any more. The text says why."""


@dataclass(slots=True, eq=False)
class PluginCall:
    """One call. thread: in which it runs. facts: of the pod, where the method is given one."""

    plugin: str
    point: str
    thread: int
    facts: PodFacts | None
    is_interrupted: bool = False
    is_delivered: bool = False

    @property
    def pod_class(self) -> str:
        """Equal for pods of equal facts, in any process."""
        if self.facts is None:
            return ""
        return hashlib.blake2b(facts_out(self.facts), digest_size=8).hexdigest()


class PluginCalls:
    """The calls of this process. Only the outermost call of a thread is noted.

    mark: writes what is under way where it outlives the process, and None once it is over.
    limit_s: what a deadline is said to have been.
    """

    def __init__(self) -> None:
        self.current: PluginCall | None = None
        self.mark: Callable[[PluginCall | None], None] | None = None
        self.limit_s = 0.0
        self._lock = threading.Lock()
        self._strikes: Counter[tuple[str, str]] = Counter()
        self._why: dict[str, str] = {}

    def enter(self, plugin: str, point: str, args: tuple[object, ...]) -> PluginCall | None:
        """Note a call; None for one within another. NotAskedError where it is not made any more."""
        if self.current is not None:
            return None
        call = PluginCall(plugin, point, threading.get_ident(), facts_of(args))
        if self._strikes:
            self._check(call)
        if self.mark is not None:
            self.mark(call)
        self.current = call
        return call

    def leave(self, call: PluginCall) -> None:
        """The call is over. PluginInterrupt where it was to be interrupted, and was not yet."""
        with self._lock:
            self.clear()
        if call.is_interrupted and not call.is_delivered:
            # It is on its way to this thread, and must not arrive anywhere else.
            for _ in range(_ABSORB_TIMES):
                time.sleep(_ABSORB_S)
            raise PluginInterrupt

    def clear(self) -> None:
        """No call is under way."""
        self.current = None
        if self.mark is not None:
            self.mark(None)

    def interrupt(self, call: PluginCall, interrupt: Callable[[int], None]) -> None:
        """Interrupt a call that is still under way. interrupt: given its thread."""
        with self._lock:
            if self.current is not call or call.is_interrupted:
                return
            call.is_interrupted = True
            # Before the interrupt: the thread may make its next call at once.
            self.strike(call.plugin, call.pod_class, f"did not return within {self.limit_s:g} s")
            interrupt(call.thread)

    def strike(self, plugin: str, pod_class: str, why: str) -> None:
        """A plugin was interrupted, or ended its process, with a class of pods."""
        self._strikes[plugin, pod_class] += 1
        self._why[plugin] = why

    def forget(self) -> None:
        """No strike counts any more, as in another process."""
        self._strikes.clear()
        self._why.clear()

    def _check(self, call: PluginCall) -> None:
        why = self._why.get(call.plugin)
        if why is None:
            return
        if self._strikes[call.plugin, call.pod_class] >= MAX_FOR_CLASS:
            raise NotAskedError(f"is not asked about such pods any more: it {why}")
        if self._strikes.total() >= MAX_IN_PROCESS:
            raise NotAskedError(f"is not asked any more: it {why}")


def facts_of(args: tuple[object, ...]) -> PodFacts | None:
    """The facts of the pod that a method was given; None where it was given none."""
    for each in args:
        if isinstance(each, PodClass):
            return each.facts
        if isinstance(each, PodFacts):
            return each
    return None


CALLS = PluginCalls()
"""Of this process: threads and signals, too, are the process' own."""
