"""Arrays of the compiled code for spread constraints and inter-pod affinity.

A *counter* is a table of counts by topology domain: for one spread constraint, or for one topology
key and one family of inter-pod affinity terms (as required anti-affinity of placed pods). A
*counter set* is a list of counters, shared by all classes that have equal ones; a counter's number
in it is its *slot*. A placed pod adds to counters according to its *pod profile*: namespace, labels
and terms. A row is *scored* by soft spread constraints if it has the topology keys of all of them,
or if upstream does not require the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.pod_class import PodClass

HARD, SOFT, HOST, EXISTING_ANTI, AFFINITY, ANTI_AFFINITY, SCORE = range(7)
"""Types of counters. HARD, SOFT: spread constraints that are DoNotSchedule and ScheduleAnyway.
HOST: a soft constraint over hostnames, which counts each node's own pods. EXISTING_ANTI: required
anti-affinity of placed pods. AFFINITY, ANTI_AFFINITY: the class's own required terms. SCORE: the
weights that terms add to the score."""

NO_CELLS = -1
"""Cell set of a class whose rows are evaluated one by one, without cells."""

NO_MINIMUM = np.iinfo(np.int64).max
"""The minimum of no values."""

LOWEST, AT_LOWEST, DOMAIN_COUNT = 0, 1, 2
"""Columns of `CounterArrays.lowest`: the lowest count of a domain, the number of domains with it
(0: to be computed again), the number of all domains."""


class Cells(NamedTuple):
    """Groups of rows that are equal for a counter set, and so are evaluated once.

    Rows of a cell have the same domains, keys and normalization group and, for counters in which
    each row is its own domain, the same counts. A *cell set* is the cells of one counter set for
    one index of static scores.

    cell_set_of_class: int64[class], NO_CELLS if rows are evaluated. Per cell set: counter_set, and
    cell_count, its number of cells: int64[cell set]; is_full: bool[cell set], a cell could not be
    added, so that rows are evaluated from then on. cell_at: int32[cell set, position]; last_move:
    int64[cell set, 2], the position whose row changed its cell since the last decision (-1 for
    none), and its former cell.
    Each counter of the set has a slot. count_begin: int64[cell set, slot], index of its first
    count; domains, soft_domains: int32[cell set, slot, cell], as those of rows; is_own_domain:
    bool[cell set, slot], whether each row is its own domain: each cell then has a count of its own.
    static_cell: int32[cell set, cell], equal for cells that differ in such counts only. is_scored:
    bool[cell set, cell], whether rows have all keys; group: int32[cell set, cell], normalization
    group.
    top, tied, feasible: int32[class, cell], the highest total (an upper bound while tied is 0),
    number of rows with it (0: to be computed again), number of feasible rows; is_built:
    bool[class], whether these are computed. total: int32[cell], `top` at the last decision;
    last_cell_set: int64[1], that of the last decision, NO_CELLS if rows were evaluated.
    """

    cell_set_of_class: I64
    counter_set: I64
    cell_count: I64
    is_full: Bools
    cell_at: I32
    last_move: I64
    count_begin: I64
    domains: I32
    soft_domains: I32
    is_own_domain: Bools
    static_cell: I32
    is_scored: Bools
    group: I32
    top: I32
    tied: I32
    feasible: I32
    is_built: Bools
    total: I32
    last_cell_set: I64


class CounterArrays(NamedTuple):
    """Counters, the counter sets of classes, and scratch arrays.

    domains: int32[topology key, row], code of the row's value of the key, -1 for none;
    soft_domains: the same with one more code for rows without the key; soft_domain_count:
    int64[topology key], number of codes in it.
    masks: bool[mask, row], sets of rows; mask 0 has all rows.
    Per counter: kind (its type), key (index of its topology key), count_begin and count_size (its
    part of counts), counted_mask (the rows whose pods are counted), skew and min_domains (as of
    `TermCounter`): int64[counter]. counts: int64[count];
    domain_exists: bool[count], of a hard constraint; stamps: int64[count], the clock when
    `_count_domains` last counted a domain. lowest: int64[counter, 3], of a hard constraint,
    with the columns LOWEST, AT_LOWEST and DOMAIN_COUNT.
    Per counter set: set_begin: int64[set + 1], its first counter; scored_mask: int64[set], the
    mask of scored rows; matches_itself: bool[set], whether its pods match
    their own required affinity.
    Per class: set_of_class (-1 for none), pod_profile, static_index (index of its static scores):
    int64[class]; weights: int64[class, 2], of the spread and the affinity score, 0 for no score;
    last_groups: bool[class, group], groups with feasible rows at the last normalization;
    has_last_groups: bool[class].
    additions: int64[k, 2], (counter, amount) that a placed pod adds; those of a pod profile are
    from additions_from[pod_profile] to additions_from[pod_profile + 1].
    fits, sums, spread, affinity, total: per row or cell, group_feasible: per group, scratch for the
    current pod. topology_weights: float64[n], ln(n + 2), upstream's for n domains. clock: int64[1],
    number of calls of `_count_domains`.
    """

    domains: I32
    soft_domains: I32
    soft_domain_count: I64
    masks: Bools
    kind: I64
    key: I64
    count_begin: I64
    count_size: I64
    counted_mask: I64
    skew: I64
    min_domains: I64
    counts: I64
    domain_exists: Bools
    stamps: I64
    lowest: I64
    set_begin: I64
    scored_mask: I64
    matches_itself: Bools
    set_of_class: I64
    pod_profile: I64
    static_index: I64
    weights: I64
    last_groups: Bools
    has_last_groups: Bools
    additions: I64
    additions_from: I64
    fits: Bools
    group_feasible: I64
    sums: NDArray[np.float64]
    spread: I64
    affinity: I64
    total: I32
    topology_weights: NDArray[np.float64]
    clock: I64
    cells: Cells


@dataclass(frozen=True, slots=True)
class TermCounter:
    """One table of counts by domain. counted_rows: rows whose pods are counted, None for all.

    kind: its type, such as HARD. key: the topology key. current: the counts when the kernel is
    built, by topology value or by row (HOST). skew: of HARD, maxSkew, or maxSkew - 1 if the
    constraint also counts the pod to place; of SOFT and HOST, maxSkew - 1, which upstream adds to
    the score. min_domains: of HARD.
    """

    kind: int
    key: str
    current: Mapping[str, int] | I64
    counted_rows: Bools | None = None
    skew: int = 0
    min_domains: int = 0


@dataclass(slots=True)
class ClassCounters:
    """The counters that some classes share. pod_class: one of these classes.

    scored_rows: None for all. matches_itself: whether pods of these classes match their own
    required affinity. spread_weight, affinity_weight: of the scores, 0 for no score. additions_of:
    one function per plugin: class of a placed pod → what the pod adds, as (index in `counters`,
    amount).
    """

    pod_class: PodClass
    counters: list[TermCounter] = field(default_factory=list)
    scored_rows: Bools | None = None
    matches_itself: bool = False
    spread_weight: int = 0
    affinity_weight: int = 0
    additions_of: list[Callable[[PodClass], Iterable[tuple[int, int]]]] = field(
        default_factory=list
    )
