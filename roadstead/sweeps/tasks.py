"""Tasks of a sweep: their states, transitions and records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from roadstead.transitions import History, TransitionTable

Plain: TypeAlias = "bool | int | float | str | bytes | list[Plain] | dict[str, Plain] | None"
"""Data that msgpack encodes. Results have no bytes, since a file holds them as JSON."""


class TaskState(StrEnum):
    """WAITING, LOST: to be started. DONE: has a result, FAILED: an error, STOPPED: neither."""

    WAITING = "waiting"
    RUNNING = "running"
    LOST = "lost"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class TaskEvent(StrEnum):
    """RESTORE: a result of an earlier sweep. GIVE_UP: lost as often as a task may be started."""

    RESTORE = "restore"
    START = "start"
    FINISH = "finish"
    FAIL = "fail"
    LOSE = "lose"
    GIVE_UP = "give_up"
    STOP = "stop"


TABLE: TransitionTable[TaskState, TaskEvent] = TransitionTable(
    "sweep",
    {
        (TaskState.WAITING, TaskEvent.RESTORE): TaskState.DONE,
        (TaskState.WAITING, TaskEvent.START): TaskState.RUNNING,
        (TaskState.WAITING, TaskEvent.STOP): TaskState.STOPPED,
        (TaskState.RUNNING, TaskEvent.FINISH): TaskState.DONE,
        (TaskState.RUNNING, TaskEvent.FAIL): TaskState.FAILED,
        (TaskState.RUNNING, TaskEvent.LOSE): TaskState.LOST,
        (TaskState.RUNNING, TaskEvent.STOP): TaskState.STOPPED,
        (TaskState.LOST, TaskEvent.START): TaskState.RUNNING,
        (TaskState.LOST, TaskEvent.GIVE_UP): TaskState.FAILED,
        (TaskState.LOST, TaskEvent.STOP): TaskState.STOPPED,
    },
)


@dataclass(frozen=True, slots=True)
class Work:
    """The tasks of a sweep, as data that can be sent, so that any process can run a part.

    function: a name in `roadstead.sweeps.functions.FUNCTIONS`. shared: its input for all tasks.
    tasks: its input for each task, in the order of the results.
    """

    function: str
    shared: Mapping[str, Plain]
    tasks: tuple[Mapping[str, Plain], ...]


@dataclass(frozen=True, slots=True)
class Start:
    """Command of the core: run this task. attempt: 1 for its first start."""

    task: int
    attempt: int


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Numbers of tasks. losses: starts that were lost; restored: part of `done`."""

    total: int
    done: int = 0
    running: int = 0
    losses: int = 0
    restored: int = 0


@dataclass(slots=True)
class TaskRecord:
    """One task. attempt: number of its starts. history: its last transitions, for errors."""

    number: int
    state: TaskState = TaskState.WAITING
    attempt: int = 0
    history: History = ()

    @property
    def uid(self) -> str:
        """The task's name in errors."""
        return f"task {self.number}"
