"""Placement: on which machines a scheduler of the model puts the tasks of a job, given its view.

first-fit: Omega's randomized first fit (`Scheduler.scheduleJob` of the published simulator): draw
a machine, use it if one more task fits, else never draw it again. During a job machines only fill
up, so this equals drawing uniformly from all machines and skipping full ones.

spread, pack: by score, as kube-scheduler's NodeResourcesFit with LeastAllocated and MostAllocated
(integers, 0 to 100, mean over resources), ties at random; each task is placed after the previous
one is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from roadstead.lab.arrays import Ints
from roadstead.lab.omega_cell import has_room, rank_among_equals, room

Place: TypeAlias = Callable[[Ints, Ints, Ints, int, np.random.Generator], Ints]
"""(free[machines, resources], capacity[resources], request[resources], tasks, random) → machines.

One machine for each task for which there is room, in order.
"""

Score: TypeAlias = Callable[[Ints, Ints], Ints]
"""(free_after[rows, resources], capacity[rows, resources]) → int64[rows]."""

MAX_SCORE: Final = 100
EXTRA_DRAWS: Final = 8
"""Draws beyond twice the tasks, to make up for full machines."""


def first_fit(
    free: Ints, capacity: Ints, request: Ints, count: int, random: np.random.Generator
) -> Ints:
    """Randomized first fit; returns fewer than `count` machines only if there is no more room."""
    drawn = random.integers(len(free), size=2 * count + EXTRA_DRAWS)
    # Of the draws of one machine, as many count as there are tasks for which it has room.
    drawn_rows = drawn[rank_among_equals(drawn) < room(free[drawn], request)][:count]
    if len(drawn_rows) == count:
        return drawn_rows
    room_left = room(free, request)
    np.subtract.at(room_left, drawn_rows, 1)
    pool = np.flatnonzero(room_left > 0)
    while len(drawn_rows) < count and pool.size:
        drawn = random.choice(pool, size=2 * (count - len(drawn_rows)) + EXTRA_DRAWS)
        found = drawn[rank_among_equals(drawn) < room_left[drawn]][: count - len(drawn_rows)]
        drawn_rows = np.concatenate((drawn_rows, found))
        np.subtract.at(room_left, found, 1)
        pool = pool[room_left[pool] > 0]
    return drawn_rows


def spread(
    free: Ints, capacity: Ints, request: Ints, count: int, random: np.random.Generator
) -> Ints:
    """The least allocated machines, by LeastAllocated."""
    capacity = np.broadcast_to(capacity, free.shape)
    rows = np.flatnonzero(has_room(free, request))
    # Each task lowers its machine's score. So a machine that is not among the best for its first
    # task gets none, and the best of all steps are the greedy choices.
    rows = rows[_best(least_allocated(free[rows] - request, capacity[rows]), count, random)]
    machines = np.repeat(rows, np.minimum(room(free[rows], request), count))
    after = free[machines] - (rank_among_equals(machines)[:, None] + 1) * request
    return machines[_best(least_allocated(after, capacity[machines]), count, random)]


def _best(scores: Ints, count: int, random: np.random.Generator) -> Ints:
    """Indices of at most `count` highest scores, best first, ties at random."""
    keys = random.random(len(scores)) - scores
    if len(keys) <= count:
        return np.argsort(keys)
    chosen = np.argpartition(keys, count - 1)[:count]
    return chosen[np.argsort(keys[chosen])]


def pack(
    free: Ints, capacity: Ints, request: Ints, count: int, random: np.random.Generator
) -> Ints:
    """The most allocated machines, by MostAllocated; one is filled before the next is begun."""
    capacity = np.broadcast_to(capacity, free.shape)
    rows = np.flatnonzero(has_room(free, request))
    rows = rows[_best(most_allocated(free[rows] - request, capacity[rows]), count, random)]
    machines: Ints = np.repeat(rows, np.minimum(room(free[rows], request), count))[:count]
    return machines


def sampled(sample: int, score: Score) -> Place:
    """Return a placement that chooses the best of `sample` machines with room, drawn for each task.

    Borg's relaxed randomization (Verma et al., EuroSys 2015, section 3.4) and kube-scheduler's
    percentageOfNodesToScore: nodes are examined in any order until enough of them have room.
    """

    def place(
        free: Ints, capacity: Ints, request: Ints, count: int, random: np.random.Generator
    ) -> Ints:
        rows = np.flatnonzero(has_room(free, request))
        free, capacity = free[rows], np.broadcast_to(capacity, free.shape)[rows]
        room_left = room(free, request)
        scores = score(free - request, capacity)
        pool, chosen = np.arange(len(rows)), list[int]()
        while len(chosen) < count and pool.size:
            drawn = random.choice(pool.size, min(sample, pool.size), replace=False)
            at = drawn[scores[pool[drawn]].argmax()]
            row = int(pool[at])
            chosen.append(row)
            room_left[row] -= 1
            free[row] -= request
            # Only the chosen machine changed: one new score per task, not one per machine.
            if room_left[row]:
                one = slice(row, row + 1)
                scores[one] = score(free[one] - request, capacity[one])
            else:
                pool = np.delete(pool, at)
        return rows[chosen] if chosen else np.empty(0, dtype=np.int64)

    return place


PLACEMENTS: Final[Mapping[str, Place]] = MappingProxyType(
    {"first-fit": first_fit, "spread": spread, "pack": pack}
)


def least_allocated(free_after: Ints, capacity: Ints) -> Ints:
    """Score 0 to 100 of each row, for its free resources after the task is placed.

    capacity: [resources] or [rows, resources]. Follows kube-scheduler's
    noderesources/least_allocated.go.
    """
    return _mean_of_parts(np.maximum(free_after, 0), capacity)


def most_allocated(free_after: Ints, capacity: Ints) -> Ints:
    """Score 0 to 100 of each row; follows kube-scheduler's noderesources/most_allocated.go."""
    return _mean_of_parts(np.clip(capacity - free_after, 0, capacity), capacity)


def _mean_of_parts(amount: Ints, capacity: Ints) -> Ints:
    parts = amount * MAX_SCORE // capacity
    total: Ints = parts[:, 0].copy()
    for column in range(1, parts.shape[1]):
        total += parts[:, column]
    total //= parts.shape[1]
    return total
