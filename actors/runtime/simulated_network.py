"""The network of a simulation: every message passes through it, and one seed decides its fate.

    send ─► cut off? lost? ─► one copy or two ─► each after a delay of its own ─► arrives,
                                                     once neither end is paused

Every decision is drawn from one generator and goes into `trace`, which two runs of a seed share.
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
    """What may go wrong: shares are per message, `…_every_s` mean times between two of a kind.

    Requests and replies are lost alike. duplicated: delivered twice. slow: delayed by up to
    `slow_max_s`, which lets others overtake. 0 for a fault that does not happen. Partitions cut
    two actors from each other, a pause holds an actor's messages, a crash takes its state; each
    lasts up to its `…_max_s`. seldom: share of the first messages of each kind that meet one of
    the fates that the run has, so that kinds of which few are sent meet them too. late: share of
    an actor's timers (sleeps, deadlines) that are up to `late_max_s` late, as on a machine that
    has other things to do. No fault begins after `until_s` of virtual time.
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
    def fates(self) -> tuple[str, ...]:
        """What may become of a message, other than that it is sent and arrives once."""
        rates = {
            "lost": self.lost,
            "duplicated": self.duplicated,
            "slow": self.slow,
            "cut off": self.partition_every_s,
        }
        return tuple(fate for fate, rate in rates.items() if rate)


NO_FAULTS = Faults()
DELAY_S = (0.000_1, 0.004)
"""What every message takes."""
SELDOM = 4
"""As many of each kind are its first messages."""

OBSERVERS = frozenset({"supervisor"})
"""Whoever looks on: its messages are never lost, or it would end what it is to see."""


class Network:
    """Links between actors by name, and the faults on them."""

    def __init__(self, seed: int, faults: Faults = NO_FAULTS) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self._timers = random.Random(f"timers {seed}")  # noqa: S311
        self._seldom = random.Random(f"seldom {seed}")  # noqa: S311
        self._sent: Counter[str] = Counter()
        self.faults = faults
        self.happened: Counter[str] = Counter()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "a simulated network lives in virtual time"
        self._loop = loop
        self._began_s = self._loop.time()
        self._cut_until: dict[frozenset[str], float] = {}
        self._paused_until: dict[str, float] = {}
        self._trace = hashlib.blake2b(digest_size=16)

    @property
    def trace(self) -> str:
        """A digest of all that happened so far."""
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
        """Something that happened goes into the trace."""
        line = f"{self._loop.time():.9f} {what} {' '.join(parties)}\n"
        self._trace.update(line.encode())

    def send(self, source: str, target: str, kind: str, arrive: Callable[[], None]) -> None:
        """Carries one message; `arrive` is called once, twice or never."""
        fate = self._fate(source, target, kind)
        self.note(f"{kind} {fate}", source, target)
        if fate != "sent":
            self.happened[fate] += 1
        if fate in ("lost", "cut off"):
            return
        for _ in range(2 if fate == "duplicated" else 1):
            delay_s = self.random.uniform(*DELAY_S)
            if fate == "slow":
                delay_s += self.random.uniform(0.0, self.faults.slow_max_s)
            since_s = max(self._loop.time(), self._paused_until.get(source, 0.0))
            self._loop.call_on_time(since_s + delay_s, self._arrive, target, kind, arrive)

    def _fate(self, source: str, target: str, kind: str) -> str:
        if OBSERVERS & {source, target}:
            return "sent"
        if self._cut_until.get(frozenset({source, target}), 0.0) > self._loop.time():
            return "cut off"
        if not self.is_faulty:
            return "sent"
        self._sent[kind] += 1
        if self._sent[kind] <= SELDOM and self._seldom.random() < self.faults.seldom:
            return self._seldom_fate(source, target)
        drawn = self.random.random()
        for fate, share in (
            ("lost", self.faults.lost),
            ("duplicated", self.faults.duplicated),
            ("slow", self.faults.slow),
        ):
            if drawn < share:
                return fate
            drawn -= share
        return "sent"

    def _seldom_fate(self, source: str, target: str) -> str:
        """One of the fates of this run, each as likely; a link is cut with the message."""
        if not self.faults.fates:
            return "sent"
        fate = self._seldom.choice(self.faults.fates)
        if fate == "cut off":
            last_s = self._cut_until.get(frozenset({source, target}), 0.0)
            if self._loop.time() < last_s + self.faults.partition_max_s:
                # Two cuts would look like one that is longer, for which a caller may give up.
                return "sent"
            self.cut(source, target, self._seldom.uniform(0.1, self.faults.partition_max_s))
        return fate

    def _arrive(self, target: str, kind: str, arrive: Callable[[], None]) -> None:
        until_s = self._paused_until.get(target, 0.0)
        if until_s > self._loop.time():
            self._loop.call_on_time(until_s, self._arrive, target, kind, arrive)
            return
        self.note(f"{kind} arrived", target)
        arrive()

    def cut(self, one: str, other: str, for_s: float) -> None:
        """Neither hears the other for a while."""
        self.happens("partition", one, other)
        self._cut_until[frozenset({one, other})] = self._loop.time() + for_s

    def pause(self, name: str, for_s: float) -> None:
        """What an actor sends and should get waits for a while.

        Not again right after another pause: two would look like one that is longer.
        """
        if self._loop.time() < self._paused_until.get(name, 0.0) + self.faults.pause_max_s:
            return
        self.happens("pause", name)
        self._paused_until[name] = self._loop.time() + for_s

    def late_s(self) -> float:
        """How late the next timer of an actor is."""
        if not (self.faults.late and self.is_faulty and self._timers.random() < self.faults.late):
            return 0.0
        late_s = self._timers.uniform(0.0, self.faults.late_max_s)
        self.happens("late", f"{late_s:.9f}")
        return late_s

    def gone(self, name: str) -> None:
        """An actor is gone, and with it its pause."""
        self.note("gone", name)
        self._paused_until.pop(name, None)

    def happens(self, what: str, *parties: str) -> None:
        """A fault that is no message's."""
        self.happened[what] += 1
        self.note(what, *parties)
