"""Layout of counters (counts by topology domain) and of the classes that share them, as arrays.

A counter set is the counters that classes share, a pod profile what a placed pod adds to counters;
`counter_arrays.py` describes both. Classes that differ in resource amounts alone share an
evaluation, and so its counters (`covered_classes.SharedEvaluation`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from roadstead.framework.evaluation import Evaluation
from roadstead.kernel.cell_layout import no_cells
from roadstead.kernel.counter_arrays import HARD, SOFT, ClassCounters, CounterArrays, TermCounter
from roadstead.kernel.lowering.lowerings import counter_set_key, counter_set_of, pod_profile_key
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable

MAX_COUNTS = 1 << 23
"""Maximum number of counts over all counters; with more, the plugins decide."""


def with_classes(counters: CounterArrays, evaluation_of: I64) -> CounterArrays:
    """Return counter sets by class from counter sets by shared evaluation.

    evaluation_of: int64[class], index of its shared evaluation. If `counters` were laid out for no
    evaluation, because there would be too many counts, no class has a counter set.
    """
    classes = len(evaluation_of)
    if len(counters.set_of_class):
        set_of_class = counters.set_of_class[evaluation_of]
        pod_profile = counters.pod_profile[evaluation_of]
        static_index, weights = (
            counters.static_index[evaluation_of],
            counters.weights[evaluation_of],
        )
        additions_from = counters.additions_from
    else:
        pod_profile = static_index = np.zeros(classes, np.int64)
        set_of_class, weights = pod_profile - 1, np.zeros((classes, 2), np.int64)
        additions_from = np.zeros(2, np.int64)
    return counters._replace(
        set_of_class=set_of_class,
        pod_profile=pod_profile,
        static_index=static_index,
        additions_from=additions_from,
        weights=weights,
        last_groups=np.zeros((classes, counters.group_feasible.shape[0]), np.bool_),
        has_last_groups=np.zeros(classes, np.bool_),
        cells=no_cells(classes),
    )


class _TopologyKeys:
    """Topology keys, and the code of each row's value.

    domains, soft_domains: see `CounterArrays`. Their first entry has no key; it gives the arrays
    their shape if there are no counters.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._index: dict[str, int] = {}
        self.domains: list[I32] = [np.zeros(len(table), np.int32)]
        self.soft_domains: list[I32] = [np.zeros(len(table), np.int32)]

    def index_of(self, key: str) -> int:
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.domains)
            column = self._table.columns.label(key)
            codes = column.codes[: len(self._table)].astype(np.int32)
            self.domains.append(codes)
            self.soft_domains.append(
                np.where(codes < 0, self.code_without(key), codes).astype(np.int32)
            )
        return index

    def code_without(self, key: str) -> int:
        """Return the code for nodes without the key: that of the value "", or else a new one.

        Upstream reads a missing label as "" when it counts for soft constraints.
        """
        values = self._table.columns.label(key).values
        empty = values.find("")
        return empty if empty >= 0 else len(values)

    def size(self, key: str) -> int:
        """Return the number of codes, with that of nodes without the key."""
        return len(self._table.columns.label(key).values) + 1

    def counts(self, counter: TermCounter) -> I64:
        """Return the current counts: int64[domain]."""
        if isinstance(counter.current, np.ndarray):
            return counter.current.astype(np.int64)
        counts: I64 = np.zeros(self.size(counter.key), dtype=np.int64)
        for index, count in self._counts_by_code(counter):
            counts[index] = count
        return counts

    def domain_exists(self, counter: TermCounter) -> Bools:
        """Return which domains of a hard constraint exist, with or without pods: bool[domain]."""
        exists: Bools = np.zeros(len(self.counts(counter)), dtype=np.bool_)
        if counter.kind == HARD:
            exists[[index for index, _ in self._counts_by_code(counter)]] = True
        return exists

    def _counts_by_code(self, counter: TermCounter) -> list[tuple[int, int]]:
        """Return (code, count) for the topology values of a counter that the table has."""
        assert isinstance(counter.current, Mapping)
        values = self._table.columns.label(counter.key).values
        counts = []
        for value, count in counter.current.items():
            index = (
                self.code_without(counter.key)
                if not value and counter.kind == SOFT
                else values.find(value)
            )
            if index >= 0:
                counts.append((index, count))
        return counts


class _Masks:
    """Sets of rows, each stored once; the first one has all rows."""

    def __init__(self, rows: int) -> None:
        self.all: list[Bools] = [np.ones(rows, dtype=np.bool_)]
        self._index: dict[bytes, int] = {self.all[0].tobytes(): 0}

    def index_of(self, mask: Bools | None) -> int:
        if mask is None:
            return 0
        index = self._index.setdefault(mask.tobytes(), len(self.all))
        if index == len(self.all):
            self.all.append(mask)
        return index


