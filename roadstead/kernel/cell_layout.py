"""Which rows are all the same to a relation, as arrays: see `Cells`.

A fleet has a few zones and tens of thousands of nodes: what spread constraints and affinity say is
found once per zone. Where a key is nearly a node's own (a hostname), rows are looked at instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadstead.kernel.relation_arrays import HOST, Cells, Relations
from roadstead.nodes.columns import I32, I64
from roadstead.nodes.table import Rows

MAX_CELLS = 4096
"""With more cells, or fewer than two rows in each, rows are looked at."""

SPARSE = 4
"""So many times as many codes as rows may be gone through to number those that occur."""

_Layout = tuple[int, int]
"""Relation, and which of the stills says how rows are grouped."""


def with_cells(relations: Relations, group: I32, row_at: Rows) -> Relations:
    """The relations of classes with their cells. group: int32[fixed, row]; row_at: int64[place]."""
    layouts: dict[_Layout, int] = {}
    found: list[I32] = []
    of_class: list[int] = []
    for related, fixed in zip(relations.of_class.tolist(), relations.fixed.tolist(), strict=True):
        key = related, fixed
        if key not in layouts:
            cells = None if related < 0 else _cells(relations, related, group[fixed])
            layouts[key] = -1 if cells is None else len(found)
            found += [] if cells is None else [cells]
        of_class.append(layouts[key])
    laid_out = [key for key, layout in layouts.items() if layout >= 0]
    return relations._replace(cells=_arrays(relations, laid_out, found, of_class, group, row_at))


def _cells(relations: Relations, related: int, group: I32) -> I32 | None:
    """The cell of each row: int32[row]; None where most are of their own."""
    lines = slice(relations.begin[related], relations.begin[related + 1])
    if (relations.kind[lines] == HOST).any():
        return None
    most = min(MAX_CELLS, len(group) // 2)
    codes = _numbered(2 * group.astype(np.int64) + relations.masks[relations.keys[related]], most)
    for axis in np.unique(relations.axis[lines]).tolist():
        if codes is None:
            return None
        domains = relations.axes[axis].astype(np.int64) + 1
        codes = _numbered(codes * (int(domains.max(initial=0)) + 1) + domains, most)
    return None if codes is None else codes.astype(np.int32)


def _numbered(codes: I64, most: int) -> I64 | None:
    """Codes as numbers from 0 on: int64[row]; None where there are too many."""
    if int(codes.max(initial=0)) < SPARSE * len(codes):
        occurs = np.bincount(codes) > 0
        numbers = np.cumsum(occurs) - 1
        return numbers[codes] if numbers[-1] < most else None
    values, numbered = np.unique(codes, return_inverse=True)
    return numbered.reshape(-1).astype(np.int64) if len(values) <= most else None


def _arrays(
    relations: Relations,
    layouts: Sequence[_Layout],
    cells: Sequence[I32],
    of_class: Sequence[int],
    group: I32,
    row_at: Rows,
) -> Cells:
    size = [int(each.max()) + 1 for each in cells]
    many, rows, classes = max(size, default=0), len(row_at), len(of_class)
    room, per_class = (len(cells), many), (classes, many)
    made = Cells(
        of_class=np.array(of_class, np.int64),
        size=np.array(size, np.int64),
        of_place=np.empty((len(cells), rows), np.int32),
        places=np.empty((len(cells), rows), np.int32),
        begin=np.zeros((len(cells), many + 1), np.int64),
        axes=np.zeros((len(cells), len(relations.axes), many), np.int32),
        marks=np.zeros((len(cells), len(relations.axes), many), np.int32),
        scored=np.zeros(room, np.bool_),
        group=np.zeros(room, np.int32),
        top=np.empty(per_class, np.int32),
        tied=np.empty(per_class, np.int32),
        alive=np.empty(per_class, np.int32),
        is_built=np.zeros(classes, np.bool_),
    )
    for layout, ((related, fixed), of_row) in enumerate(zip(layouts, cells, strict=True)):
        here = slice(size[layout])
        made.of_place[layout] = of_row[row_at]
        made.places[layout] = np.argsort(made.of_place[layout].astype(np.int16), kind="stable")
        made.begin[layout, 1 : size[layout] + 1] = np.cumsum(np.bincount(of_row))
        # Of rows that are all the same, the last one that is written stands for all.
        one = np.empty(size[layout], np.intp)
        one[of_row] = np.arange(rows)
        made.axes[layout, :, here] = relations.axes[:, one]
        made.marks[layout, :, here] = relations.marks[:, one]
        made.scored[layout, here] = relations.masks[relations.keys[related], one]
        made.group[layout, here] = group[fixed, one]
    return made
