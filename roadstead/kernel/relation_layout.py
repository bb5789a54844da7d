"""Layout of counters (counts by topology domain) and of the classes that share them, as arrays."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from roadstead.framework.evaluation import Evaluation
from roadstead.kernel.cell_layout import no_cells
from roadstead.kernel.lowering.lowerings import pod_profile_key, relation_key, relation_of
from roadstead.kernel.relation_arrays import HARD, SOFT, RelationOf, Relations, TermCounter
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable

MAX_COUNTS = 1 << 23
"""Maximum number of counts over all counters; with more, the plugins decide."""


def with_classes(relations: Relations, model_of: I64) -> Relations:
    """Return relations by class from relations by model.

    model_of: int64[class]. Without models, no class has counters.
    """
    classes = len(model_of)
    if len(relations.of_class):
        of_class, pod_profile = relations.of_class[model_of], relations.pod_profile[model_of]
        static_index, weights = relations.static_index[model_of], relations.weights[model_of]
        additions_from = relations.additions_from
    else:
        pod_profile = static_index = np.zeros(classes, np.int64)
        of_class, weights = pod_profile - 1, np.zeros((classes, 2), np.int64)
        additions_from = np.zeros(2, np.int64)
    return relations._replace(
        of_class=of_class,
        pod_profile=pod_profile,
        static_index=static_index,
        additions_from=additions_from,
        weights=weights,
        seen=np.zeros((classes, relations.group_feasible.shape[0]), np.bool_),
        is_seen=np.zeros(classes, np.bool_),
        cells=no_cells(classes),
    )


class _Axes:
    """Topology keys, and the code of each row's value.

    rows, marks: see `Relations.axes` and `Relations.marks`. Axis 0 has no key; it gives the arrays
    their shape if there are no counters.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._index: dict[str, int] = {}
        self.rows: list[I32] = [np.zeros(len(table), np.int32)]
        self.marks: list[I32] = [np.zeros(len(table), np.int32)]

    def of(self, key: str) -> int:
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.rows)
            column = self._table.columns.label(key)
            codes = column.codes[: len(self._table)].astype(np.int32)
            self.rows.append(codes)
            self.marks.append(np.where(codes < 0, self.without(key), codes).astype(np.int32))
        return index

    def without(self, key: str) -> int:
        """Return the code for nodes without the key: that of the empty value, or one of its own.

        Upstream reads a missing label as "" where it counts soft constraints.
        """
        values = self._table.columns.label(key).values
        empty = values.find("")
        return empty if empty >= 0 else len(values)

    def size(self, key: str) -> int:
        return len(self._table.columns.label(key).values) + 1

    def counts(self, counter: TermCounter) -> I64:
        """Return the current counts: int64[domain]."""
        if isinstance(counter.before, np.ndarray):
            return counter.before.astype(np.int64)
        counts: I64 = np.zeros(self.size(counter.key), dtype=np.int64)
        for index, count in self._known_counts(counter):
            counts[index] = count
        return counts

    def present(self, counter: TermCounter) -> Bools:
        """Whether a domain of a hard constraint exists, with or without pods: bool[domain]."""
        present: Bools = np.zeros(len(self.counts(counter)), dtype=np.bool_)
        if counter.kind == HARD:
            present[[index for index, _ in self._known_counts(counter)]] = True
        return present

    def _known_counts(self, counter: TermCounter) -> list[tuple[int, int]]:
        """Return (code, count) for the topology values of a counter that the table has."""
        assert isinstance(counter.before, Mapping)
        values = self._table.columns.label(counter.key).values
        found = []
        for value, count in counter.before.items():
            index = (
                self.without(counter.key)
                if not value and counter.kind == SOFT
                else values.find(value)
            )
            if index >= 0:
                found.append((index, count))
        return found


class _Masks:
    """Sets of rows, each stored once; the first one has all rows."""

    def __init__(self, rows: int) -> None:
        self.all: list[Bools] = [np.ones(rows, dtype=np.bool_)]
        self._index: dict[bytes, int] = {self.all[0].tobytes(): 0}

    def of(self, mask: Bools | None) -> int:
        if mask is None:
            return 0
        index = self._index.setdefault(mask.tobytes(), len(self.all))
        if index == len(self.all):
            self.all.append(mask)
        return index


