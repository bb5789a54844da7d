"""Layout of lines (counts by topology domain) and of the classes that share them, as arrays."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from roadstead.framework.evaluation import Evaluation
from roadstead.kernel.cell_layout import no_cells
from roadstead.kernel.lowering.lowerings import face_key, relation_key, relation_of
from roadstead.kernel.relation_arrays import HARD, SOFT, Line, RelationOf, Relations
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable

MAX_PLACES = 1 << 23
"""Maximum number of counts over all lines; with more, the reference decides."""


def with_classes(relations: Relations, model_of: I64) -> Relations:
    """Return relations by class from relations by model.

    model_of: int64[class]. Without models, no class has lines.
    """
    classes = len(model_of)
    if len(relations.of_class):
        of_class, face = relations.of_class[model_of], relations.face[model_of]
        fixed, weights = relations.fixed[model_of], relations.weights[model_of]
        effects_from = relations.effects_from
    else:
        face = fixed = np.zeros(classes, np.int64)
        of_class, weights = face - 1, np.zeros((classes, 2), np.int64)
        effects_from = np.zeros(2, np.int64)
    return relations._replace(
        of_class=of_class,
        face=face,
        fixed=fixed,
        effects_from=effects_from,
        weights=weights,
        seen=np.zeros((classes, relations.alive.shape[0]), np.bool_),
        is_seen=np.zeros(classes, np.bool_),
        cells=no_cells(classes),
    )


class _Axes:
    """Topology keys, and the code of each row's value."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._place: dict[str, int] = {}
        self.rows: list[I32] = [np.zeros(len(table), np.int32)]
        self.marks: list[I32] = [np.zeros(len(table), np.int32)]

    def of(self, key: str) -> int:
        place = self._place.get(key)
        if place is None:
            place = self._place[key] = len(self.rows)
            column = self._table.columns.label(key)
            codes = column.codes[: len(self._table)].astype(np.int32)
            self.rows.append(codes)
            self.marks.append(np.where(codes < 0, self.without(key), codes).astype(np.int32))
        return place

    def without(self, key: str) -> int:
        """Return the code for nodes without the key: that of the empty value."""
        values = self._table.columns.label(key).values
        empty = values.find("")
        return empty if empty >= 0 else len(values)

    def size(self, key: str) -> int:
        return len(self._table.columns.label(key).values) + 1

    def counts(self, line: Line) -> I64:
        """Return the current counts: int64[domain]."""
        if isinstance(line.before, np.ndarray):
            return line.before.astype(np.int64)
        counts: I64 = np.zeros(self.size(line.key), dtype=np.int64)
        for place, count in self._placed(line):
            counts[place] = count
        return counts

    def present(self, line: Line) -> Bools:
        """Whether a domain of a hard constraint exists, with or without pods: bool[domain]."""
        present: Bools = np.zeros(len(self.counts(line)), dtype=np.bool_)
        if line.kind == HARD:
            present[[place for place, _ in self._placed(line)]] = True
        return present

    def _placed(self, line: Line) -> list[tuple[int, int]]:
        assert isinstance(line.before, Mapping)
        values = self._table.columns.label(line.key).values
        found = []
        for value, count in line.before.items():
            place = (
                self.without(line.key) if not value and line.kind == SOFT else values.find(value)
            )
            if place >= 0:
                found.append((place, count))
        return found


class _Masks:
    """Sets of rows, each stored once; the first one has all rows."""

    def __init__(self, rows: int) -> None:
        self.all: list[Bools] = [np.ones(rows, dtype=np.bool_)]
        self._place: dict[bytes, int] = {self.all[0].tobytes(): 0}

    def of(self, mask: Bools | None) -> int:
        if mask is None:
            return 0
        place = self._place.setdefault(mask.tobytes(), len(self.all))
        if place == len(self.all):
            self.all.append(mask)
        return place


