"""Drivers of a sweep: what runs its tasks. `InProcess` is here, Ray's is in `actors/sweeps/`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from roadstead.protocol.errors import RoadsteadError
from roadstead.protocol.plain_data import pack
from roadstead.sweeps.functions import run_task
from roadstead.sweeps.tasks import Start, Work


@dataclass(frozen=True, slots=True)
class Finished:
    """A task ended with this packed result."""

    start: Start
    result: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """A task ended with an error of its own, which a repetition would raise again."""

    start: Start
    error: RoadsteadError


@dataclass(frozen=True, slots=True)
class Lost:
    """The process or the node of a task is gone."""

    start: Start
    why: str


Ended: TypeAlias = Finished | Failed | Lost


class TaskDriver(Protocol):
    """Run tasks of one sweep. All methods raise RoadsteadError if no task can run any more."""

    def max_running(self) -> int:
        """Return how many tasks may run at present; running ones are included."""
        ...

    def start(self, start: Start) -> None:
        """Start a task; there is room for it."""
        ...

    def wait(self) -> Sequence[Ended]:
        """Return tasks that ended; waits a fraction of a second if none has."""
        ...

    def stop(self) -> None:
        """End all tasks that still run. A second call does nothing."""
        ...


class InProcess:
    """Run one task after another in this process, inside `wait`."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._shared = pack(work.shared)
        self._next: Start | None = None

    def max_running(self) -> int:
        """See `TaskDriver`."""
        return 1

    def start(self, start: Start) -> None:
        """See `TaskDriver`."""
        assert self._next is None, "one task at a time"
        self._next = start

    def wait(self) -> Sequence[Ended]:
        """Run the started task. Errors that are no RoadsteadError are raised as they are."""
        start, self._next = self._next, None
        if start is None:
            return ()
        task = pack(self._work.tasks[start.task])
        try:
            return (Finished(start, run_task(self._work.function, self._shared, task)),)
        except RoadsteadError as error:
            return (Failed(start, error),)

    def stop(self) -> None:
        """Do nothing: no task runs outside of `wait`."""
