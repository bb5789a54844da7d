"""Answers for plain claims without a search, where they are those of the search.

A plain claim counts devices and has neither constraints nor alternatives. Its search takes the
first free devices, and returns to a choice only if a later request finds too few. So the first
free devices are its answer if they suffice; and if they do not, a solution exists exactly if every
set of queries finds enough devices in all (Hall's theorem). An error on the way needs the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import combinations
from typing import TYPE_CHECKING, Final

from roadstead.devices.bits import positions_of
from roadstead.devices.choosing import Chosen
from roadstead.devices.pools import FreeMatches
from roadstead.devices.selectors import SelectorFailure
from roadstead.devices.views import NOT_ALIKE

if TYPE_CHECKING:
    from collections.abc import Hashable

    from roadstead.devices.in_use import DevicesInUse
    from roadstead.devices.plans import Choice, Demand
    from roadstead.devices.pools import Pool
    from roadstead.devices.selectors import Query
    from roadstead.devices.views import PoolMatcher

QUERIES_MAX: Final = 4
"""More queries in one demand are left to the search: their sets double with each."""

EVALUATED_MAX: Final = 1024
"""If a node sees more devices, they are not all evaluated as long as the first ones suffice."""


class Verdict(Enum):
    """Whether a node has devices for a demand. UNKNOWN: only the search decides."""

    NO = 0
    YES = 1
    UNKNOWN = 2


class QuickAnswers:
    """Answers demands from the bits of free devices that match."""

    def __init__(self, matcher: PoolMatcher, in_use: DevicesInUse) -> None:
        self._matcher = matcher
        self._in_use = in_use

    def first_devices(
        self, demand: Demand, pools: Sequence[Pool], claims: int
    ) -> list[list[Chosen]] | Verdict:
        """Return the devices by claim that the search would find first, or NO or UNKNOWN."""
        chosen: list[list[Chosen]] = [[] for _ in range(claims)]
        taken: dict[int, int] = {}
        for claim, choice in demand.steps:
            missing = self._take(choice, pools, taken, chosen[claim])
            if missing is None:
                return Verdict.UNKNOWN
            if missing:
                if len(demand.totals) == 1:
                    return Verdict.NO
                if len(demand.totals) > QUERIES_MAX:
                    return Verdict.UNKNOWN
                verdict = self._count(demand, pools)
                return Verdict.NO if verdict is Verdict.NO else Verdict.UNKNOWN
        return chosen

    def _take(
        self, choice: Choice, pools: Sequence[Pool], taken: dict[int, int], chosen: list[Chosen]
    ) -> int | None:
        """Take the first free devices; return how many are missing, None if only a search can."""
        missing = choice.facts.count
        query = choice.query
        for index, pool in enumerate(pools):
            if not missing:
                break
            if pool.needs_search or pool.invalid:
                return None
            used = taken.get(index, 0)
            free = self._matcher.matches(pool, query).candidates & ~(self._in_use.bits(pool) | used)
            for position in positions_of(free):
                outcome = self._matcher.evaluate(pool, query, position)
                if isinstance(outcome, SelectorFailure):
                    return None
                bit = 1 << position
                if not outcome or pool.unallocatable & bit:
                    continue
                used |= bit
                chosen.append(Chosen(choice, pool.devices[position], None))
                missing -= 1
                if not missing:
                    break
            taken[index] = used
        return missing

    def likeness(self, pools: Sequence[Pool]) -> Hashable:
        """Return a key that is equal for pools with equal devices and use, None if they have none.

        It shows all that `verdict` reads, and a search, but not the names in an error.
        """
        found = []
        for pool in pools:
            code = self._matcher.code_of(pool)
            if code == NOT_ALIKE or pool.invalid or pool.is_incomplete:
                return None
            if not pool.depends_on_use_alone:
                return None
            found.append((code, self._in_use.bits(pool), self._in_use.consumed_in(pool)))
        return tuple(found)

    def verdict(self, demand: Demand, pools: Sequence[Pool]) -> Verdict:
        """Return whether the search would find devices for a demand.

        UNKNOWN if it might reach an error, or if the pools or the demand need a search.
        """
        if len(demand.totals) > QUERIES_MAX:
            return Verdict.UNKNOWN
        if sum(len(pool.devices) for pool in pools) > EVALUATED_MAX:
            found = self.first_devices(demand, pools, 1 + max(index for index, _ in demand.steps))
            if not isinstance(found, Verdict):
                return Verdict.YES
        return self._count(demand, pools)

    def _count(self, demand: Demand, pools: Sequence[Pool]) -> Verdict:
        """Return the verdict by counts, for which every device is evaluated."""
        if len(demand.totals) == 1:
            return self._count_one(*demand.totals[0], pools)
        free: dict[Query, list[FreeMatches]] = {query: [] for query, _ in demand.totals}
        for pool in pools:
            if pool.needs_search or pool.invalid:
                return Verdict.UNKNOWN
            for query, each in free.items():
                matches = self._free_matches(pool, query)
                if matches.may_fail:
                    return Verdict.UNKNOWN
                each.append(matches)
        for size in range(1, len(demand.totals) + 1):
            for some in combinations(demand.totals, size):
                if _devices_in(free, [query for query, _ in some]) < sum(n for _, n in some):
                    return Verdict.NO
        return Verdict.YES

    def _count_one(self, query: Query, wanted: int, pools: Sequence[Pool]) -> Verdict:
        """Return the verdict for a single query, as most demands are, in the fewest steps."""
        for pool in pools:
            if pool.needs_search or pool.invalid:
                return Verdict.UNKNOWN
            matches = self._free_matches(pool, query)
            if matches.may_fail:
                return Verdict.UNKNOWN
            wanted -= matches.count
        return Verdict.YES if wanted <= 0 else Verdict.NO

    def _free_matches(self, pool: Pool, query: Query) -> FreeMatches:
        """Return the free devices of a pool that match; cached until its use changes."""
        used = self._in_use.bits(pool)
        cached = pool.matches.get(query)
        known = None if cached is None else cached.free
        if known is None or known.used != used:
            matches = self._matcher.all_known(pool, query)
            free = matches.candidates & ~used
            may_fail = any(free >> position & 1 for position in matches.failures)
            free &= ~pool.unallocatable
            known = matches.free = FreeMatches(used, free, free.bit_count(), may_fail)
        return known


def _devices_in(free: dict[Query, list[FreeMatches]], queries: Sequence[Query]) -> int:
    """Return how many free devices match any of the queries."""
    if len(queries) == 1:
        return sum(each.count for each in free[queries[0]])
    total = 0
    for of_pool in zip(*(free[query] for query in queries), strict=True):
        union = 0
        for each in of_pool:
            union |= each.bits
        total += union.bit_count()
    return total