def relate(
    classes: Sequence[Evaluation], table: NodeTable, fixed: Sequence[int], groups: int
) -> Relations | None:
    """Return the relations of classes, after PreFilter and PreScore; None for too many counts."""
    faces: dict[Hashable, tuple[int, PodClass]] = {}
    face_of = [faces.setdefault(face_key(e.pod), (len(faces), e.pod))[0] for e in classes]
    pods = [pod for _, pod in faces.values()]
    kinds: dict[Hashable, int] = {}
    relations: list[RelationOf] = []
    of_class = []
    for each in classes:
        kind = kinds.setdefault(relation_key(each), len(relations))
        if kind == len(relations):
            relations.append(relation_of(each, pods))
        of_class.append(kind if relations[kind].lines else -1)
    rows = len(table)
    axes, masks = _Axes(table), _Masks(rows)
    lines = [line for relation in relations for line in relation.lines]
    if sum(max(rows, axes.size(line.key)) for line in lines) > MAX_PLACES:
        return None
    effects, effects_from = _effects(relations, pods)
    counts = [axes.counts(line) for line in lines]
    own = [relations[kinds[relation_key(e)]] for e in classes]
    weights = [(relation.spread_weight, relation.near_weight) for relation in own]
    starts = np.cumsum([0, *(len(relation.lines) for relation in relations)])
    numbers = {
        "kind": [line.kind for line in lines],
        "axis": [axes.of(line.key) for line in lines],
        "at": np.cumsum([0, *map(len, counts)])[:-1],
        "size": [len(each) for each in counts],
        "mask": [masks.of(line.counted) for line in lines],
        "skew": [line.skew for line in lines],
        "min_domains": [line.min_domains for line in lines],
        "begin": starts,
        "keys": [masks.of(relation.scored) for relation in relations],
        "of_class": of_class,
        "face": face_of,
        "fixed": fixed,
        "effects_from": effects_from,
    }
    flat = _joined(counts)
    # Without lines, arrays by row are not used.
    rows = rows if lines else 0
    return Relations(
        axes=np.array(axes.rows, dtype=np.int32),
        marks=np.array(axes.marks, dtype=np.int32),
        marked=np.array([np.count_nonzero(np.bincount(e)) for e in axes.marks], dtype=np.int64),
        masks=np.array(masks.all, dtype=np.bool_),
        **{name: np.array(line, dtype=np.int64) for name, line in numbers.items()},
        counts=flat,
        present=_joined([axes.present(line) for line in lines]).astype(np.bool_),
        stamps=np.zeros(len(flat), np.int64),
        lowest=np.zeros((len(lines), 3), np.int64),
        near_itself=np.array([relation.near_itself for relation in relations], np.bool_),
        weights=np.array(weights, np.int64).reshape(-1, 2),
        seen=np.zeros((len(classes), groups), np.bool_),
        is_seen=np.zeros(len(classes), np.bool_),
        effects=effects,
        fits=np.zeros(rows, np.bool_),
        alive=np.zeros(groups, np.int64),
        sums=np.zeros(rows),
        spread=np.zeros(rows, np.int64),
        near=np.zeros(rows, np.int64),
        total=np.zeros(rows, np.int32),
        logs=_logs(rows + 3),
        clock=np.zeros(1, np.int64),
        cells=no_cells(0),
    )


@cache
def _logs(count: int) -> NDArray[np.float64]:
    """Return ln(n + 2), computed as the plugin does."""
    return np.array([math.log(n + 2) for n in range(count)])


def _joined(arrays: Sequence[I64] | Sequence[Bools]) -> I64:
    return np.concatenate(arrays).astype(np.int64) if arrays else np.zeros(0, np.int64)


def _effects(relations: Sequence[RelationOf], pods: Sequence[PodClass]) -> tuple[I64, list[int]]:
    """Return what a pod of each face adds to all lines, and where each face's entries begin."""
    found: list[tuple[int, int]] = []
    starts = [0]
    for pod in pods:
        first = 0
        for relation in relations:
            for adds in relation.adds:
                found += [(first + line, amount) for line, amount in adds(pod)]
            first += len(relation.lines)
        starts.append(len(found))
    return np.array(found, dtype=np.int64).reshape(-1, 2), starts
