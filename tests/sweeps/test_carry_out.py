"""Carrying out a sweep: the same results on any driver, losses, failures, stops and stores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.protocol.errors import RoadsteadError
from roadstead.protocol.plain_data import pack
from roadstead.sweeps import carry_out as module
from roadstead.sweeps.carry_out import NoStore, Processes, carry_out, pays
from roadstead.sweeps.drivers import Failed, Finished, Lost
from roadstead.sweeps.functions import run_task
from roadstead.sweeps.tasks import Work

WORK = Work(
    "model",
    {"study": "extra-slots"},
    tuple(
        {
            "values": {"tasks_per_s": 400.0, "capacity_per_s": 60.0, "sync_gap_s": gap_s},
            "seed": seed,
        }
        for gap_s in (0.1, 0.5)
        for seed in range(3)
    ),
)


class Jumbled:
    """A driver that runs several tasks, ends them in a drawn order, and loses some first."""

    def __init__(self, work, jobs=2, order=(), losses=(), stop_at=None, fails=()):
        self.work, self.jobs, self.order = work, jobs, list(order)
        self.losses, self.fails, self.stop_at = list(losses), fails, stop_at
        self.running, self.most, self.stops, self.ended = [], 0, 0, 0

    def max_running(self):
        return self.jobs

    def start(self, start):
        self.running.append(start)
        self.most = max(self.most, len(self.running))

    def wait(self):
        if self.ended == self.stop_at:
            raise KeyboardInterrupt
        if not self.running:
            return ()
        place = self.order.pop() if self.order else 0
        start = self.running.pop(place % len(self.running))
        if self.losses and self.losses.pop():
            return (Lost(start, "its process was killed"),)
        self.ended += 1
        if start.task in self.fails:
            return (Failed(start, RoadsteadError(f"task {start.task} is broken")),)
        task = pack(self.work.tasks[start.task])
        result = run_task(self.work.function, pack(self.work.shared), task)
        return (Finished(start, result),)

    def stop(self):
        self.stops += 1


class Memory(NoStore):
    def __init__(self, stored=()):
        self.rows = dict(stored)

    def stored(self):
        return dict(self.rows)

    def add(self, task, result):
        assert task not in self.rows, "a result is stored twice"
        self.rows[task] = result


def quiet(counts, last):
    pass


def at_once(driver):
    return Processes(lambda: driver, driver.jobs, starts_at_once=True)


def carried_out(processes=None, store=None, report=quiet, clock=lambda: 0.0, work=WORK):
    return carry_out(work, processes, store or NoStore(), report, clock)


ALONE = dict(carried_out().results)


def test_in_this_process_tasks_run_one_after_the_other_and_are_reported():
    seen = []

    end = carried_out(report=lambda counts, last: seen.append((counts.done, counts.running, last)))

    assert list(end.results) == list(range(6))
    assert end.stopped_by is None
    assert seen == [*((done, 1, done) for done in range(6)), (6, 0, 5)]


@given(st.integers(1, 9), st.lists(st.integers(0, 9)), st.lists(st.booleans(), max_size=2))
def test_results_do_not_depend_on_jobs_order_or_losses(jobs, order, losses):
    driver = Jumbled(WORK, jobs, order, losses)

    end = carried_out(at_once(driver))

    assert dict(end.results) == ALONE
    assert driver.most <= jobs
    assert driver.stops == 1


def test_a_failure_is_returned_with_the_results_before_it_and_ends_the_other_tasks():
    driver = Jumbled(WORK, jobs=2, fails=(2,))

    end = carried_out(at_once(driver))

    assert str(end.stopped_by) == "task 2 is broken"
    assert dict(end.results) == {task: ALONE[task] for task in (0, 1)}
    assert driver.running, "the task beside it is not waited for"
    assert driver.stops == 1


def test_an_interruption_keeps_the_results_and_stops_the_driver():
    driver, store = Jumbled(WORK, jobs=2, stop_at=3), Memory()

    end = carried_out(at_once(driver), store)

    assert isinstance(end.stopped_by, KeyboardInterrupt)
    assert store.rows == end.results == {task: ALONE[task] for task in (0, 1, 2)}
    assert driver.stops == 1


def test_a_signal_during_the_work_of_other_processes_ends_it_in_order(monkeypatch):
    driver, cancels = Jumbled(WORK, jobs=2), []

    class Cancelling:
        def __init__(self, cancel):
            cancels.append(cancel)

        def __enter__(self):
            pass

        def __exit__(self, *_):
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "cancelling_on_signal", Cancelling)

    end = carried_out(at_once(driver), report=lambda counts, _: counts.done == 2 and cancels[0]())

    assert isinstance(end.stopped_by, KeyboardInterrupt)
    assert list(end.results) == [0, 1, 2, 3], "what had ended is kept"
    assert driver.stops == 1


def test_stored_results_are_not_run_again_and_new_ones_are_stored():
    store = Memory({4: "stored", 0: "stored, too"})

    end = carried_out(store=store)

    assert end.results == {**ALONE, 0: "stored, too", 4: "stored"}
    assert store.rows == end.results


def test_a_finished_sweep_starts_no_process():
    def open_none():
        raise AssertionError("nothing is left to run")

    end = carried_out(Processes(open_none, 2, starts_at_once=True), Memory(ALONE))

    assert end.results == ALONE


def test_processes_that_cannot_be_started_end_the_sweep():
    def fail():
        raise RoadsteadError("Ray did not start")

    end = carried_out(Processes(fail, 2, starts_at_once=True))

    assert (str(end.stopped_by), end.results) == ("Ray did not start", {})


@pytest.mark.parametrize(("task_s", "in_this_process"), [(0.1, 6), (9.0, 2)])
def test_other_processes_are_started_once_they_pay(task_s, in_this_process):
    now_s = [0.0]

    def clock():
        now_s[0] += task_s
        return now_s[0]

    driver = Jumbled(WORK, jobs=2)

    end = carried_out(Processes(lambda: driver, 2, starts_at_once=False), clock=clock)

    assert end.results == ALONE
    assert driver.ended == len(WORK.tasks) - in_this_process


@pytest.mark.parametrize(
    ("task_s", "tasks", "jobs", "expected"),
    [(1.0, 100, 2, True), (1.0, 100, 1, False), (10.0, 1, 8, False), (10.0, 3, 2, False)],
)
def test_other_processes_pay_by_the_time_that_they_save(task_s, tasks, jobs, expected):
    assert pays(task_s, tasks, jobs) == expected


def test_each_result_is_reported_once_and_stored_ones_first():
    class Stored(NoStore):
        def stored(self):
            return {4: {"stored": 1}}

    seen = []

    carry_out(WORK, None, Stored(), lambda *_: None, lambda: 0.0, lambda task, _: seen.append(task))

    assert seen == [4, 0, 1, 2, 3, 5]
