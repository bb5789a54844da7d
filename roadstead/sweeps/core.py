"""SweepCore: which tasks of a sweep run, which run again, and when the sweep is over."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from roadstead.protocol.errors import RoadsteadError
from roadstead.sweeps.tasks import (
    TABLE,
    Plain,
    Start,
    TaskCounts,
    TaskEvent,
    TaskRecord,
    TaskState,
)

MAX_ATTEMPTS = 3
"""Maximum number of starts of one task. If it is lost each time, the task has failed: it may itself
be what ends its process."""


class TaskLostError(RoadsteadError):
    """A task was lost with its process or node as often as it may be started."""


class SweepCore:
    """The tasks 0 to `total - 1`. See the package for their states.

    results: task → result, in the order in which they were recorded. failure: of the first task
    that failed; None if none did.
    """

    def __init__(self, total: int, max_attempts: int = MAX_ATTEMPTS) -> None:
        assert total >= 0
        assert max_attempts >= 1
        self._max_attempts = max_attempts
        self._records = [TaskRecord(number) for number in range(total)]
        self._waiting = deque(self._records)
        self._lost: deque[TaskRecord] = deque()
        self._running: dict[int, TaskRecord] = {}
        self._results: dict[int, Plain] = {}
        self._losses = self._restored = 0
        self._is_stopped = False
        self.failure: RoadsteadError | None = None

    @property
    def results(self) -> Mapping[int, Plain]:
        return self._results

    @property
    def counts(self) -> TaskCounts:
        done, running = len(self._results), len(self._running)
        return TaskCounts(len(self._records), done, running, self._losses, self._restored)

    @property
    def is_over(self) -> bool:
        """Whether no task runs and none will be started."""
        return not (self._waiting or self._lost or self._running)

    def state_of(self, task: int) -> TaskState:
        return self._records[task].state

    def restore(self, results: Mapping[int, Plain]) -> None:
        """Record results of an earlier, stopped sweep; their tasks are not run.

        Raises IllegalTransitionError, with nothing changed, unless all these tasks wait for their
        first start; KeyError for a task that does not exist.
        """
        records = [self._record(task) for task in results]
        # Applies the event to all records, or to none.
        TABLE.walk(TaskEvent.RESTORE).move(records)
        self._results |= results
        self._restored += len(records)
        self._waiting = deque(each for each in self._waiting if each.state is TaskState.WAITING)

    def start(self, max_running: int) -> tuple[Start, ...]:
        """Start tasks until `max_running` run, lost ones first; return those to start now."""
        started = []
        while len(self._running) < max_running and (self._lost or self._waiting):
            record = (self._lost or self._waiting).popleft()
            self._apply(record, TaskEvent.START)
            record.attempt += 1
            self._running[record.number] = record
            started.append(Start(record.number, record.attempt))
        return tuple(started)

    def finish(self, start: Start, result: Plain) -> bool:
        """Record a result. Returns False, with nothing changed, for an attempt that was lost.

        Raises IllegalTransitionError, with nothing changed, for a task that does not run.
        """
        record = self._current_record(start, TaskEvent.FINISH)
        if record is None:
            return False
        self._end_attempt(record, TaskEvent.FINISH)
        self._results[start.task] = result
        return True

    def fail(self, start: Start, error: RoadsteadError) -> bool:
        """Record an error of the task itself: no further task is started. Otherwise as `finish`."""
        record = self._current_record(start, TaskEvent.FAIL)
        if record is None:
            return False
        self._end_attempt(record, TaskEvent.FAIL)
        self._end_with(error)
        return True

    def lose(self, start: Start, why: str) -> bool:
        """Record that a task's process is gone: it is started again, up to the limit.

        Beyond the limit the task has failed, with a TaskLostError. Otherwise as `finish`.
        """
        record = self._current_record(start, TaskEvent.LOSE)
        if record is None:
            return False
        self._end_attempt(record, TaskEvent.LOSE)
        self._losses += 1
        if self._is_stopped:
            self._apply(record, TaskEvent.STOP)
        elif record.attempt < self._max_attempts:
            self._lost.append(record)
        else:
            self._apply(record, TaskEvent.GIVE_UP)
            times = "once" if record.attempt == 1 else f"{record.attempt} times"
            self._end_with(TaskLostError(f"run {start.task + 1} was lost {times}, last: {why}"))
        return True

    def stop(self) -> None:
        """Start no further task. Results of running ones are still recorded."""
        self._is_stopped = True
        for queue in (self._waiting, self._lost):
            TABLE.walk(TaskEvent.STOP).move(queue)
            queue.clear()

    def abandon(self) -> None:
        """Stop, and expect no result of the running tasks."""
        self.stop()
        for record in tuple(self._running.values()):
            self._end_attempt(record, TaskEvent.STOP)

    def _end_with(self, error: RoadsteadError) -> None:
        self.failure = self.failure or error
        self.stop()

    def _record(self, task: int) -> TaskRecord:
        if not 0 <= task < len(self._records):
            raise KeyError(task)
        return self._records[task]

    def _current_record(self, start: Start, event: TaskEvent) -> TaskRecord | None:
        """Return the task's record, or None if the start is of an earlier attempt."""
        record = self._record(start.task)
        if start.attempt > record.attempt:
            why = f"attempt {start.attempt} was not started"
            raise TABLE.illegal(record.uid, record.state, event, record.history, why)
        return record if start.attempt == record.attempt else None

    def _apply(self, record: TaskRecord, event: TaskEvent) -> None:
        transition = TABLE.follow(record.uid, record.state, event, record.history)
        record.state, record.history = transition.target, transition.extend(record.history)

    def _end_attempt(self, record: TaskRecord, event: TaskEvent) -> None:
        """Apply an event that ends a running task's attempt."""
        self._apply(record, event)
        del self._running[record.number]

    def validate(self) -> None:
        """Check that each task is where its state requires, and that none is counted twice."""
        by_state = Counter(record.state for record in self._records)
        assert len(self._waiting) == by_state[TaskState.WAITING], "a waiting task is not queued"
        assert len(self._lost) == by_state[TaskState.LOST], "a lost task is not queued"
        assert len(self._running) == by_state[TaskState.RUNNING], "a running task is not counted"
        assert len(self._results) == by_state[TaskState.DONE], "a result is missing or too many"
        assert all(each.state is TaskState.WAITING for each in self._waiting)
        assert all(each.state is TaskState.LOST for each in self._lost)
        starts = 0
        for number, record in enumerate(self._records):
            assert record.number == number, "a task has another's number"
            assert (number in self._running) == (record.state is TaskState.RUNNING), record.uid
            assert (number in self._results) == (record.state is TaskState.DONE), record.uid
            assert record.attempt <= self._max_attempts, f"{record.uid} started too often"
            starts += record.attempt
        assert by_state[TaskState.FAILED] == 0 or self.failure is not None, "an error is missing"
        assert self.failure is None or self._is_stopped, "a failed sweep goes on"
        assert not self._is_stopped or not (self._waiting or self._lost), "a stopped sweep waits"
        ended = len(self._results) - self._restored + len(self._running)
        assert starts >= ended + self._losses, "an attempt ended twice"
