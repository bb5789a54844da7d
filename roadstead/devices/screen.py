"""Which nodes have devices for a demand: answers for all nodes at once, without a search.

The answers for a demand are kept, and computed again for the nodes that see a pool that changed.
A change of a pool that every node sees concerns every node.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from roadstead.devices.errors import AllocationError
from roadstead.devices.quick import QuickAnswers, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable

    from roadstead.devices.in_use import DevicesInUse, PoolKey
    from roadstead.devices.plans import Demand
    from roadstead.devices.pools import DevicePools, Labels, Pool
    from roadstead.devices.selectors import Query

DEMANDS_MAX: Final = 256
"""Demands whose answers are kept, the most recent ones."""

ALIKE_MAX: Final = 4096

SHARED_MAX: Final = 64
"""If the first nodes see so many different sets of pools, sharing verdicts does not pay."""

Verdicts = NDArray[np.int8]
_NO: Final = Verdict.NO.value
_UNKNOWN: Final = Verdict.UNKNOWN.value


@dataclass(slots=True, eq=False)
class _Answers:
    """Verdicts by node for one demand. stale: nodes whose verdict is to be computed again.

    alike: verdicts by what they depend on (`QuickAnswers.likeness`).
    """

    demand: Demand
    verdicts: Verdicts
    stale: set[int] = field(default_factory=set)
    alike: dict[Hashable, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Outcomes:
    """Outcomes of searches by node, UNKNOWN without one. stale: nodes whose outcome is over.

    alike: outcomes by what a search reads of a node (`Allocator.likeness`).
    """

    verdicts: Verdicts
    stale: set[int] = field(default_factory=set)
    alike: dict[Hashable, Verdict] = field(default_factory=dict)


class NodeScreen:
    """Verdicts by the number of a node; numbers are given when nodes are added, and used again.

    removals: how many nodes were removed; while it stays equal, numbers stay valid. version: grows
    when devices, their use or classes change.
    """

    def __init__(self, pools: DevicePools, in_use: DevicesInUse, quick: QuickAnswers) -> None:
        self._pools = pools
        self._quick = quick
        self.removals = 0
        self.version = 0
        self._numbers: dict[str, int] = {}
        self._names: list[str | None] = []
        self._labels: list[Labels] = []
        self._pools_of: list[tuple[Pool, ...] | None] = []
        self._unused: list[int] = []
        self._seeing: dict[PoolKey, set[int]] = {}
        self._answers: OrderedDict[tuple[tuple[Query, int], ...], _Answers] = OrderedDict()
        self._outcomes: OrderedDict[Hashable, _Outcomes] = OrderedDict()
        pools.watch(self._slices_changed)
        in_use.watch(self._use_changed)

    def put(self, name: str, labels: Labels) -> int:
        """Add a node, or change its labels; return its number."""
        number = self._numbers.get(name)
        if number is None:
            number = self._unused.pop() if self._unused else len(self._names)
            if number == len(self._names):
                self._names.append(None)
                self._labels.append(())
                self._pools_of.append(None)
            self._numbers[name] = number
        elif self._labels[number] == labels:
            return number
        self._names[number] = name
        self._labels[number] = labels
        self._mark((number,))
        return number

    def numbers(self, nodes: Iterable[tuple[str, Labels]]) -> NDArray[np.intp]:
        """Put nodes, by name and labels; return their numbers, an index of verdicts."""
        return np.fromiter((self.put(*node) for node in nodes), np.intp)

    def remove(self, name: str) -> None:
        """Remove a node; its number may be given to another. An unknown one changes nothing."""
        number = self._numbers.pop(name, None)
        if number is None:
            return
        self.removals += 1
        self._names[number] = None
        self._unused.append(number)
        self._mark((number,))

    def verdicts(self, demand: Demand) -> Verdicts:
        """Return the value of the `Verdict` for each node by number; not to be changed.

        A number without node has NO.
        """
        known = self._answers.get(demand.totals)
        if known is None:
            known = _Answers(demand, np.zeros(0, np.int8))
            self._answers[demand.totals] = known
            if len(self._answers) > DEMANDS_MAX:
                self._answers.popitem(last=False)
        self._answers.move_to_end(demand.totals)
        size = len(self._names)
        if len(known.verdicts) < size:
            known.stale.update(range(len(known.verdicts), size))
            # With room to grow: nodes are often added one by one.
            grown = np.zeros(size + size // 4, np.int8)
            grown[: len(known.verdicts)] = known.verdicts
            known.verdicts = grown
        shared: dict[tuple[int, ...], int] = {}
        for number in known.stale:
            if number < size:
                known.verdicts[number] = self._verdict(known, number, shared)
        known.stale.clear()
        return known.verdicts[:size]

    def _verdict(self, known: _Answers, number: int, shared: dict[tuple[int, ...], int]) -> int:
        """Return the verdict for a node. shared: verdicts of nodes by the pools that they see."""
        name = self._names[number]
        if name is None:
            return _NO
        try:
            pools = self._see(name, number)
        except AllocationError:
            return _UNKNOWN
        demand, likeness = known.demand, self._quick.likeness(pools)
        if likeness is not None:
            verdict = known.alike.get(likeness)
            if verdict is None:
                if len(known.alike) >= ALIKE_MAX:
                    known.alike.clear()
                verdict = known.alike[likeness] = int(self._quick.verdict(demand, pools).value)
            return verdict
        if len(shared) > SHARED_MAX:
            return int(self._quick.verdict(demand, pools).value)
        key = tuple(map(id, pools))
        verdict = shared.get(key)
        if verdict is None:
            verdict = shared[key] = int(self._quick.verdict(demand, pools).value)
        return verdict

    def _see(self, name: str, number: int) -> tuple[Pool, ...]:
        """Return the pools that a node sees; from now on, their changes concern it."""
        pools = self._pools.seen_from(name, self._labels[number])
        if self._pools_of[number] is not pools:
            self._pools_of[number] = pools
            for pool in pools:
                self._seeing.setdefault((pool.driver, pool.name), set()).add(number)
        return pools

    def outcomes(self, key: Hashable) -> Verdicts:
        """Return what `record` stored under a key and no change has made stale, by number."""
        known = self._outcomes.get(key)
        if known is None:
            known = self._outcomes[key] = _Outcomes(np.zeros(0, np.int8))
            if len(self._outcomes) > DEMANDS_MAX:
                self._outcomes.popitem(last=False)
        self._outcomes.move_to_end(key)
        missing = len(self._names) - len(known.verdicts)
        if missing > 0:
            unknown = np.full(missing + len(self._names) // 4, _UNKNOWN, np.int8)
            known.verdicts = np.concatenate([known.verdicts, unknown])
        known.verdicts[[*known.stale]] = _UNKNOWN
        known.stale.clear()
        return known.verdicts[: len(self._names)]

    def record(
        self, key: Hashable, number: int, verdict: Verdict, likeness: Hashable = None
    ) -> None:
        """Store the outcome of a search on a node, after `outcomes` and without a change since."""
        name = self._names[number]
        assert name is not None, "a search is made on a node"
        self._see(name, number)
        known = self._outcomes[key]
        known.verdicts[number] = verdict.value
        if likeness is not None:
            if len(known.alike) >= ALIKE_MAX:
                known.alike.clear()
            known.alike[likeness] = verdict

    def outcome_alike(self, key: Hashable, likeness: Hashable) -> Verdict:
        """Return the outcome on any node with this likeness; UNKNOWN if there was none."""
        return self._outcomes[key].alike.get(likeness, Verdict.UNKNOWN)

    def forget_outcomes(self) -> None:
        """Forget what was recorded: classes changed."""
        self.version += 1
        self._outcomes.clear()

    def _mark(self, numbers: Collection[int]) -> None:
        for answers in self._answers.values():
            answers.stale.update(numbers)
        for outcomes in self._outcomes.values():
            outcomes.stale.update(each for each in numbers if each < len(outcomes.verdicts))

    def _slices_changed(self, node: str | None) -> None:
        self.version += 1
        if node is None:
            self._mark(range(len(self._names)))
        elif node in self._numbers:
            self._mark((self._numbers[node],))

    def _use_changed(self, pool: PoolKey) -> None:
        self.version += 1
        self._mark(self._seeing.get(pool, ()))
