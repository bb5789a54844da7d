"""The running call of a user's plugin in a process, and plugins that are no longer called.

    enter ──► the call ──► leave            a watchdog thread reads `current`
                  ▲
                  └── interrupt (deadline)   `mark` writes the running call to disk, for the
                                             process that replaces this one if the call never
                                             returns

A plugin gets a strike when it is interrupted or ends its process. After MAX_FOR_CLASS strikes for a
pod class it is not called for that class any more; once the process has MAX_IN_PROCESS strikes, no
plugin with a strike is called at all. So a plugin cannot block a pod or a run for ever.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from roadstead.facts.pod import PodFacts
from roadstead.facts.wire import encode_facts
from roadstead.nodes.pod_class import PodClass

MAX_FOR_CLASS = 2
"""Strikes of a plugin for one pod class, after which it is not called for the class any more."""
MAX_IN_PROCESS = 4
"""Strikes of all plugins in a process, after which no plugin with a strike is called any more.

An actor is replaced only so many times in a minute (`actors.supervisor.replacing.Budget`). This is
less: a plugin that ends the process is suspended before the actor is given up.
"""

_SLEEP_S, _SLEEPS_MAX = 0.001, 1000
"""Length and maximum number of the sleeps in which `leave` awaits an interrupt that is due."""


class PluginInterrupt(BaseException):
    """Raised in a plugin's thread at its deadline; `except Exception` does not catch it."""


class PluginSuspendedError(Exception):
    """A plugin is no longer called. The text contains the reason."""


@dataclass(slots=True, eq=False)
class PluginCall:
    """One call. thread: id of its thread. facts: of the pod, if the method receives one.

    point: the method's name in messages. is_interrupted: the watchdog has requested the interrupt;
    interrupt_has_arrived: it was raised in the thread.
    """

    plugin: str
    point: str
    thread: int
    facts: PodFacts | None
    is_interrupted: bool = False
    interrupt_has_arrived: bool = False

    @property
    def facts_digest(self) -> str:
        """A digest of the pod's facts, equal in all processes; "" without facts."""
        if self.facts is None:
            return ""
        return hashlib.blake2b(encode_facts(self.facts), digest_size=8).hexdigest()


class PluginCalls:
    """The calls of this process. Only the outermost call is recorded.

    mark: records the running call where it outlives the process; called with None at its end.
    limit_s: the deadline, for messages; the watchdog measures the time.
    """

    def __init__(self) -> None:
        self.current: PluginCall | None = None
        self.mark: Callable[[PluginCall | None], None] | None = None
        self.limit_s = 0.0
        self._lock = threading.Lock()
        # By plugin and digest of the pod class.
        self._strikes: Counter[tuple[str, str]] = Counter()
        # By plugin: the reason of its latest strike.
        self._why: dict[str, str] = {}

    def enter(self, plugin: str, point: str, args: tuple[object, ...]) -> PluginCall | None:
        """Record and return a call; None for a nested one.

        PluginSuspendedError if the plugin must not be called.
        """
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
        """End a call. PluginInterrupt if the watchdog interrupted it and that has not arrived."""
        with self._lock:
            self.clear()
        if call.is_interrupted and not call.interrupt_has_arrived:
            # The interrupt is pending in this thread, and must not be raised outside the call. The
            # interpreter raises it between two bytecodes, thus during one of these sleeps.
            for _ in range(_SLEEPS_MAX):
                time.sleep(_SLEEP_S)
            raise PluginInterrupt

    def clear(self) -> None:
        """Record that no call is running."""
        self.current = None
        if self.mark is not None:
            self.mark(None)

    def interrupt(self, call: PluginCall, interrupt: Callable[[int], None]) -> None:
        """Interrupt a call if it is still running. interrupt: called with the call's thread."""
        with self._lock:
            if self.current is not call or call.is_interrupted:
                return
            call.is_interrupted = True
            # Before the interrupt, because the thread may start its next call immediately after it.
            self.strike(call.plugin, call.facts_digest, f"did not return within {self.limit_s:g} s")
            interrupt(call.thread)

    def strike(self, plugin: str, facts_digest: str, why: str) -> None:
        """Count a strike: a plugin was interrupted, or ended its process, with a pod.

        facts_digest: of the pod's facts, as in `PluginCall`.
        """
        self._strikes[plugin, facts_digest] += 1
        self._why[plugin] = why

    def forget(self) -> None:
        """Clear all strikes, as a new process has none."""
        self._strikes.clear()
        self._why.clear()

    def _check(self, call: PluginCall) -> None:
        why = self._why.get(call.plugin)
        if why is None:
            return
        if self._strikes[call.plugin, call.facts_digest] >= MAX_FOR_CLASS:
            raise PluginSuspendedError(f"is not called for such pods any more: it {why}")
        if self._strikes.total() >= MAX_IN_PROCESS:
            raise PluginSuspendedError(f"is not called any more: it {why}")


def facts_of(args: tuple[object, ...]) -> PodFacts | None:
    """Return the facts of the pod among a method's arguments; None if there are none."""
    for each in args:
        if isinstance(each, PodClass):
            return each.facts
        if isinstance(each, PodFacts):
            return each
    return None


RUNNING_CALLS = PluginCalls()
"""One object per process, because threads and signals belong to the process, too."""
