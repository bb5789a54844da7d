"""Policies of partitioned schedulers over time: which partition to try first, at what staleness.

After Feng et al., "Partitioned Synchronization" (USENIX ATC 2021), as module `parsync`. A sync gap
is the time in which each scheduler's view of every slot is refreshed once; it has STEPS steps. A
scheduler tries first the partition that was refreshed last (latency-first), or the one with the
best mean quality of idle slots in its view (quality-first); adaptive does as latency-first while
tasks wait longer than a bound, and else as quality-first. The quality of a slot is the rank of its
score, from 0 to 1. The baseline, state-sync, picks from all slots as they were when the gap began.
Load changes by phases: at a load of 0.8, tasks arrive so often that, with `task_mean_s` each, they
keep 80% of the slots busy.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from roadstead.lab.arrays import Ints
from roadstead.lab.parsync import STEPS, Slots, assign_slots, freshest, refreshed

NO_IDLE_SLOTS: Final = -1.0
"""The quality of a partition without idle slots."""

Policy: TypeAlias = Literal["latency-first", "quality-first", "adaptive", "state-sync"]
POLICIES: Final = ("latency-first", "quality-first", "adaptive", "state-sync")
PHASES: Final = (0.5, 0.8, 0.95, 0.8, 0.5)
"""Loads of the paper's comparison."""


@dataclass(frozen=True, slots=True)
class PolicyModel:
    """A run over phases of load; by default the paper's comparison.

    sync_gap_s: see above. capacity_per_s: maximum attempts of one scheduler. variance: of slots'
    scores.
    variance_between_partitions: 0 if all partitions have the same mix of scores, 1 if all slots of
    a partition have the same score. adaptive_wait_s: how long tasks may wait before `adaptive`
    prefers fresh partitions. Task durations are uniform between 0.2 and 1.8 of the mean.
    """

    policy: Policy = "adaptive"
    schedulers: int = 20
    partitions: int = 20
    slots: int = 200_000
    sync_gap_s: float = 0.5
    task_mean_s: float = 5.0
    capacity_per_s: float = 2_500.0
    variance: float = 1.0
    variance_between_partitions: float = 0.5
    adaptive_wait_s: float = 0.1
    phase_s: float = 20.0
    phases: tuple[float, ...] = PHASES

    @property
    def step_s(self) -> float:
        return self.sync_gap_s / STEPS

    @property
    def steps_per_phase(self) -> int:
        """The number of steps of a phase; 0 for a phase that is too short to be simulated."""
        return round(self.phase_s / self.step_s)


@dataclass(slots=True)
class _Phase:
    """Sums over one phase. used: the busy slots of each step, added up.

    waited_s, quality: of placed tasks and of their slots. left: tasks that wait at the end.
    """

    placed: int = 0
    conflicts: int = 0
    waited_s: float = 0.0
    quality: float = 0.0
    used: int = 0
    left: int = 0

    def metrics(self, number: int, phase_s: float) -> dict[str, float]:
        placed = max(self.placed, 1)
        return {
            f"phase{number}_wait_s": self.waited_s / placed,
            f"phase{number}_conflict_fraction": self.conflicts / placed,
            f"phase{number}_quality": self.quality / placed,
            f"phase{number}_tasks_per_s": self.placed / phase_s,
            f"phase{number}_backlog": float(self.left),
        }


