"""The core of a sweep: every transition, the bound on running tasks, losses, and its end."""

from contextlib import suppress
from itertools import product

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roadstead.protocol.errors import IllegalTransitionError, RoadsteadError
from roadstead.sweeps.core import SweepCore, TaskLostError
from roadstead.sweeps.tasks import TABLE, Start, TaskCounts, TaskEvent, TaskState

ARROWS = list(TABLE)
BY_CALL = {TaskEvent.RESTORE, TaskEvent.FINISH, TaskEvent.FAIL, TaskEvent.LOSE}
"""Events of a call that names a task; the others are decided by the core."""

ALLOWED = {(state, event) for state, event, _ in ARROWS}
FORBIDDEN = sorted(set(product(TaskState, BY_CALL)) - ALLOWED)
FIRST = Start(0, 1)


def core_in(state):
    """A core of one task in this state."""
    core = SweepCore(1, max_attempts=1 if state is TaskState.FAILED else 3)
    if state in (TaskState.RUNNING, TaskState.LOST, TaskState.FAILED, TaskState.DONE):
        core.start(1)
    if state in (TaskState.LOST, TaskState.FAILED):
        core.lose(FIRST, "killed")
    if state is TaskState.DONE:
        core.finish(FIRST, 7)
    if state is TaskState.STOPPED:
        core.stop()
    assert core.state_of(0) is state
    return core


def send(core, event):
    attempt = Start(0, 0 if core.state_of(0) in (TaskState.WAITING, TaskState.STOPPED) else 1)
    if event is TaskEvent.RESTORE:
        core.restore({0: 5})
    elif event is TaskEvent.FINISH:
        core.finish(attempt, 7)
    elif event is TaskEvent.FAIL:
        core.fail(attempt, RoadsteadError("broken"))
    elif event is TaskEvent.LOSE:
        core.lose(attempt, "killed")


def snapshot(core):
    return core.counts, dict(core.results), core.state_of(0), core.is_over, core.failure


@pytest.mark.parametrize(("state", "event"), FORBIDDEN)
def test_an_event_that_the_table_does_not_have_raises_and_changes_nothing(state, event):
    core = core_in(state)
    before = snapshot(core)

    with pytest.raises(IllegalTransitionError, match=f"{event.value} is not allowed"):
        send(core, event)

    assert snapshot(core) == before
    core.validate()


@pytest.mark.parametrize(
    ("state", "event", "after"),
    [
        (TaskState.WAITING, TaskEvent.RESTORE, TaskState.DONE),
        (TaskState.RUNNING, TaskEvent.FINISH, TaskState.DONE),
        (TaskState.RUNNING, TaskEvent.FAIL, TaskState.FAILED),
        (TaskState.RUNNING, TaskEvent.LOSE, TaskState.LOST),
    ],
)
def test_an_allowed_event_leads_to_its_state(state, event, after):
    core = core_in(state)

    send(core, event)

    assert core.state_of(0) is after
    core.validate()


def test_tasks_start_in_order_up_to_the_bound_and_lost_ones_first():
    core = SweepCore(5)

    assert core.start(2) == (Start(0, 1), Start(1, 1))
    assert core.start(2) == ()
    core.lose(Start(1, 1), "its node is gone")
    assert core.start(3) == (Start(1, 2), Start(2, 1))
    assert core.counts == TaskCounts(5, running=3, losses=1)


def test_results_are_in_the_order_in_which_they_come():
    core = SweepCore(3)
    core.start(3)

    for task in (2, 0, 1):
        core.finish(Start(task, 1), task * 10)

    assert list(core.results.items()) == [(2, 20), (0, 0), (1, 10)]
    assert core.is_over


def test_a_task_that_is_lost_too_often_ends_the_sweep_with_the_last_reason():
    core = SweepCore(2, max_attempts=3)
    for attempt in (1, 2, 3):
        core.start(1)
        core.lose(Start(0, attempt), f"process {attempt} ended")

    assert isinstance(core.failure, TaskLostError)
    assert str(core.failure) == "run 1 was lost 3 times, last: process 3 ended"
    assert core.is_over
    assert core.state_of(1) is TaskState.STOPPED


