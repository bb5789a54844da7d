"""Verdicts on all nodes for a demand of devices, in one pass and without a search.

The verdicts are cached, and computed again for the nodes that see a pool that changed. Nodes are
*equivalent* if their pools have equal devices, equally used
(`QuickAnswers.equivalence_key`): a verdict on one holds for all. Outcomes of searches, which the
caller records here, are kept in the same way.
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
"""Demands, and keys of searches, whose verdicts are kept: the most recently used ones."""

BY_CODE_MAX: Final = 4096
"""Groups of equivalent nodes whose verdicts on one demand are kept."""

MARKED_MAX: Final = 256
"""If a pool changes that more nodes see, all nodes are marked as changed, not these one by one."""

SHARED_MAX: Final = 64
"""Sets of pools whose verdicts are shared in one pass: if nodes see more different sets, few nodes
see the same."""

KeyT = TypeVar("KeyT")

Verdicts = NDArray[np.int8]
"""Values of `Verdict`, by the number of a node."""

_NO: Final = Verdict.NO.value
_YES: Final = Verdict.YES.value
_UNKNOWN: Final = Verdict.UNKNOWN.value


@dataclass(slots=True, eq=False)
class _VerdictCache:
    """Verdicts on one demand, or outcomes of searches with one key.

    verdicts: by number of a node; UNKNOWN if none is known. stale: nodes whose verdict must be
    computed again. read: position in the log `NodeScreen.changes` up to which `stale` has the
    changed nodes.
    by_code: verdicts by `NodeScreen.equivalence_code`.
    """

    verdicts: Verdicts = field(default_factory=lambda: np.zeros(0, np.int8))
    stale: set[int] = field(default_factory=set)
    read: int = 0
    by_code: dict[int, int] = field(default_factory=dict)


class NodeScreen:
    """Verdicts on demands, and recorded outcomes of searches, by the number of a node.

    A node gets a number when it is added; the number of a removed node is used again.
    removals: how many nodes were removed; numbers are valid as long as it is equal. version: grows
    when devices, their use or classes change. changes: numbers of nodes whose verdicts may have
    changed. A change of a pool marks only nodes for which the pool was read.
    """

    def __init__(self, pools: DevicePools, in_use: DevicesInUse, quick: QuickAnswers) -> None:
        self._pools = pools
        self._quick = quick
        self.removals = 0
        self.version = 0
        self.changes: ChangeLog[int] = ChangeLog()
        self._numbers: dict[str, int] = {}
        # By number of a node; the name of an unused number is None.
        self._names: list[str | None] = []
        self._labels: list[Labels] = []
        self._pools_of: list[tuple[Pool, ...] | None] = []
        # By number of a node, until it changes: results of `equivalence_code`.
        self._code_of_node: dict[int, int | None] = {}
        # By `QuickAnswers.equivalence_key`.
        self._code_of_key: dict[Hashable, int] = {}
        self._next_code = count()
        self._unused: list[int] = []
        # By pool: numbers of the nodes for which it was read last.
        self._nodes_seeing: dict[PoolKey, set[int]] = {}
        # By `Demand.totals`, and by the key of `record`: `Plan.shape`.
        self._answers: OrderedDict[Hashable, _VerdictCache] = OrderedDict()
        self._outcomes: OrderedDict[Hashable, _VerdictCache] = OrderedDict()
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
        self._mark_node(number)
        return number

    def numbers(self, nodes: Iterable[tuple[str, Labels]]) -> NDArray[np.intp]:
        """Put nodes, by name and labels; return their numbers, an index of verdicts."""
        return np.fromiter((self.put(*node) for node in nodes), np.intp)

    def remove(self, name: str) -> None:
        """Remove a node, whose number is then free for another; an unknown node changes nothing."""
        number = self._numbers.pop(name, None)
        if number is None:
            return
        self.removals += 1
        self._names[number] = None
        self._unused.append(number)
        self._see(number, ())
        self._pools_of[number] = None
        self._pools.forget_node(name)
        self._mark_node(number)

    def verdicts(self, demand: Demand, numbers: NDArray[np.intp]) -> Verdicts:
        """Return the value of the `Verdict` for each of some nodes, by their numbers.

        A number without node has NO. Only the verdicts of these nodes are refreshed.
        """
        known = self._refreshed(self._answers, demand.totals)
        if known.stale:
            stale = known.stale.intersection(numbers.tolist())
            shared: dict[tuple[int, ...], int] = {}
            codes, by_code, verdicts = self._code_of_node, known.by_code, known.verdicts
            for number in stale:
                # In most cases the node's code was computed for another demand.
                code = codes.get(number)
                found = None if code is None else by_code.get(code)
                if found is None:
                    found = self._verdict(known, demand, number, shared)
                verdicts[number] = found
            known.stale -= stale
        return known.verdicts[numbers]

    def known_verdict(self, demand: Demand, number: int) -> Verdict:
        """Return the verdict known of an equivalent node; UNKNOWN for none."""
        return self._verdict_of_equivalent(self._answers.get(demand.totals), number)

    def known_answers(self, demand: Demand, numbers: Iterable[int]) -> list[bool] | None:
        """Return whether `known_verdict` of each node is YES; None if one is UNKNOWN."""
        known = self._answers.get(demand.totals)
        if known is None:
            return None
        codes, by_code = self._code_of_node, known.by_code
        found: list[bool] = []
        for number in numbers:
            code = codes.get(number)
            if code is None:
                code = self.equivalence_code(number)
            verdict = _UNKNOWN if code is None else by_code.get(code, _UNKNOWN)
            if verdict == _UNKNOWN:
                return None
            found.append(verdict == _YES)
        return found

    def _verdict_of_equivalent(self, known: _VerdictCache | None, number: int) -> Verdict:
        code = self.equivalence_code(number)
        found = None if known is None or code is None else known.by_code.get(code)
        return Verdict.UNKNOWN if found is None else Verdict(found)

    def _refreshed(
        self, all_known: OrderedDict[Hashable, _VerdictCache], key: Hashable
    ) -> _VerdictCache:
        """Return the verdicts of a key, with nodes that changed since the last call as stale."""
        known = all_known.get(key)
        if known is None:
            known = all_known[key] = _VerdictCache(read=self.changes.end)
            if len(all_known) > DEMANDS_MAX:
                all_known.popitem(last=False)
        all_known.move_to_end(key)
        size, before = len(self._names), len(known.verdicts)
        if before < size:
            # More than there are nodes, because nodes are often added one by one.
            size += size // 4
            known.stale.update(range(before, size))
            known.verdicts = np.concatenate([known.verdicts, np.zeros(size - before, np.int8)])
        if known.read != self.changes.end:
            changed = self.changes.since(known.read)
            known.stale.update(range(len(known.verdicts)) if changed is None else changed)
            known.read = self.changes.end
        return known

    def _verdict(
        self, known: _VerdictCache, demand: Demand, number: int, shared: dict[tuple[int, ...], int]
    ) -> int:
        """Return the verdict for a node. shared: verdicts of this pass, by the ids of pools."""
        # There may be more verdicts than nodes, see `_refreshed`.
        if number >= len(self._names) or self._names[number] is None:
            return _NO
        code = self.equivalence_code(number)
        if code is not None and code in known.by_code:
            return known.by_code[code]
        try:
            pools = self._pools_seen_from(number)
        except AllocationError:
            return _UNKNOWN
        if code is not None:
            verdict = int(self._quick.verdict(demand, pools).value)
            _put_bounded(known.by_code, code, verdict)
            return verdict
        if len(shared) > SHARED_MAX:
            return int(self._quick.verdict(demand, pools).value)
        key = tuple(map(id, pools))
        found = shared.get(key)
        if found is None:
            found = shared[key] = int(self._quick.verdict(demand, pools).value)
        return found

    def equivalence_code(self, number: int) -> int | None:
        """Return a code that is equal for equivalent nodes; None if no node can be equivalent.

        `Allocator.allocate` finds devices on all nodes of one code or on none; errors may differ,
        because they name devices.
        """
        if number in self._code_of_node:
            return self._code_of_node[number]
        try:
            key = self._quick.equivalence_key(self._pools_seen_from(number))
        except AllocationError:
            return None
        code = None if key is None else self._code_of_key.get(key)
        if key is not None and code is None:
            # No code is used twice: one of a key that was dropped must not stand for another key.
            code = next(self._next_code)
            _put_bounded(self._code_of_key, key, code)
        self._code_of_node[number] = code
        return code

    def _pools_seen_from(self, number: int) -> tuple[Pool, ...]:
        """Return the pools that a node sees; later changes of these mark the node."""
        name = self._names[number]
        assert name is not None, "a number without node sees nothing"
        pools = self._pools.seen_from(name, self._labels[number])
        if self._pools_of[number] is not pools:
            self._see(number, pools)
        return pools

    def _see(self, number: int, pools: tuple[Pool, ...]) -> None:
        """Record the pools that were read for a node, in place of those read before."""
        for pool in self._pools_of[number] or ():
            numbers = self._nodes_seeing[pool.driver, pool.name]
            numbers.discard(number)
            if not numbers:
                del self._nodes_seeing[pool.driver, pool.name]
        for pool in pools:
            self._nodes_seeing.setdefault((pool.driver, pool.name), set()).add(number)
        self._pools_of[number] = pools

    def outcomes(self, key: Hashable, numbers: NDArray[np.intp]) -> Verdicts:
        """Return the outcomes that `record` stored under a key for some nodes or equivalent ones.

        UNKNOWN without one, or if the node has changed since.
        """
        known = self._refreshed(self._outcomes, key)
        if known.stale:
            stale = known.stale.intersection(numbers.tolist())
            for number in stale:
                code = self.equivalence_code(number) if self._names[number] is not None else None
                outcome = _UNKNOWN if code is None else known.by_code.get(code, _UNKNOWN)
                known.verdicts[number] = outcome
            known.stale -= stale
        return known.verdicts[numbers]

    def outcome_of_equivalent(self, key: Hashable, number: int) -> Verdict:
        """Return the outcome that `record` stored for an equivalent node; UNKNOWN for none."""
        return self._verdict_of_equivalent(self._outcomes.get(key), number)

    def record(self, key: Hashable, number: int, verdict: Verdict) -> None:
        """Store the outcome of a search on a node; call `outcomes` first, after its last change.

        UNKNOWN for a search that was aborted, which is not repeated until the node changes.
        """
        code, known = self.equivalence_code(number), self._outcomes[key]
        known.verdicts[number] = verdict.value
        if code is not None and verdict is not Verdict.UNKNOWN:
            _put_bounded(known.by_code, code, verdict.value)

    def forget_outcomes(self) -> None:
        """Drop all outcomes, because classes changed."""
        self.version += 1
        self._outcomes.clear()

    def _mark_changed(self, numbers: Collection[int]) -> None:
        if len(numbers) > MARKED_MAX:
            self._mark_every_node()
        else:
            for number in numbers:
                self._mark_node(number)

    def _mark_node(self, number: int) -> None:
        self._code_of_node.pop(number, None)
        self.changes.add(number)

    def _mark_every_node(self) -> None:
        self._code_of_node.clear()
        self.changes.add_all()

    def _slices_changed(self, node: str | None) -> None:
        self.version += 1
        if node is None:
            self._mark_every_node()
        elif node in self._numbers:
            self._mark_node(self._numbers[node])

    def _use_changed(self, pool: PoolKey) -> None:
        self.version += 1
        self._mark_changed(self._nodes_seeing.get(pool, ()))


def _put_bounded(known: dict[KeyT, int], key: KeyT, value: int) -> None:
    if len(known) >= BY_CODE_MAX:
        known.clear()
    known[key] = value
