"""Omega's cell (a cluster): machines with their free resources, and the rule of commits on them.

Schedulers decide on a `CellCopy`, which may be stale; `Cell.commit` detects conflicts. The rule is
Omega's (Schwarzkopf et al., EuroSys 2013, sections 3.4 and 5.2; `CellState.commit` of
google/cluster-scheduler-simulator): a conflict is a machine without room (`fit`), or a machine that
changed since the view was read (`version`); a transaction with a conflict commits the rest
(`incremental`) or nothing (`all-or-nothing`). As in Omega, tasks that end change no version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from roadstead.lab.arrays import Flags, Ints

Detection: TypeAlias = Literal["fit", "version"]
Transaction: TypeAlias = Literal["incremental", "all-or-nothing"]

UNBOUNDED: Final = 1 << 40
"""Room for tasks that request nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class CellCopy:
    """A copy of the state at `read_at_s`. free: int64[machines, resources]; version: [machines]."""

    free: Ints
    version: Ints
    read_at_s: float


class Cell:
    """The state of all machines.

    capacity: int64[machines, resources], given also as int64[resources] for equal machines. free:
    int64[machines, resources]; version: int64[machines].
    """

    def __init__(self, machines: int, capacity: Ints) -> None:
        self.capacity = np.broadcast_to(capacity, (machines, capacity.shape[-1]))
        self.free = self.capacity.copy()
        self.version = np.zeros(machines, dtype=np.int64)
        self._total = self.capacity.sum(axis=0)
        self._used = np.zeros_like(self._total)

    def used_fraction(self) -> float:
        """The used fraction of the cell's CPU."""
        return int(self._used[0]) / int(self._total[0])

    def view(self, now_s: float) -> CellCopy:
        """Return a copy of the current state."""
        return CellCopy(self.free.copy(), self.version.copy(), now_s)

    def commit(
        self,
        tasks: Ints,
        request: Ints,
        view: CellCopy,
        detection: Detection,
        transaction: Transaction,
    ) -> Flags:
        """Commit one `request` on each machine of `tasks`, in order; return which are committed."""
        accepted = self._accepted(tasks, request, view, detection)
        if transaction == "all-or-nothing" and not accepted.all():
            return np.zeros(len(tasks), dtype=np.bool_)
        self.claim(tasks[accepted], request)
        return accepted

    def _accepted(self, tasks: Ints, request: Ints, view: CellCopy, detection: Detection) -> Flags:
        if detection == "version":
            unchanged: Flags = self.version[tasks] == view.version[tasks]
            return unchanged
        return rank_among_equals(tasks) < room(self.free[tasks], request)

    def claim(self, tasks: Ints, request: Ints) -> None:
        """Allocate the requests without a check, and increase the versions of the machines."""
        np.subtract.at(self.free, tasks, request)
        np.add.at(self.version, tasks, 1)
        self._used += len(tasks) * request

    def release(self, tasks: Ints, request: Ints) -> None:
        """Add the requests back when tasks end."""
        np.add.at(self.free, tasks, request)
        self._used -= len(tasks) * request


def has_room(free: Ints, request: Ints) -> Flags:
    """Whether each row has room for one task. free: int64[rows, resources]."""
    # Column by column: several times as fast as `all` over an axis of two.
    fits: Flags = free[:, 0] >= request[0]
    for column in range(1, len(request)):
        fits &= free[:, column] >= request[column]
    return fits


def room(free: Ints, request: Ints) -> Ints:
    """The number of tasks of one size for which each row has room. free: int64[rows, resources]."""
    counts = np.full(len(free), UNBOUNDED, dtype=np.int64)
    for column in np.flatnonzero(request > 0):
        np.minimum(counts, free[:, column] // request[column], out=counts)
    return np.maximum(counts, 0)


def rank_among_equals(values: Ints) -> Ints:
    """The number of equal values before each value: [7, 3, 7, 7] → [0, 0, 1, 2]."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    indices = np.arange(len(values))
    is_first = np.ones(len(values), dtype=np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = indices - np.maximum.accumulate(np.where(is_first, indices, 0))
    return ranks