def test_the_end_of_an_earlier_attempt_is_ignored_and_one_of_a_later_attempt_is_refused():
    core = SweepCore(1)
    core.start(1)
    core.lose(FIRST, "its node does not answer")
    core.start(1)

    assert not core.finish(FIRST, 1)
    assert not core.fail(FIRST, RoadsteadError("x"))
    assert not core.lose(FIRST, "again")
    with pytest.raises(IllegalTransitionError, match="attempt 3 was not started"):
        core.finish(Start(0, 3), 1)
    assert core.finish(Start(0, 2), 9)
    assert core.results == {0: 9}


def test_the_first_failure_starts_nothing_more_and_other_results_still_count():
    core = SweepCore(4)
    core.start(3)

    core.fail(Start(1, 1), RoadsteadError("first"))
    core.fail(Start(2, 1), RoadsteadError("second"))

    assert core.start(9) == ()
    assert core.finish(Start(0, 1), 5)
    assert str(core.failure) == "first"
    assert core.is_over


def test_a_stopped_sweep_keeps_its_results_and_a_loss_then_ends_the_task():
    core = SweepCore(4)
    core.restore({3: 30})
    core.start(2)

    core.stop()
    core.lose(Start(0, 1), "killed")
    core.abandon()

    assert core.is_over
    assert core.failure is None
    assert core.results == {3: 30}
    assert [core.state_of(task) for task in range(3)] == [TaskState.STOPPED] * 3
    core.validate()


def test_restored_tasks_are_not_started_and_a_wrong_one_changes_nothing():
    core = SweepCore(3)
    core.restore({1: "a"})

    with pytest.raises(IllegalTransitionError):
        core.restore({0: "b", 1: "c"})
    with pytest.raises(KeyError):
        core.restore({3: "d"})

    assert core.start(9) == (Start(0, 1), Start(2, 1))
    assert core.counts == TaskCounts(3, done=1, running=2, restored=1)


def test_a_sweep_without_tasks_is_over():
    assert SweepCore(0).is_over


class Sweeps(RuleBasedStateMachine):
    """Any sequence of starts, ends, losses and stops, followed by a simple model."""

    def __init__(self):
        super().__init__()
        self.core = SweepCore(8, max_attempts=3)
        self.running: list[Start] = []
        self.ended: list[Start] = []
        self.results: dict[int, int] = {}

    @rule(bound=st.integers(0, 4))
    def start(self, bound):
        starts = self.core.start(bound)
        self.running += starts
        assert not starts or len(self.running) <= bound, "more tasks run than may run"
        assert not {each.task for each in starts} & self.results.keys(), "a result is repeated"

    @precondition(lambda self: self.running)
    @rule(place=st.integers(0, 99), how=st.sampled_from(["finish", "fail", "lose", "lose"]))
    def end(self, place, how):
        start = self.running.pop(place % len(self.running))
        self.ended.append(start)
        if how == "finish":
            assert self.core.finish(start, start.task)
            self.results[start.task] = start.task
        elif how == "fail":
            assert self.core.fail(start, RoadsteadError("broken"))
        else:
            assert self.core.lose(start, "killed")

    @precondition(lambda self: self.ended)
    @rule(place=st.integers(0, 99))
    def end_again(self, place):
        """A copy of an end is ignored or refused; it never counts."""
        before = self.core.counts, dict(self.core.results)
        with suppress(IllegalTransitionError):
            self.core.finish(self.ended[place % len(self.ended)], -1)
        assert (self.core.counts, dict(self.core.results)) == before

    @rule(task=st.integers(0, 7))
    def restore(self, task):
        is_new = self.core.state_of(task) is TaskState.WAITING
        try:
            self.core.restore({task: task})
        except IllegalTransitionError:
            assert not is_new
        else:
            self.results[task] = task

    @rule()
    def stop(self):
        self.core.stop()

    @rule()
    def abandon(self):
        self.core.abandon()
        self.running.clear()

    @invariant()
    def it_is_valid(self):
        self.core.validate()
        assert list(self.core.results.items()) == list(self.results.items())
        assert self.core.counts.running == len(self.running)

    def teardown(self):
        """Whatever happened, a driver that loses nothing more brings the sweep to its end."""
        while not self.core.is_over:
            self.running += self.core.start(2)
            start = self.running.pop()
            self.core.finish(start, start.task)
        self.core.validate()


TestSweeps = Sweeps.TestCase