def relate(
    classes: Sequence[Evaluation], table: NodeTable, static_index: Sequence[int], groups: int
) -> Relations | None:
    """Return the relations of classes, after PreFilter and PreScore; None for too many counts.

    static_index: the index of each class's static scores. groups: the number of normalization
    groups.
    """
    pods, profile_of = _distinct_profiles(classes)
    relations, relation_at = _distinct_relations(classes, pods)
    own = [relations[index] for index in relation_at]
    of_class = [
        index if relation.counters else -1 for index, relation in zip(relation_at, own, strict=True)
    ]
    rows = len(table)
    axes, masks = _Axes(table), _Masks(rows)
    counters = [counter for relation in relations for counter in relation.counters]
    if sum(max(rows, axes.size(counter.key)) for counter in counters) > MAX_COUNTS:
        return None
    additions, additions_from = _additions(relations, pods)
    counts = [axes.counts(counter) for counter in counters]
    weights = [(relation.spread_weight, relation.affinity_weight) for relation in own]
    starts = np.cumsum([0, *(len(relation.counters) for relation in relations)])
    numbers = {
        "kind": [counter.kind for counter in counters],
        "axis": [axes.of(counter.key) for counter in counters],
        "at": np.cumsum([0, *map(len, counts)])[:-1],
        "size": [len(each) for each in counts],
        "mask": [masks.of(counter.counted) for counter in counters],
        "skew": [counter.skew for counter in counters],
        "min_domains": [counter.min_domains for counter in counters],
        "begin": starts,
        "keys": [masks.of(relation.scored) for relation in relations],
        "of_class": of_class,
        "pod_profile": profile_of,
        "static_index": static_index,
        "additions_from": additions_from,
    }
    flat = _joined(counts)
    # Without counters, arrays by row are not used.
    rows = rows if counters else 0
    return Relations(
        axes=np.array(axes.rows, dtype=np.int32),
        marks=np.array(axes.marks, dtype=np.int32),
        marked=np.array([np.count_nonzero(np.bincount(e)) for e in axes.marks], dtype=np.int64),
        masks=np.array(masks.all, dtype=np.bool_),
        **{name: np.array(counter, dtype=np.int64) for name, counter in numbers.items()},
        counts=flat,
        present=_joined([axes.present(counter) for counter in counters]).astype(np.bool_),
        stamps=np.zeros(len(flat), np.int64),
        lowest=np.zeros((len(counters), 3), np.int64),
        matches_itself=np.array([relation.matches_itself for relation in relations], np.bool_),
        weights=np.array(weights, np.int64).reshape(-1, 2),
        seen=np.zeros((len(classes), groups), np.bool_),
        is_seen=np.zeros(len(classes), np.bool_),
        additions=additions,
        fits=np.zeros(rows, np.bool_),
        group_feasible=np.zeros(groups, np.int64),
        sums=np.zeros(rows),
        spread=np.zeros(rows, np.int64),
        affinity=np.zeros(rows, np.int64),
        total=np.zeros(rows, np.int32),
        logs=_logs(rows + 3),
        clock=np.zeros(1, np.int64),
        cells=no_cells(0),
    )


def _distinct_profiles(classes: Sequence[Evaluation]) -> tuple[list[PodClass], list[int]]:
    """Return a pod of each pod profile, and the index of each class's one."""
    found: dict[Hashable, tuple[int, PodClass]] = {}
    profile_of = [
        found.setdefault(pod_profile_key(each.pod), (len(found), each.pod))[0] for each in classes
    ]
    return [pod for _, pod in found.values()], profile_of


def _distinct_relations(
    classes: Sequence[Evaluation], pods: Sequence[PodClass]
) -> tuple[list[RelationOf], list[int]]:
    """Return the relations that differ, and the index of each class's one."""
    index_of: dict[Hashable, int] = {}
    relations: list[RelationOf] = []
    relation_at = []
    for each in classes:
        index = index_of.setdefault(relation_key(each), len(relations))
        if index == len(relations):
            relations.append(relation_of(each, pods))
        relation_at.append(index)
    return relations, relation_at


@cache
def _logs(count: int) -> NDArray[np.float64]:
    """Return ln(n + 2), computed as the plugin does."""
    return np.array([math.log(n + 2) for n in range(count)])


def _joined(arrays: Sequence[I64] | Sequence[Bools]) -> I64:
    return np.concatenate(arrays).astype(np.int64) if arrays else np.zeros(0, np.int64)


def _additions(relations: Sequence[RelationOf], pods: Sequence[PodClass]) -> tuple[I64, list[int]]:
    """Return what a pod of each profile adds to all counters, and where its entries begin."""
    found: list[tuple[int, int]] = []
    starts = [0]
    for pod in pods:
        # The index of the relation's first counter: `adds` counts from 0 within the relation.
        first = 0
        for relation in relations:
            for adds in relation.adds:
                found += [(first + counter, amount) for counter, amount in adds(pod)]
            first += len(relation.counters)
        starts.append(len(found))
    return np.array(found, dtype=np.int64).reshape(-1, 2), starts