def lay_out_counters(
    evaluations: Sequence[Evaluation], table: NodeTable, static_index: Sequence[int], groups: int
) -> CounterArrays | None:
    """Return the counters of evaluations after PreFilter and PreScore; None for too many counts.

    Arrays by class have one entry per evaluation; `with_classes` gives them one per class.
    static_index: the index of each evaluation's static scores. groups: the maximum number of
    normalization groups of a class.
    """
    pods, profile_of = _distinct_profiles(evaluations)
    sets, set_of_class = _distinct_sets(evaluations, pods)
    weights = [(sets[index].spread_weight, sets[index].affinity_weight) for index in set_of_class]
    set_of_class = [index if sets[index].counters else -1 for index in set_of_class]
    rows = len(table)
    keys, masks = _TopologyKeys(table), _Masks(rows)
    counters = [counter for each in sets for counter in each.counters]
    if sum(max(rows, keys.size(counter.key)) for counter in counters) > MAX_COUNTS:
        return None
    additions, additions_from = _additions(sets, pods)
    counts = [keys.counts(counter) for counter in counters]
    counter_begin = np.cumsum([0, *(len(each.counters) for each in sets)])
    integers = {
        "kind": [counter.kind for counter in counters],
        "key": [keys.index_of(counter.key) for counter in counters],
        "count_begin": np.cumsum([0, *map(len, counts)])[:-1],
        "count_size": [len(each) for each in counts],
        "counted_mask": [masks.index_of(counter.counted_rows) for counter in counters],
        "skew": [counter.skew for counter in counters],
        "min_domains": [counter.min_domains for counter in counters],
        "set_begin": counter_begin,
        "scored_mask": [masks.index_of(each.scored_rows) for each in sets],
        "set_of_class": set_of_class,
        "pod_profile": profile_of,
        "static_index": static_index,
        "additions_from": additions_from,
    }
    flat = _joined(counts)
    # Without counters, arrays by row are not used.
    rows = rows if counters else 0
    return CounterArrays(
        domains=np.array(keys.domains, dtype=np.int32),
        soft_domains=np.array(keys.soft_domains, dtype=np.int32),
        soft_domain_count=np.array(
            [np.count_nonzero(np.bincount(e)) for e in keys.soft_domains], dtype=np.int64
        ),
        masks=np.array(masks.all, dtype=np.bool_),
        **{name: np.array(values, dtype=np.int64) for name, values in integers.items()},
        counts=flat,
        domain_exists=_joined([keys.domain_exists(counter) for counter in counters]).astype(
            np.bool_
        ),
        stamps=np.zeros(len(flat), np.int64),
        lowest=np.zeros((len(counters), 3), np.int64),
        matches_itself=np.array([each.matches_itself for each in sets], np.bool_),
        weights=np.array(weights, np.int64).reshape(-1, 2),
        last_groups=np.zeros((len(evaluations), groups), np.bool_),
        has_last_groups=np.zeros(len(evaluations), np.bool_),
        additions=additions,
        fits=np.zeros(rows, np.bool_),
        group_feasible=np.zeros(groups, np.int64),
        sums=np.zeros(rows),
        spread=np.zeros(rows, np.int64),
        affinity=np.zeros(rows, np.int64),
        total=np.zeros(rows, np.int32),
        # Rounded up to a power of two, so that few fleet sizes need arrays of their own.
        topology_weights=_topology_weights(1 << (rows + 2).bit_length()),
        clock=np.zeros(1, np.int64),
        cells=no_cells(0),
    )


def _distinct_profiles(evaluations: Sequence[Evaluation]) -> tuple[list[PodClass], list[int]]:
    """Return a pod of each pod profile, and the index of each evaluation's pod profile."""
    found: dict[Hashable, tuple[int, PodClass]] = {}
    profile_of = [
        found.setdefault(pod_profile_key(each.pod), (len(found), each.pod))[0]
        for each in evaluations
    ]
    return [pod for _, pod in found.values()], profile_of


def _distinct_sets(
    evaluations: Sequence[Evaluation], pods: Sequence[PodClass]
) -> tuple[list[ClassCounters], list[int]]:
    """Return the distinct counter sets, and the index of each evaluation's set."""
    index_of: dict[Hashable, int] = {}
    sets: list[ClassCounters] = []
    set_of_class = []
    for each in evaluations:
        index = index_of.setdefault(counter_set_key(each), len(sets))
        if index == len(sets):
            sets.append(counter_set_of(each, pods))
        set_of_class.append(index)
    return sets, set_of_class


@cache
def _topology_weights(count: int) -> NDArray[np.float64]:
    """Return ln(n + 2), computed as the plugin does."""
    return np.array([math.log(n + 2) for n in range(count)])


def _joined(arrays: Sequence[I64] | Sequence[Bools]) -> I64:
    return np.concatenate(arrays).astype(np.int64) if arrays else np.zeros(0, np.int64)


def _additions(sets: Sequence[ClassCounters], pods: Sequence[PodClass]) -> tuple[I64, list[int]]:
    """Return what pods of each pod profile add to all counters, and where its part begins."""
    additions: list[tuple[int, int]] = []
    starts = [0]
    for pod in pods:
        # The index of the set's first counter: `additions_of` counts from 0 within the set.
        first = 0
        for each in sets:
            for additions_of in each.additions_of:
                additions += [(first + counter, amount) for counter, amount in additions_of(pod)]
            first += len(each.counters)
        starts.append(len(additions))
    return np.array(additions, dtype=np.int64).reshape(-1, 2), starts
