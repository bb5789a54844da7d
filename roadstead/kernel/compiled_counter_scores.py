"""Compiled scores by counters: spread constraints and preferred inter-pod affinity.

The arithmetic is, operation for operation, that of `plugins/pod_topology_spread.py` and
`plugins/inter_pod_affinity.py`. A unit is a row or, if cells are evaluated, a cell; for it and the
parameters see `compiled_counters.py`.
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.compiled_cells import slot_of
from roadstead.kernel.counter_arrays import HOST, NO_CELLS, NO_MINIMUM, SCORE, SOFT, CounterArrays
from roadstead.kernel.jit import inlined, quotient
from roadstead.nodes.columns import I32, Bools

_UNSCORED = np.iinfo(np.int64).min
"""Raw spread score of a unit that is not scored; also the maximum of no scores."""


@inlined
def _count_domains(
    counters: CounterArrays, counter: int, soft_domains: I32, is_scored: Bools, units: int
) -> int:
    """Return the number of domains of the scored rows that fit."""
    counters.clock[0] += 1
    now, found, at = counters.clock[0], 0, counters.count_begin[counter]
    for unit in range(units):
        if counters.fits[unit] and is_scored[unit]:
            position = at + soft_domains[unit]
            # A stamp of this call means that the domain is counted. No stamp has to be cleared.
            if counters.stamps[position] != now:
                counters.stamps[position] = now
                found += 1
                if found == counters.soft_domain_count[counters.key[counter]]:
                    break
    return found


@inlined
def _spread_scores(
    counters: CounterArrays,
    c: int,
    cell_set: int,
    all_domains: I32,
    soft_domains: I32,
    is_scored: Bools,
    units: int,
) -> tuple[int, int]:
    """Compute raw spread scores in `counters.spread`; return the extremes of units that fit."""
    sums, fits, counter_set = counters.sums, counters.fits[:units], counters.set_of_class[c]
    scored = 0
    for unit in range(fits.shape[0]):
        sums[unit] = 0.0
        scored += fits[unit] and is_scored[unit]
    if cell_set != NO_CELLS:
        # The number of domains of a hostname constraint is that of scored rows, not of cells.
        scored = 0
        for cell in range(units):
            scored += counters.cells.feasible[c, cell] if fits[cell] and is_scored[cell] else 0
    for counter in range(counters.set_begin[counter_set], counters.set_begin[counter_set + 1]):
        kind = counters.kind[counter]
        if kind != SOFT and kind != HOST:
            continue
        slot, at = slot_of(counters, cell_set, counter_set, counter)
        domains, skew = all_domains[slot], float(counters.skew[counter])
        domain_count = (
            scored
            if kind == HOST
            else _count_domains(counters, counter, soft_domains[slot], is_scored, units)
        )
        weight = counters.topology_weights[domain_count]
        # Sums of units that do not fit are not read; computing them, too, needs no branch.
        if kind == HOST:
            for unit in range(fits.shape[0]):
                part = float(counters.counts[at + unit]) * weight
                sums[unit] += part + skew if domains[unit] >= 0 else 0.0
        else:
            for unit in range(fits.shape[0]):
                domain = domains[unit]
                part = float(counters.counts[at + max(domain, 0)]) * weight
                sums[unit] += part + skew if domain >= 0 else 0.0
    lowest, highest = NO_MINIMUM, _UNSCORED
    for unit in range(fits.shape[0]):
        if fits[unit] and is_scored[unit]:
            # Round halves up, as Go's math.Round does for amounts that are not negative.
            floor = np.floor(sums[unit])
            raw = int(floor) + (1 if sums[unit] - floor >= 0.5 else 0)
            counters.spread[unit] = raw
            lowest, highest = min(lowest, raw), max(highest, raw)
        else:
            counters.spread[unit] = _UNSCORED
    return lowest, highest


@inlined
def _affinity_scores(
    counters: CounterArrays, cell_set: int, all_domains: I32, counter_set: int, units: int
) -> tuple[int, int]:
    """Compute raw affinity scores in `counters.affinity`; return the extremes of units that fit."""
    affinity, fits = counters.affinity[:units], counters.fits[:units]
    affinity[:] = 0
    for counter in range(counters.set_begin[counter_set], counters.set_begin[counter_set + 1]):
        if counters.kind[counter] == SCORE:
            slot, at = slot_of(counters, cell_set, counter_set, counter)
            domains = all_domains[slot]
            for unit in range(fits.shape[0]):
                if domains[unit] >= 0:
                    affinity[unit] += counters.counts[at + domains[unit]]
    lowest, highest = NO_MINIMUM, _UNSCORED
    for unit in range(fits.shape[0]):
        if fits[unit]:
            lowest, highest = min(lowest, affinity[unit]), max(highest, affinity[unit])
    return lowest, highest


@inlined
def add_counter_scores(
    counters: CounterArrays,
    c: int,
    cell_set: int,
    all_domains: I32,
    soft_domains: I32,
    is_scored: Bools,
    units: int,
) -> None:
    """Add the spread and affinity scores of the units that fit to `counters.total`."""
    counter_set = counters.set_of_class[c]
    spread_weight, affinity_weight = counters.weights[c, 0], counters.weights[c, 1]
    fits = counters.fits[:units]
    if spread_weight:
        lowest, highest = _spread_scores(
            counters, c, cell_set, all_domains, soft_domains, is_scored, units
        )
        for unit in range(fits.shape[0]):
            if fits[unit] and counters.spread[unit] != _UNSCORED:
                score = 100
                if highest > 0:
                    score = quotient(100 * (highest + lowest - counters.spread[unit]), highest)
                counters.total[unit] += spread_weight * score
    if affinity_weight:
        lowest, highest = _affinity_scores(counters, cell_set, all_domains, counter_set, units)
        if highest > lowest:
            for unit in range(fits.shape[0]):
                if fits[unit]:
                    share = float(counters.affinity[unit] - lowest) / float(highest - lowest)
                    counters.total[unit] += affinity_weight * int(100.0 * share)
