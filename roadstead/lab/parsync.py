"""ParSync: schedulers on stale views of slots that are refreshed partition by partition.

After Feng et al., "Scaling Large Production Clusters with Partitioned Synchronization" (USENIX ATC
2021). A slot is the room for one task. S slots are divided into P partitions. Each scheduler has a
view (a copy of the state) of all slots. In each sync gap G the view is refreshed, one partition
after another and at each time a different one for each scheduler (ParSync), or all at the same time
(StateSync, `partitions` = 1). A scheduler picks slots that are idle in its view, with a preference
for high scores. A slot that another scheduler has occupied is a conflict, and the task is tried
again.

Scores are normal with variance V; a slot is picked with probability proportional to e^score, so
V = 0 means uniformly. For uniform picks, once per gap, the expected conflicts of a slot that each
of N schedulers picks with probability p are N·p − 1 + (1 − p)^N: all picks but the first, if any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from roadstead.lab.arrays import Flags, Ints
from roadstead.lab.omega_cell import rank_among_equals

Look: TypeAlias = Literal["fresh", "all"]

SPARSE: Final = 0.02
"""Below this share of idle slots, slots are chosen from a list: most draws would hit busy ones."""

DRAW_ROUNDS: Final = 4
"""Rounds of repeated draws; slots that are still missing are chosen from a list."""

EXTRA_TOLERANCE: Final = 1.0 / 256
"""Tolerance of the number of extra slots, as a fraction of the tasks of a gap."""

STEPS: Final = 20
"""Steps into which a gap is divided, for any number of partitions. In each, all schedulers pick at
the same time; losers of a slot may pick again in the next one."""


class Slots:
    """Slots with scores, idle or busy, in contiguous partitions.

    A part is a slice of the slots: a partition, or all. score: float64[slots]; busy: bool[slots];
    bounds: int64[partitions + 1].
    """

    def __init__(
        self,
        count: int,
        partitions: int,
        variance: float,
        random: np.random.Generator,
        between_partitions: float = 0.0,
    ) -> None:
        """Draw the scores.

        between_partitions: share of the variance that is between partitions; with 1, all slots of a
        partition have the same score.
        """
        self.busy = np.zeros(count, dtype=np.bool_)
        self.bounds = np.linspace(0, count, partitions + 1).astype(np.int64)
        own = random.normal(0.0, np.sqrt(variance * (1.0 - between_partitions)), count)
        shared = random.normal(0.0, np.sqrt(variance * between_partitions), partitions)
        self.score = own + np.repeat(shared, np.diff(self.bounds))
        self._cumulative_weights = np.concatenate(([0.0], np.cumsum(np.exp(self.score))))

    @property
    def partitions(self) -> int:
        return len(self.bounds) - 1

    def part(self, partition: int) -> slice:
        """The slots of a partition."""
        return slice(int(self.bounds[partition]), int(self.bounds[partition + 1]))

    def pick(self, seen_busy: Flags, part: slice, count: int, random: np.random.Generator) -> Ints:
        """Up to `count` slots of a part that look idle, without repetition, in order of picking.

        Drawn by weight, and drawn again if busy. This equals drawing without replacement, and is
        cheap unless nearly all slots are busy, or more than half of the idle ones are wanted:
        these are chosen from a list.
        """
        idle = part.stop - part.start - int(np.count_nonzero(seen_busy[part])) if count else 0
        count = min(count, idle)
        found = np.empty(0, dtype=np.int64)
        if count == 0:
            return found
        if 2 * count <= idle and idle >= SPARSE * (part.stop - part.start):
            found = self._draw_idle(seen_busy, part, count, random)
        if len(found) < count:
            unavailable = seen_busy.copy()
            unavailable[found] = True
            more = self._pick_from_list(unavailable, part, count - len(found), random)
            found = np.concatenate((found, more))
        return found

    def _draw_idle(
        self, seen_busy: Flags, part: slice, count: int, random: np.random.Generator
    ) -> Ints:
        """Draw from all slots of a part, and drop busy and repeated ones; may find too few."""
        # A uniform point between the ends of the cumulative weights is in the interval of a slot
        # with a probability proportional to the slot's weight.
        cumulative = self._cumulative_weights[part.start : part.stop + 1]
        low, high = cumulative[0], cumulative[-1]
        last = part.stop - part.start - 1
        found = np.empty(0, dtype=np.int64)
        for _ in range(DRAW_ROUNDS):
            points = low + random.random(2 * count + 8) * (high - low)
            # A point may equal `high` because of rounding: all do if the weights are tiny beside
            # those of the partitions before. It belongs to the last slot.
            indices = np.searchsorted(cumulative, points, side="right") - 1
            drawn = part.start + np.minimum(indices, last)
            drawn = np.concatenate((found, drawn[~seen_busy[drawn]]))
            # Of a slot that is drawn repeatedly, only the first draw counts: that with rank 0.
            found = drawn[rank_among_equals(drawn) == 0]
            if len(found) >= count:
                break
        return found[:count]

    def _pick_from_list(
        self, seen_busy: Flags, part: slice, count: int, random: np.random.Generator
    ) -> Ints:
        """Pick from a list of the idle slots, by weight without replacement.

        Each slot gets an exponential time whose rate is its weight. The slots with the smallest
        times, in this order, are distributed as such a sample.
        """
        idle = part.start + np.flatnonzero(~seen_busy[part])
        times = random.exponential(size=len(idle)) / np.exp(self.score[idle])
        first = np.argpartition(times, count - 1)[:count]
        chosen: Ints = idle[first[np.argsort(times[first])]]
        return chosen


@dataclass(frozen=True, slots=True)
class GapModel:
    """One sync gap: its tasks are divided evenly among schedulers, to be placed within the gap.

    tasks_per_s: of all schedulers. capacity_per_s: maximum attempts of one scheduler. partitions: 1
    for StateSync. look: "fresh" picks from the most recently refreshed partition, then from older
    ones; "all" picks from all partitions alike.
    """

    schedulers: int = 20
    partitions: int = 20
    sync_gap_s: float = 0.5
    tasks_per_s: float = 40_000.0
    capacity_per_s: float = 4_000.0
    variance: float = 0.0
    look: Look = "fresh"

    @property
    def tasks(self) -> int:
        """The number of tasks of a gap: at least one."""
        return max(1, round(self.tasks_per_s * self.sync_gap_s))

    @property
    def attempts(self) -> int:
        """The number of picks that all schedulers can make in a gap."""
        return round(self.capacity_per_s * self.sync_gap_s * self.schedulers)


def fill_gap(model: GapModel, slots: int, seed: int) -> tuple[int, int]:
    """(placed tasks, conflicts) of one gap with `slots` idle slots.

    Views are current when the gap begins. In each step the next partitions of a scheduler's view
    are refreshed.
    """
    random = np.random.default_rng([seed, slots])
    pool = Slots(slots, model.partitions, model.variance, random)
    seen_busy = np.zeros((model.schedulers, slots), dtype=np.bool_)
    waiting = _shares(model.tasks, model.schedulers, 0, 1)
    placed = conflicts = 0
    for step in range(STEPS):
        attempts = _shares(model.attempts, model.schedulers, step, STEPS)
        picks = []
        for scheduler in range(model.schedulers):
            view = seen_busy[scheduler]
            for partition in refreshed(scheduler, step, model.schedulers, model.partitions):
                part = pool.part(partition)
                view[part] = pool.busy[part]
            partition = freshest(scheduler, step, model.schedulers, model.partitions)
            count = int(min(waiting[scheduler], attempts[scheduler]))
            if model.look == "fresh":
                picks.append(_pick_freshest_first(pool, view, partition, count, random))
            else:
                picks.append(pool.pick(view, slice(0, slots), count, random))
        # All schedulers pick before any pick is assigned: they run at the same time and do not see
        # each other's picks of this step.
        assigned = assign_slots(pool, seen_busy, picks, random)
        waiting -= assigned.won
        placed += len(assigned.slots)
        conflicts += int(assigned.lost.sum())
    return placed, conflicts


def refreshed(scheduler: int, step: int, schedulers: int, partitions: int) -> list[int]:
    """The partitions that are refreshed for a scheduler in a step: none, one or several."""
    # The number of refreshes before the step and at its end, rounded up.
    first, end = (-(-each * partitions // STEPS) for each in (step, step + 1))
    return [
        partition_of_refresh(scheduler, number, schedulers, partitions)
        for number in range(first, end)
    ]


def freshest(scheduler: int, step: int, schedulers: int, partitions: int) -> int:
    """The partition that was last refreshed for a scheduler."""
    end = -(-(step + 1) * partitions // STEPS)
    return partition_of_refresh(scheduler, end - 1, schedulers, partitions)


def partition_of_refresh(scheduler: int, number: int, schedulers: int, partitions: int) -> int:
    """The partition of a scheduler's n-th refresh; the schedulers begin at different partitions."""
    return (number + scheduler * partitions // schedulers) % partitions


def _shares(total: int, schedulers: int, step: int, steps: int) -> Ints:
    """Each scheduler's part of `total` in a step, divided evenly over steps and schedulers."""
    low, high = total * step // steps, total * (step + 1) // steps
    bounds = low + np.arange(schedulers + 1) * (high - low) // schedulers
    return np.diff(bounds)


def _pick_freshest_first(
    pool: Slots, view: Flags, newest: int, count: int, random: np.random.Generator
) -> Ints:
    """Pick slots of the newest partition, and the missing ones from those refreshed before it."""
    found = [pool.pick(view, pool.part(newest), count, random)]
    missing = count - len(found[0])
    for back in range(1, pool.partitions):
        if not missing:
            break
        older = pool.part((newest - back) % pool.partitions)
        found.append(pool.pick(view, older, missing, random))
        missing -= len(found[-1])
    return np.concatenate(found)


@dataclass(frozen=True, slots=True, eq=False)
class AssignedSlots:
    """Result of `assign_slots`. won, lost: int64[schedulers], picks; slots: the assigned slots."""

    won: Ints
    lost: Ints
    slots: Ints


def assign_slots(
    pool: Slots, seen_busy: NDArray[np.bool_], picks: list[Ints], random: np.random.Generator
) -> AssignedSlots:
    """Resolve picks: assign each slot to a random one of the schedulers that picked it.

    Winners and losers mark the slot as busy in their views. seen_busy: bool[schedulers, slots], the
    views.
    """
    scheduler = np.repeat(np.arange(len(picks)), [len(each) for each in picks])
    slots = np.concatenate(picks)
    seen_busy[scheduler, slots] = True
    # In a random order of the picks, the first pick of a slot that is not busy wins it.
    order = random.permutation(len(slots))
    is_free = ~pool.busy[slots[order]] & (rank_among_equals(slots[order]) == 0)
    winners = order[is_free]
    pool.busy[slots[winners]] = True
    won = np.bincount(scheduler[winners], minlength=len(picks))
    return AssignedSlots(won, np.bincount(scheduler, minlength=len(picks)) - won, slots[winners])


def extra_slots(model: GapModel, seed: int) -> dict[str, float]:
    """Search the number of idle slots that a gap needs to place all its tasks, by bisection.

    Returns extra_slots (needed slots minus tasks), extra_share (the same per task),
    conflict_fraction (conflicts per placed task, with the needed slots), feasible (0 if ten slots
    for each task are too few).
    """
    tasks = model.tasks
    low, high = tasks, 10 * tasks
    placed, conflicts = fill_gap(model, low, seed)
    if placed == tasks:
        return _extra(tasks, low, conflicts, feasible=True)
    placed, conflicts = fill_gap(model, high, seed)
    if placed < tasks:
        return _extra(tasks, high, conflicts, feasible=False)
    while high - low > max(1.0, EXTRA_TOLERANCE * tasks):
        middle = (low + high) // 2
        if fill_gap(model, middle, seed)[0] >= tasks:
            high = middle
        else:
            low = middle
    return _extra(tasks, high, fill_gap(model, high, seed)[1], feasible=True)


def _extra(tasks: int, slots: int, conflicts: int, *, feasible: bool) -> dict[str, float]:
    return {
        "extra_slots": float(slots - tasks),
        "extra_share": (slots - tasks) / tasks,
        "conflict_fraction": conflicts / tasks,
        "feasible": float(feasible),
    }
