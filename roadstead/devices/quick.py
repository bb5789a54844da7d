"""Answers for plain claims without a search, equal to those of the search.

Plain claims (see `Plan`) request numbers of devices. Without constraints, the search chooses the
first free devices that match, and changes a choice only if too few devices are left for a later
request. So if the first free devices suffice, they are its answer. If they do not, a solution
exists exactly if every set of queries matches enough devices in all (Hall's theorem). Where a
selector may fail, only the search can answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import combinations
from typing import TYPE_CHECKING, Final

from roadstead.devices.bits import positions_of
from roadstead.devices.chosen_devices import Chosen
from roadstead.devices.pools import FreeMatches
from roadstead.devices.selectors import SelectorFailure
from roadstead.devices.views import UNSHARED

if TYPE_CHECKING:
    from collections.abc import Hashable

    from roadstead.devices.in_use import DevicesInUse
    from roadstead.devices.plans import Choice, Demand
    from roadstead.devices.pools import Pool
    from roadstead.devices.selectors import Query
    from roadstead.devices.views import PoolMatcher

QUERIES_MAX: Final = 4
"""A demand with more queries is left to the search: each doubles the sets that must be counted."""

EVALUATED_MAX: Final = 1024
"""If a node sees more devices, they are not all evaluated as long as the first ones suffice."""


class Verdict(Enum):
    """Whether a node has devices for a demand. UNKNOWN: only the search decides."""

    NO = 0
    YES = 1
    UNKNOWN = 2


class QuickAnswers:
    """Answer demands (see `Demand`) from the bits of free devices that match.

    matcher: evaluates which devices of a pool match a query.
    """

    def __init__(self, matcher: PoolMatcher, in_use: DevicesInUse) -> None:
        self._matcher = matcher
        self._in_use = in_use

    def first_devices(
        self, demand: Demand, pools: Sequence[Pool], claims: int
    ) -> list[list[Chosen]] | Verdict:
        """Return the devices that the search would choose, by claim; or NO or UNKNOWN.

        claims: how many there are.
        """
        chosen: list[list[Chosen]] = [[] for _ in range(claims)]
        # By index of the pool.
        chosen_bits: dict[int, int] = {}
        for claim, choice in demand.steps:
            missing = self._choose_first(choice, pools, chosen_bits, chosen[claim])
            if missing is None:
                return Verdict.UNKNOWN
            if missing:
                if len(demand.totals) == 1:
                    return Verdict.NO
                if len(demand.totals) > QUERIES_MAX:
                    return Verdict.UNKNOWN
                # Other devices than the first may suffice; only the search finds out which.
                verdict = self._verdict_by_counts(demand, pools)
                return Verdict.NO if verdict is Verdict.NO else Verdict.UNKNOWN
        return chosen

    def _choose_first(
        self,
        choice: Choice,
        pools: Sequence[Pool],
        chosen_bits: dict[int, int],
        chosen: list[Chosen],
    ) -> int | None:
        """Choose the first free devices; return how many are missing, None if unknown."""
        missing = choice.facts.count
        query = choice.query
        for index, pool in enumerate(pools):
            if not missing:
                break
            # The choices of devices of such a pool depend on each other, or it is an error to
            # choose one: only the search has the answer.
            if pool.needs_search or pool.invalid:
                return None
            bits = chosen_bits.get(index, 0)
            free = self._matcher.matches(pool, query).candidates & ~(self._in_use.bits(pool) | bits)
            for position in positions_of(free):
                outcome = self._matcher.evaluate(pool, query, position)
                if isinstance(outcome, SelectorFailure):
                    return None
                bit = 1 << position
                if not outcome or pool.unallocatable & bit:
                    continue
                bits |= bit
                chosen.append(Chosen(choice, pool.devices[position], None))
                missing -= 1
                if not missing:
                    break
            chosen_bits[index] = bits
        return missing

    def equivalence_key(self, pools: Sequence[Pool]) -> Hashable:
        """Return a key that is equal for nodes whose pools have equal devices, equally used.

        Verdicts and searches have equal results for equal keys; only names in errors may differ.
        None if the results depend on more than that.
        """
        found = []
        for pool in pools:
            code = self._matcher.devices_code_of(pool)
            # UNSHARED: nodes are selected by labels, which become part of the allocations.
            if code == UNSHARED or pool.invalid or pool.is_incomplete:
                return None
            if not pool.depends_on_use_alone:
                return None
            found.append((code, self._in_use.bits(pool), self._in_use.consumption_key(pool)))
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
        return self._verdict_by_counts(demand, pools)

    def _verdict_by_counts(self, demand: Demand, pools: Sequence[Pool]) -> Verdict:
        """Return the verdict from the numbers of matching devices; it evaluates every device."""
        if len(demand.totals) == 1:
            return self._verdict_of_one_query(*demand.totals[0], pools)
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
            for subset in combinations(demand.totals, size):
                wanted = sum(number for _, number in subset)
                if _count_matching_any(free, [query for query, _ in subset]) < wanted:
                    return Verdict.NO
        return Verdict.YES

    def _verdict_of_one_query(self, query: Query, wanted: int, pools: Sequence[Pool]) -> Verdict:
        """Return the verdict for a single query, as most demands have: the fast case."""
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
            # The search evaluates selectors before it looks at counters, so an unallocatable device
            # may be an error, too.
            may_fail = any(free >> position & 1 for position in matches.failures)
            free &= ~pool.unallocatable
            known = matches.free = FreeMatches(used, free, free.bit_count(), may_fail)
        return known


def _count_matching_any(free: dict[Query, list[FreeMatches]], queries: Sequence[Query]) -> int:
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
