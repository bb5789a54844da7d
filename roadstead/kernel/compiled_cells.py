"""The compiled part for rows that are all the same to what looks across nodes: see `Cells`."""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import BUCKETS, FEW, NOWHERE, Numbers, Totals
from roadstead.kernel.jit import bucket_at, inlined, rank_of
from roadstead.kernel.relation_arrays import Cells, Relations


@inlined
def build_cells(cells: Cells, totals: Totals, c: int) -> None:
    """Finds how many rows of each cell can take a class, and the highest of their totals."""
    layout, total = cells.of_class[c], totals.total[c]
    top, tied, alive = cells.top[c], cells.tied[c], cells.alive[c]
    for cell in range(cells.size[layout]):
        top[cell], tied[cell], alive[cell] = NOWHERE, 0, 0
    of_place = cells.of_place[layout]
    for place in range(total.shape[0]):
        each = total[place]
        if each != NOWHERE:
            cell = of_place[place]
            alive[cell] += 1
            highest = top[cell]
            tied[cell] = 1 if each > highest else tied[cell] + (each == highest)
            top[cell] = max(highest, each)
    cells.is_built[c] = True


@inlined
def change_cell(cells: Cells, c: int, place: int, old: int, new: int) -> None:
    """A row has another total for a class."""
    if new == old:
        return
    cell = cells.of_place[cells.of_class[c], place]
    cells.alive[c, cell] += (old == NOWHERE) - (new == NOWHERE)
    top = cells.top[c, cell]
    if new > top:
        cells.top[c, cell], cells.tied[c, cell] = new, 1
    elif new == top:
        cells.tied[c, cell] += 1
    elif old == top:
        # Whoever looks at the cell next finds the others again, where none is left.
        cells.tied[c, cell] -= 1


@inlined
def raise_cell(cells: Cells, totals: Totals, c: int, cell: int) -> None:
    """Finds the highest total of a cell again."""
    layout, total = cells.of_class[c], totals.total[c]
    places = cells.places[layout, cells.begin[layout, cell] : cells.begin[layout, cell + 1]]
    highest, tied = NOWHERE, 0
    for k in range(places.shape[0]):
        highest = max(highest, total[places[k]])
    for k in range(places.shape[0]):
        tied += total[places[k]] == highest
    cells.top[c, cell], cells.tied[c, cell] = highest, tied


@inlined
def choose_in_cells(
    numbers: Numbers,
    totals: Totals,
    rel: Relations,
    c: int,
    draw: np.uint64,
    use_draws: bool,
    highest: int,
    ties: int,
) -> int:
    """The row of the draw among those with the highest total in the cells that have it."""
    cells, total, top = rel.cells, totals.total[c], rel.cells.top[c]
    layout = cells.of_class[c]
    found, best = -1, np.uint64(0)
    if ties >= FEW:
        # One of so many lies in the first few buckets of the draw.
        for back in range(BUCKETS):
            bucket = bucket_at(np.uint64(BUCKETS - 1 - back), draw, use_draws)
            for place in range(numbers.begin[bucket], numbers.begin[bucket + 1]):
                cell = cells.of_place[layout, place]
                if rel.total[cell] == highest and total[place] == top[cell]:
                    rank = rank_of(numbers.order[place], draw, use_draws)
                    if found < 0 or rank > best:
                        found, best = place, rank
            if found >= 0:
                break
    else:
        for cell in range(cells.size[layout]):
            if rel.total[cell] != highest:
                continue
            for k in range(cells.begin[layout, cell], cells.begin[layout, cell + 1]):
                place = cells.places[layout, k]
                if total[place] == top[cell]:
                    rank = rank_of(numbers.order[place], draw, use_draws)
                    if found < 0 or rank > best:
                        found, best = int(place), rank
    return int(numbers.row_at[found])
