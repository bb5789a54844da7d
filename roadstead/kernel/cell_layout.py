"""Layout of cells: groups of rows that are equal for spread constraints and affinity, see `Cells`.

A fleet has a few zones and tens of thousands of nodes: constraints are computed once per zone. If
each row is a domain of its own (hostname), rows with the same number of pods in their domain are
equal; a row that gets a pod moves to another cell (docs/decisions/0037). The cells of one counter
set (the counters of a class) are a *cell set*; a counter's number in its set is its *slot*. Rows
are *scored* by spread constraints if they have all their topology keys, where upstream requires
that. `counter_arrays.py` describes the arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadstead.kernel.counter_arrays import HOST, SOFT, Cells, CounterArrays
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.table import Rows

MAX_CELLS = 4096
"""With more cells, or fewer than two rows per cell, rows are evaluated instead."""

ADDED_MAX = 256
"""Maximum number of cells that placements add; with more, rows are evaluated instead."""

MIN_PODS = 16
"""Cells are built for a counter set after this many of its pods: building them takes as long as
evaluating the rows for so many."""

MAX_STORED = 1 << 24
"""Maximum of rows times counter sets with cells: each set stores the cell of each row."""

COUNTED_MAX = 4
"""Codes below this many times the number of rows are numbered by counting (`bincount`), larger
codes by sorting (`unique`); see `_number_pairs`."""

_Pair = tuple[int, int]
"""What a cell set is built for: a counter set, and an index of static scores, since the rows of a
cell are of one normalization group by these (`Totals.group_of_row`)."""


@dataclass(frozen=True, slots=True)
class _CellSet:
    """The cells of a counter set.

    static_index: index of the static scores that group the rows. is_own_domain: bool[slot], whether
    each row is its own domain in the counter. cell_of: int64[row], its cell. static_cell_of:
    int64[row], the cell that it would have without the own-domain counters; placements move rows
    only between cells with the same one.
    """

    counter_set: int
    static_index: int
    is_own_domain: Bools
    cell_of: I64
    static_cell_of: I64


class CellChooser:
    """Choose the counter sets of a kernel that get cells: those with enough pods (MIN_PODS)."""

    def __init__(self, group_of_row: I32, row_at: Rows) -> None:
        """group_of_row: int32[static_index, row]. row_at: int64[position]."""
        self._group_of_row, self._row_at = group_of_row, row_at
        # Number of pods so far, and the pairs that get cells, in order.
        self._pods_of: Counter[_Pair] = Counter()
        self._chosen: dict[_Pair, None] = {}

    def prepare(self, counters: CounterArrays, classes: I64) -> CounterArrays:
        """Return the counters for the next pods, with the cells chosen. classes: int64[pod]."""
        with_counters = classes[counters.set_of_class[classes] >= 0]
        if not (len(with_counters) and len(self._row_at)):
            return counters
        pods_of_class = np.bincount(with_counters)
        max_chosen, before = max(1, MAX_STORED // len(self._row_at)), len(self._chosen)
        for c in np.flatnonzero(pods_of_class).tolist():
            pair = _pair(counters, c)
            self._pods_of[pair] += int(pods_of_class[c])
            if self._pods_of[pair] >= MIN_PODS and len(self._chosen) < max_chosen:
                self._chosen[pair] = None
        return self._with_cells(counters) if len(self._chosen) > before else counters

    def _with_cells(self, counters: CounterArrays) -> CounterArrays:
        group_of_row = self._group_of_row
        built = {pair: _cell_set(counters, *pair, group_of_row[pair[1]]) for pair in self._chosen}
        cell_sets = {pair: cell_set for pair, cell_set in built.items() if cell_set is not None}
        index_of = {pair: index for index, pair in enumerate(cell_sets)}
        classes = range(len(counters.set_of_class))
        cell_set_of_class = [index_of.get(_pair(counters, c), -1) for c in classes]
        if not cell_sets:
            return counters._replace(cells=no_cells(len(classes)))
        return _with_cell_sets(
            counters, list(cell_sets.values()), cell_set_of_class, group_of_row, self._row_at
        )


def _pair(counters: CounterArrays, c: int) -> _Pair:
    return int(counters.set_of_class[c]), int(counters.static_index[c])


def _cell_set(
    counters: CounterArrays, counter_set: int, static_index: int, group_of_row: I32
) -> _CellSet | None:
    """Return the cells of a counter set; None if there are too many."""
    set_counters = range(counters.set_begin[counter_set], counters.set_begin[counter_set + 1])
    is_own_domain = np.array(
        [_is_own_domain(counters, counter) for counter in set_counters], np.bool_
    )
    max_cells = min(MAX_CELLS, len(group_of_row) // 2)
    # By row: equal codes for rows that are equal so far.
    codes: I64 | None = (
        2 * group_of_row.astype(np.int64) + counters.masks[counters.scored_mask[counter_set]]
    )
    shared_keys = {
        int(counters.key[counter])
        for counter, is_own in zip(set_counters, is_own_domain, strict=True)
        if not is_own
    }
    for topology_key in sorted(shared_keys):
        codes = _number_pairs(codes, counters.domains[topology_key].astype(np.int64), max_cells)
    # If each row is its own domain in all counters of the set, the loop above did not number the
    # codes. To pair them with a constant numbers them, and changes nothing else.
    codes = static_cell_of = _number_pairs(codes, np.zeros(len(group_of_row), np.int64), max_cells)
    for counter, is_own in zip(set_counters, is_own_domain.tolist(), strict=True):
        if is_own:
            codes = _number_pairs(codes, counters.domains[counters.key[counter]] >= 0, max_cells)
            codes = _number_pairs(codes, _counts_by_row(counters, counter), max_cells)
    if codes is None or static_cell_of is None:
        return None
    return _CellSet(counter_set, static_index, is_own_domain, codes, static_cell_of)


def _is_own_domain(counters: CounterArrays, counter: int) -> bool:
    """Whether each row is its own domain in a counter.

    False for all SOFT counters: their score needs the number of domains among the scored rows.
    """
    kind, domains = counters.kind[counter], counters.domains[counters.key[counter]]
    if kind in (HOST, SOFT):
        return bool(kind == HOST)
    return int(np.bincount(domains + 1)[1:].max(initial=0)) <= 1


def _counts_by_row(counters: CounterArrays, counter: int) -> I64:
    """Return the counts of a counter in which each row is its own domain: int64[row]."""
    at, domains = counters.count_begin[counter], counters.domains[counters.key[counter]]
    if counters.kind[counter] == HOST:
        return counters.counts[at : at + len(domains)]
    return np.where(domains >= 0, counters.counts[at + np.maximum(domains, 0)], 0)


def _number_pairs(codes: I64 | None, second: I64 | Bools, max_pairs: int) -> I64 | None:
    """Number the pairs (code, second) of the rows: int64[row], from 0; equal pairs get one number.

    None if there are more than `max_pairs` numbers, or the codes are None.
    """
    if codes is None:
        return None
    second = second.astype(np.int64) - int(second.min(initial=0))
    codes = codes * (int(second.max(initial=0)) + 1) + second
    if int(codes.max(initial=0)) < COUNTED_MAX * len(codes):
        occurs = np.bincount(codes) > 0
        numbers: I64 = np.cumsum(occurs) - 1
        return numbers[codes] if numbers[-1] < max_pairs else None
    values, numbered = np.unique(codes, return_inverse=True)
    return numbered.reshape(-1).astype(np.int64) if len(values) <= max_pairs else None


def _with_cell_sets(
    counters: CounterArrays,
    cell_sets: Sequence[_CellSet],
    cell_set_of_class: Sequence[int],
    group_of_row: I32,
    row_at: Rows,
) -> CounterArrays:
    """Return the counters with these cell sets, and with the counts of own-domain counters."""
    slots = max(len(each.is_own_domain) for each in cell_sets)
    capacity = max(_capacity(each) for each in cell_sets)
    cells = _empty_cells(len(cell_sets), slots, capacity, len(row_at), cell_set_of_class)
    # Without the counts that earlier cell sets appended.
    end = len(counters.domain_exists)
    counts = [counters.counts[:end]]
    for index, each in enumerate(cell_sets):
        size = int(each.cell_of.max()) + 1
        # int64[cell], a row of each cell: any of them, since they are equal.
        row_of_cell = np.empty(size, np.intp)
        row_of_cell[each.cell_of] = np.arange(len(row_at))
        cells.counter_set[index], cells.cell_count[index] = each.counter_set, size
        cells.cell_at[index] = each.cell_of[row_at]
        cells.static_cell[index, :size] = each.static_cell_of[row_of_cell]
        scored = counters.masks[counters.scored_mask[each.counter_set]]
        cells.is_scored[index, :size] = scored[row_of_cell]
        cells.group[index, :size] = group_of_row[each.static_index, row_of_cell]
        for slot, is_own in enumerate(each.is_own_domain.tolist()):
            counter = int(counters.set_begin[each.counter_set]) + slot
            topology_key = counters.key[counter]
            cells.is_own_domain[index, slot], cells.count_begin[index, slot] = (
                is_own,
                counters.count_begin[counter],
            )
            domains = counters.domains[topology_key]
            soft_domains = counters.soft_domains[topology_key]
            cells.domains[index, slot, :size] = domains[row_of_cell]
            cells.soft_domains[index, slot, :size] = soft_domains[row_of_cell]
            if is_own:
                # Each cell is a domain; its count is behind those of the counters.
                of_cells = np.zeros(capacity, np.int64)
                of_cells[:size] = _counts_by_row(counters, counter)[row_of_cell]
                has_domain = cells.domains[index, slot, :size] >= 0
                cells.domains[index, slot, :size] = np.where(has_domain, np.arange(size), -1)
                cells.count_begin[index, slot] = end
                counts.append(of_cells)
                end += capacity
    scratch = {
        name: np.zeros(max(capacity, len(row_at)), getattr(counters, name).dtype)
        for name in ("fits", "sums", "spread", "affinity", "total")
    }
    return counters._replace(cells=cells, counts=np.concatenate(counts), **scratch)


def _capacity(cell_set: _CellSet) -> int:
    """Return the number of cells, with those that placements may add."""
    size = int(cell_set.cell_of.max()) + 1
    return size + ADDED_MAX if cell_set.is_own_domain.any() else size


def no_cells(classes: int) -> Cells:
    """Return the arrays for classes that have no cells."""
    return _empty_cells(0, 0, 0, 0, [-1] * classes)


def _empty_cells(
    cell_sets: int, slots: int, capacity: int, rows: int, cell_set_of_class: Sequence[int]
) -> Cells:
    classes = len(cell_set_of_class)
    return Cells(
        cell_set_of_class=np.array(cell_set_of_class, np.int64),
        counter_set=np.zeros(cell_sets, np.int64),
        cell_count=np.zeros(cell_sets, np.int64),
        is_full=np.zeros(cell_sets, np.bool_),
        cell_at=np.empty((cell_sets, rows), np.int32),
        last_move=np.full((cell_sets, 2), -1, np.int64),
        count_begin=np.zeros((cell_sets, slots), np.int64),
        domains=np.zeros((cell_sets, slots, capacity), np.int32),
        soft_domains=np.zeros((cell_sets, slots, capacity), np.int32),
        is_own_domain=np.zeros((cell_sets, slots), np.bool_),
        static_cell=np.zeros((cell_sets, capacity), np.int32),
        is_scored=np.zeros((cell_sets, capacity), np.bool_),
        group=np.zeros((cell_sets, capacity), np.int32),
        top=np.empty((classes, capacity), np.int32),
        tied=np.empty((classes, capacity), np.int32),
        feasible=np.empty((classes, capacity), np.int32),
        is_built=np.zeros(classes, np.bool_),
        total=np.zeros(capacity, np.int32),
        last_cell_set=np.full(1, -1, np.int64),
    )


def in_best_cells(counters: CounterArrays, cell_set: int, totals: I32, highest: int) -> Bools:
    """Return which rows had the highest total at the last decision, by cells: bool[position].

    totals: int32[position], of the class that was decided, without spread and affinity scores,
    which are equal in a cell. highest: the highest total with these scores.
    """
    cells = counters.cells
    cell_at = cells.cell_at[cell_set].copy()
    # The placement may have moved the chosen row to another cell since: use its former cell.
    position, before = cells.last_move[cell_set].tolist()
    if position >= 0:
        cell_at[position] = before
    is_best: Bools = (counters.total[cell_at] == highest) & (totals == cells.total[cell_at])
    return is_best
