"""The network of a simulation: one seed decides which messages are lost, repeated or delayed.

    send ─► cut off? lost? ─► one copy or two ─► each after its own delay ─► received,
                                                     once neither end is paused

`trace` is a hash of all events: two runs with the same seed have the same trace.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from roadstead.actors.runtime.virtual_time import VirtualLoop


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults of a run: shares per message, and mean times between two faults (`…_every_s`).

    0 turns a fault off. lost: requests and replies alike. duplicated: delivered twice. slow:
    delayed by up to `slow_max_s`, so that other messages overtake. A partition cuts two actors off
    from each other, a pause holds back an actor's messages; each lasts up to its `…_max_s`. A crash
    loses an actor's state. seldom: an additional share, for the first `SELDOM` messages of each
    method, so that methods which are seldom called meet a fault of messages (`of_messages`). late:
    share of an actor's timers (sleeps, deadlines) that fire up to `late_max_s` late, as on a busy
    machine. No fault begins after `until_s` of virtual time.
    """

    lost: float = 0.0
    duplicated: float = 0.0
    slow: float = 0.0
    slow_max_s: float = 2.0
    partition_every_s: float = 0.0
    partition_max_s: float = 3.0
    pause_every_s: float = 0.0
    pause_max_s: float = 0.9
    crash_every_s: float = 0.0
    seldom: float = 0.0
    late: float = 0.0
    late_max_s: float = 0.5
    until_s: float = 10.0

    @property
    def of_messages(self) -> tuple[str, ...]:
        """The faults that a message of this run may suffer, as `Network.send` names them."""
        rates = {
            "lost": self.lost,
            "duplicated": self.duplicated,
            "slow": self.slow,
            "cut off": self.partition_every_s,
        }
        return tuple(fault for fault, rate in rates.items() if rate)


NO_FAULTS = Faults()
DELAY_S = (0.000_1, 0.004)
"""Range of the delay of every message."""
SELDOM = 4
"""Number of first messages of each method to which `Faults.seldom` applies."""

OBSERVERS = frozenset({"supervisor"})
"""Callers whose messages suffer no fault: a lost status would look like a lost actor."""


class Network:
    """The links between actors, by name, and the faults on them.

    happened: number of faults by name. _sent: number of messages by method. _cut_until,
    _paused_until: end of the last partition of each pair and of the last pause of each actor.
    """

    def __init__(self, seed: int, faults: Faults = NO_FAULTS) -> None:
        # A generator for each group of faults: one that is switched on changes no other draws.
        self.random = random.Random(seed)  # noqa: S311
        self._timers = random.Random(f"timers {seed}")  # noqa: S311
        self._seldom = random.Random(f"seldom {seed}")  # noqa: S311
        self._sent: Counter[str] = Counter()
        self.faults = faults
        self.happened: Counter[str] = Counter()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "a simulated network needs virtual time"
        self._loop = loop
        self._began_s = self._loop.time()
        self._cut_until: dict[frozenset[str], float] = {}
        self._paused_until: dict[str, float] = {}
        self._trace = hashlib.blake2b(digest_size=16)

    @property
    def trace(self) -> str:
        """A digest of all events so far."""
        return self._trace.hexdigest()

    @property
    def spent_s(self) -> float:
        """Virtual time since the start."""
        return self._loop.time() - self._began_s

    @property
    def is_faulty(self) -> bool:
        """Whether faults may still begin."""
        return self.spent_s < self.faults.until_s

    def note(self, what: str, *parties: str) -> None:
        """Add an event to the trace."""
        line = f"{self._loop.time():.9f} {what} {' '.join(parties)}\n"
        self._trace.update(line.encode())

    def send(self, source: str, target: str, kind: str, arrive: Callable[[], None]) -> None:
        """Send one message; `arrive` is called once, twice or never. kind: the called method."""
        fault = self._fault_of_message(source, target, kind)
        self.note(f"{kind} {fault or 'sent'}", source, target)
        if fault:
            self.happened[fault] += 1
        if fault in ("lost", "cut off"):
            return
        for _ in range(2 if fault == "duplicated" else 1):
            delay_s = self.random.uniform(*DELAY_S)
            if fault == "slow":
                delay_s += self.random.uniform(0.0, self.faults.slow_max_s)
            # A message of a paused actor leaves it at the end of the pause.
            leaves_s = max(self._loop.time(), self._paused_until.get(source, 0.0))
            self._loop.call_on_time(leaves_s + delay_s, self._arrive, target, kind, arrive)

    def _fault_of_message(self, source: str, target: str, kind: str) -> str:
        """Draw the fault of a message; "" for none."""
        if OBSERVERS & {source, target}:
            return ""
        if self._cut_until.get(frozenset({source, target}), 0.0) > self._loop.time():
            return "cut off"
        if not self.is_faulty:
            return ""
        self._sent[kind] += 1
        if self._sent[kind] <= SELDOM and self._seldom.random() < self.faults.seldom:
            return self._fault_of_seldom_method(source, target)
        drawn = self.random.random()
        for fault, share in (
            ("lost", self.faults.lost),
            ("duplicated", self.faults.duplicated),
            ("slow", self.faults.slow),
        ):
            if drawn < share:
                return fault
            drawn -= share
        return ""

    def _fault_of_seldom_method(self, source: str, target: str) -> str:
        """Draw one of the run's message faults, equally likely; "cut off" also cuts the link."""
        if not self.faults.of_messages:
            return ""
        fault = self._seldom.choice(self.faults.of_messages)
        if fault == "cut off":
            last_s = self._cut_until.get(frozenset({source, target}), 0.0)
            if self._loop.time() < last_s + self.faults.partition_max_s:
                # Two cuts in a row would act as one longer than `partition_max_s`, after which
                # callers no longer resend but raise.
                return ""
            self.cut(source, target, self._seldom.uniform(0.1, self.faults.partition_max_s))
        return fault

    def _arrive(self, target: str, kind: str, arrive: Callable[[], None]) -> None:
        until_s = self._paused_until.get(target, 0.0)
        if until_s > self._loop.time():
            self._loop.call_on_time(until_s, self._arrive, target, kind, arrive)
            return
        self.note(f"{kind} arrived", target)
        arrive()

    def cut(self, one: str, other: str, for_s: float) -> None:
        """Drop all messages between two actors for a while."""
        self.record_fault("partition", one, other)
        self._cut_until[frozenset({one, other})] = self._loop.time() + for_s

    def pause(self, name: str, for_s: float) -> None:
        """Hold back the messages to and from an actor for a while.

        Nothing happens right after another pause: two in a row would act as a longer one.
        """
        if self._loop.time() < self._paused_until.get(name, 0.0) + self.faults.pause_max_s:
            return
        self.record_fault("pause", name)
        self._paused_until[name] = self._loop.time() + for_s

    def late_s(self) -> float:
        """Draw the delay of an actor's next timer."""
        if not (self.faults.late and self.is_faulty and self._timers.random() < self.faults.late):
            return 0.0
        late_s = self._timers.uniform(0.0, self.faults.late_max_s)
        self.record_fault("late", f"{late_s:.9f}")
        return late_s

    def gone(self, name: str) -> None:
        """Note that an actor ended, and end its pause."""
        self.note("gone", name)
        self._paused_until.pop(name, None)

    def record_fault(self, what: str, *parties: str) -> None:
        """Count and note a fault that is not one of a message."""
        self.happened[what] += 1
        self.note(what, *parties)
