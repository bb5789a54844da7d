"""Which nodes have devices for a demand: answers for all nodes at once, without a search.

The answers for a demand are kept, and computed again for the nodes that see a pool that changed.
A change of a pool that every node sees concerns every node.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from roadstead.devices.change_log import ChangeLog
from roadstead.devices.errors import AllocationError
from roadstead.devices.quick import QuickAnswers, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable

    from roadstead.devices.in_use import DevicesInUse, PoolKey
    from roadstead.devices.plans import Demand
    from roadstead.devices.pools import DevicePools, Labels, Pool

DEMANDS_MAX: Final = 256
"""Demands whose answers are kept, the most recent ones."""

ALIKE_MAX: Final = 4096

MARKED_MAX: Final = 256
"""More nodes that one change concerns are not listed one by one."""

SHARED_MAX: Final = 64
"""If the first nodes see so many different sets of pools, sharing verdicts does not pay."""

KeyT = TypeVar("KeyT")

Verdicts = NDArray[np.int8]
_NO: Final = Verdict.NO.value
_YES: Final = Verdict.YES.value
_UNKNOWN: Final = Verdict.UNKNOWN.value


@dataclass(slots=True, eq=False)
class _Known:
    """Verdicts by node for one demand, or outcomes of one kind of search; UNKNOWN without one.

    stale: nodes whose verdict is over. read: end of the changes that `stale` includes. alike:
    verdicts by the code of what they depend on (`QuickAnswers.likeness`).
    """

    verdicts: Verdicts = field(default_factory=lambda: np.zeros(0, np.int8))
    stale: set[int] = field(default_factory=set)
    read: int = 0
    alike: dict[int, int] = field(default_factory=dict)


class NodeScreen:
    """Verdicts by the number of a node; numbers are given when nodes are added, and used again.

    removals: how many nodes were removed; while it stays equal, numbers stay valid. version: grows
    when devices, their use or classes change. changes: the numbers of nodes whose verdicts may have
    changed; of pools that no verdict read there are none.
    """

    def __init__(self, pools: DevicePools, in_use: DevicesInUse, quick: QuickAnswers) -> None:
        self._pools = pools
        self._quick = quick
        self.removals = 0
        self.version = 0
        self.changes: ChangeLog[int] = ChangeLog()
        self._numbers: dict[str, int] = {}
        self._names: list[str | None] = []
        self._labels: list[Labels] = []
        self._pools_of: list[tuple[Pool, ...] | None] = []
        # By number, a code that nodes of one likeness share, until the node changes.
        self._codes: dict[int, int | None] = {}
        self._code_of: dict[Hashable, int] = {}
        self._next_code = count()
        self._unused: list[int] = []
        self._seeing: dict[PoolKey, set[int]] = {}
        self._answers: OrderedDict[Hashable, _Known] = OrderedDict()
        self._outcomes: OrderedDict[Hashable, _Known] = OrderedDict()
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
        self._mark_one(number)
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
        self._mark_one(number)

    def verdicts(self, demand: Demand, numbers: NDArray[np.intp]) -> Verdicts:
        """Return the value of the `Verdict` for each of some nodes, by their numbers.

        A number without node has NO. Verdicts of other nodes stay stale.
        """
        known = self._known(self._answers, demand.totals)
        if known.stale:
            asked = known.stale.intersection(numbers.tolist())
            shared: dict[tuple[int, ...], int] = {}
            codes, alike, verdicts = self._codes, known.alike, known.verdicts
            for number in asked:
                # Mostly, the code was found for another demand.
                code = codes.get(number)
                found = None if code is None else alike.get(code)
                if found is None:
                    found = self._verdict(known, demand, number, shared)
                verdicts[number] = found
            known.stale -= asked
        return known.verdicts[numbers]

    def known_verdict(self, demand: Demand, number: int) -> Verdict:
        """Return the verdict that `verdicts` found on a node like this one; UNKNOWN for none."""
        return self._known_alike(self._answers.get(demand.totals), number)

    def known_answers(self, demand: Demand, numbers: Iterable[int]) -> list[bool] | None:
        """Return whether the known verdict on each node is YES; None if one is UNKNOWN."""
        known = self._answers.get(demand.totals)
        if known is None:
            return None
        codes, alike = self._codes, known.alike
        found: list[bool] = []
        for number in numbers:
            code = codes.get(number)
            if code is None:
                code = self.likeness(number)
            verdict = _UNKNOWN if code is None else alike.get(code, _UNKNOWN)
            if verdict == _UNKNOWN:
                return None
            found.append(verdict == _YES)
        return found

    def _known_alike(self, known: _Known | None, number: int) -> Verdict:
        code = self.likeness(number)
        found = None if known is None or code is None else known.alike.get(code)
        return Verdict.UNKNOWN if found is None else Verdict(found)

    def _known(self, all_known: OrderedDict[Hashable, _Known], key: Hashable) -> _Known:
        """Return what is known under a key, with all changes since the last call stale."""
        known = all_known.get(key)
        if known is None:
            known = all_known[key] = _Known(read=self.changes.end)
            if len(all_known) > DEMANDS_MAX:
                all_known.popitem(last=False)
        all_known.move_to_end(key)
        size, before = len(self._names), len(known.verdicts)
        if before < size:
            # With room to grow: nodes are often added one by one.
            size += size // 4
            known.stale.update(range(before, size))
            known.verdicts = np.concatenate([known.verdicts, np.zeros(size - before, np.int8)])
        if known.read != self.changes.end:
            changed = self.changes.since(known.read)
            known.stale.update(range(len(known.verdicts)) if changed is None else changed)
            known.read = self.changes.end
        return known

    def _verdict(
        self, known: _Known, demand: Demand, number: int, shared: dict[tuple[int, ...], int]
    ) -> int:
        """Return the verdict for a node. shared: verdicts of nodes by the pools that they see."""
        # There is room for more numbers than there are.
        if number >= len(self._names) or self._names[number] is None:
            return _NO
        code = self.likeness(number)
        if code is not None and code in known.alike:
            return known.alike[code]
        try:
            pools = self._see(number)
        except AllocationError:
            return _UNKNOWN
        if code is not None:
            verdict = int(self._quick.verdict(demand, pools).value)
            _put_bounded(known.alike, code, verdict)
            return verdict
        if len(shared) > SHARED_MAX:
            return int(self._quick.verdict(demand, pools).value)
        key = tuple(map(id, pools))
        found = shared.get(key)
        if found is None:
            found = shared[key] = int(self._quick.verdict(demand, pools).value)
        return found

    def likeness(self, number: int) -> int | None:
        """Return a code that nodes share on which `allocate` finds something or not alike.

        None if it may differ. Errors are not alike: they may name devices.
        """
        if number in self._codes:
            return self._codes[number]
        try:
            likeness = self._quick.likeness(self._see(number))
        except AllocationError:
            return None
        code = None if likeness is None else self._code_of.get(likeness)
        if likeness is not None and code is None:
            # Codes are never used again, so that those of forgotten likenesses mean nothing else.
            code = next(self._next_code)
            _put_bounded(self._code_of, likeness, code)
        self._codes[number] = code
        return code

    def _see(self, number: int) -> tuple[Pool, ...]:
        """Return the pools that a node sees; from now on, their changes concern it."""
        name = self._names[number]
        assert name is not None, "a number without node sees nothing"
        pools = self._pools.seen_from(name, self._labels[number])
        if self._pools_of[number] is not pools:
            self._pools_of[number] = pools
            for pool in pools:
                self._seeing.setdefault((pool.driver, pool.name), set()).add(number)
        return pools

    def outcomes(self, key: Hashable, numbers: NDArray[np.intp]) -> Verdicts:
        """Return what `record` stored under a key, for some nodes or those that they are like.

        UNKNOWN without an outcome that no change has made stale.
        """
        known = self._known(self._outcomes, key)
        if known.stale:
            asked = known.stale.intersection(numbers.tolist())
            for number in asked:
                code = self.likeness(number) if self._names[number] is not None else None
                outcome = _UNKNOWN if code is None else known.alike.get(code, _UNKNOWN)
                known.verdicts[number] = outcome
            known.stale -= asked
        return known.verdicts[numbers]

    def outcome_alike(self, key: Hashable, number: int) -> Verdict:
        """Return the outcome that `record` stored for a node like this one; UNKNOWN for none."""
        return self._known_alike(self._outcomes.get(key), number)

    def record(self, key: Hashable, number: int, verdict: Verdict) -> None:
        """Store the outcome of a search on a node, after `outcomes` and without a change since.

        UNKNOWN if it ended without one; it does so again until the node changes.
        """
        code, known = self.likeness(number), self._outcomes[key]
        known.verdicts[number] = verdict.value
        if code is not None and verdict is not Verdict.UNKNOWN:
            _put_bounded(known.alike, code, verdict.value)

    def forget_outcomes(self) -> None:
        """Forget what was recorded: classes changed."""
        self.version += 1
        self._outcomes.clear()

    def _mark(self, numbers: Collection[int]) -> None:
        if len(numbers) > MARKED_MAX:
            self._mark_all()
        else:
            for number in numbers:
                self._mark_one(number)

    def _mark_one(self, number: int) -> None:
        self._codes.pop(number, None)
        self.changes.add(number)

    def _mark_all(self) -> None:
        self._codes.clear()
        self.changes.add_all()

    def _slices_changed(self, node: str | None) -> None:
        self.version += 1
        if node is None:
            self._mark_all()
        elif node in self._numbers:
            self._mark_one(self._numbers[node])

    def _use_changed(self, pool: PoolKey) -> None:
        self.version += 1
        self._mark(self._seeing.get(pool, ()))


def _put_bounded(known: dict[KeyT, int], key: KeyT, value: int) -> None:
    if len(known) >= ALIKE_MAX:
        known.clear()
    known[key] = value