class PolicyRun:
    """One run; `run()` simulates all phases.

    quality: float64[slots], rank of each slot's score from 0 to 1. seen_busy: bool[schedulers,
    slots], the schedulers' views: which slots are busy. mean_quality: float64[schedulers,
    partitions], of the idle slots at the last refresh. queues: for each scheduler, in order,
    [step of arrival, number of waiting tasks that arrived in it].
    waiting: int64[schedulers], tasks in the queues. oldest_wait_s: float64[schedulers], how long
    the oldest task has waited. ends: step → slots whose tasks end in it.
    """

    def __init__(self, model: PolicyModel, seed: int) -> None:
        self.model = model
        self.random = np.random.default_rng(seed)
        self.slots = Slots(
            model.slots,
            model.partitions,
            model.variance,
            self.random,
            model.variance_between_partitions,
        )
        ranks = np.argsort(np.argsort(self.slots.score))
        self.quality = ranks / max(model.slots - 1, 1)
        self.seen_busy = np.zeros((model.schedulers, model.slots), dtype=np.bool_)
        # The mean of all ranks, until a partition is refreshed for the first time.
        self.mean_quality = np.full((model.schedulers, model.partitions), 0.5)
        self.queues: list[deque[list[int]]] = [deque() for _ in range(model.schedulers)]
        self.waiting = np.zeros(model.schedulers, dtype=np.int64)
        self.oldest_wait_s = np.zeros(model.schedulers)
        self.ends: dict[int, list[Ints]] = {}
        self._busy = 0

    def run(self) -> dict[str, float]:
        """Return metrics by phase: wait, conflicts per placed task, quality of slots (0 to 1)."""
        model = self.model
        metrics: dict[str, float] = {}
        total = _Phase()
        steps_per_phase = model.steps_per_phase
        for number, load in enumerate(model.phases, 1):
            phase = _Phase()
            for step in range((number - 1) * steps_per_phase, number * steps_per_phase):
                self._step(step, load, phase)
            phase.left = int(self.waiting.sum())
            metrics |= phase.metrics(number, model.phase_s)
            for name in ("placed", "conflicts", "waited_s", "quality", "used"):
                setattr(total, name, getattr(total, name) + getattr(phase, name))
        placed = max(total.placed, 1)
        return metrics | {
            "wait_s": total.waited_s / placed,
            "conflict_fraction": total.conflicts / placed,
            "quality": total.quality / placed,
            "tasks_per_s": total.placed / (model.phase_s * len(model.phases)),
            "utilization": total.used / (model.slots * steps_per_phase * len(model.phases)),
        }

    def _step(self, step: int, load: float, phase: _Phase) -> None:
        for ended in self.ends.pop(step, ()):
            self.slots.busy[ended] = False
            self._busy -= len(ended)
        self._add_arrivals(step, load)
        attempts = round(self.model.capacity_per_s * self.model.step_s)
        picks = [
            self._pick(scheduler, step, min(int(self.waiting[scheduler]), attempts))
            for scheduler in range(self.model.schedulers)
        ]
        assigned = assign_slots(self.slots, self.seen_busy, picks, self.random)
        self._busy += len(assigned.slots)
        self._start(step, assigned.slots, phase)
        phase.used += self._busy
        phase.conflicts += int(assigned.lost.sum())
        for scheduler, count in enumerate(assigned.won.tolist()):
            self._record_placed(scheduler, step, count, phase)

    def _add_arrivals(self, step: int, load: float) -> None:
        model = self.model
        per_s = load * model.slots / model.task_mean_s / model.schedulers
        arrived = self.random.poisson(per_s * model.step_s, model.schedulers)
        self.waiting += arrived
        for queue, count in zip(self.queues, arrived.tolist(), strict=True):
            if count:
                queue.append([step, count])

    def _pick(self, scheduler: int, step: int, count: int) -> Ints:
        """Refresh the due partitions of a scheduler's view, and pick slots by its policy."""
        model, view = self.model, self.seen_busy[scheduler]
        if model.policy == "state-sync":
            if step % STEPS == 0:
                view[:] = self.slots.busy
            return self.slots.pick(view, slice(0, model.slots), count, self.random)
        for partition in refreshed(scheduler, step, model.schedulers, model.partitions):
            part = self.slots.part(partition)
            view[part] = self.slots.busy[part]
            idle = ~view[part]
            self.mean_quality[scheduler, partition] = (
                self.quality[part][idle].mean() if idle.any() else NO_IDLE_SLOTS
            )
        newest = freshest(scheduler, step, model.schedulers, model.partitions)
        found: list[Ints] = []
        for partition in self._preferred(scheduler, newest):
            found.append(self.slots.pick(view, self.slots.part(partition), count, self.random))
            count -= len(found[-1])
            if not count:
                break
        return np.concatenate(found)

    def _preferred(self, scheduler: int, newest: int) -> list[int]:
        """Partitions in the order in which a scheduler tries them. newest: refreshed last."""
        policy, partitions = self.model.policy, self.model.partitions
        is_late = self.oldest_wait_s[scheduler] > self.model.adaptive_wait_s
        if policy == "quality-first" or (policy == "adaptive" and not is_late):
            best: list[int] = np.argsort(-self.mean_quality[scheduler], kind="stable").tolist()
            return best
        return [(newest - back) % partitions for back in range(partitions)]

    def _start(self, step: int, slots: Ints, phase: _Phase) -> None:
        """Start a task on each slot: draw its duration, and record the step in which it ends."""
        if not slots.size:
            return
        phase.quality += float(self.quality[slots].sum())
        mean = self.model.task_mean_s
        durations = self.random.uniform(0.2 * mean, 1.8 * mean, len(slots))
        ends = step + np.maximum(1, np.ceil(durations / self.model.step_s)).astype(np.int64)
        order = np.argsort(ends, kind="stable")
        end_steps, starts = np.unique(ends[order], return_index=True)
        for end_step, group in zip(
            end_steps.tolist(), np.split(slots[order], starts[1:]), strict=True
        ):
            self.ends.setdefault(end_step, []).append(group)

    def _record_placed(self, scheduler: int, step: int, count: int, phase: _Phase) -> None:
        """Record `count` placed tasks of a scheduler: its oldest ones."""
        phase.placed += count
        self.waiting[scheduler] -= count
        queue, waited_s, left = self.queues[scheduler], 0.0, count
        while left:
            arrived, waiting = queue[0]
            placed = min(left, waiting)
            waited_s += placed * (step - arrived) * self.model.step_s
            left -= placed
            if placed == waiting:
                queue.popleft()
            else:
                queue[0][1] -= placed
        phase.waited_s += waited_s
        oldest_s = (step - queue[0][0]) * self.model.step_s if queue else 0.0
        self.oldest_wait_s[scheduler] = oldest_s


def simulate(model: PolicyModel, seed: int) -> dict[str, float]:
    """Run a model once, and return the metrics; the same seed gives the same metrics."""
    return PolicyRun(model, seed).run()
