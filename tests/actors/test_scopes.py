"""The state that a scheduler read, and the time for which it may use it."""

import pytest

from roadstead.actors.messages import ActorStatus
from roadstead.actors.scheduler.concurrency_report import concurrency_of, work_of
from roadstead.attempts.pods import Attempt
from roadstead.config.settings import Settings
from roadstead.cycle.scopes import Scope
from roadstead.facts.pod import Owner
from roadstead.scheduler.metrics import SchedulerMetrics
from tests.builders import pod


def scope(read_s=10.0):
    each = Scope(None)
    each.read(read_s)
    return each


def test_a_state_is_used_for_later_pods_while_it_is_fresh():
    assert not Scope(None).is_reusable(10.0, 2.0)

    each = scope()

    assert each.is_reusable(12.0, 2.0)
    assert not each.is_reusable(12.1, 2.0)


def test_without_a_staleness_bound_no_state_is_kept_or_too_old():
    assert not scope().is_reusable(10.0, None)
    assert not scope().is_older(1e9, None)


def test_with_a_bound_of_zero_any_state_is_too_old_a_moment_later():
    assert not scope().is_older(10.0, 0.0)
    assert scope().is_older(10.001, 0.0)


def test_a_dropped_state_is_not_used():
    each = scope()
    each.drop()

    assert not each.is_reusable(10.0, 5.0)


def attempt(name, job=""):
    owner = Owner("Job", job, "") if job else None
    return Attempt(name, f"uid-{name}", f"default/{name}", "n1", pod(owner=owner))


def test_metrics_count_binds_by_cause_and_jobs_by_refusals():
    metrics = SchedulerMetrics()
    tried = [attempt("a", "j"), attempt("b", "j"), attempt("c"), attempt("d"), attempt("late")]

    metrics.answered(tried, {"a": "", "b": "version", "c": "", "d": "constraint"})

    assert (metrics.asked, metrics.bound) == (4, 2)
    assert (metrics.transactions, metrics.conflicted) == (3, 2)
    assert metrics.refused == {"version": 1, "constraint": 1}


def test_metrics_arrive_unchanged():
    metrics = SchedulerMetrics(busy_s=3.0, reads=2, decided=4, retries=1, passed_on=5)
    metrics.answered([attempt("a")], {"a": "version"})

    work = work_of("scheduler-0", "web", dict(metrics.by_name()), 12.0)

    assert (work.name, work.profile, work.busyness) == ("scheduler-0", "web", 0.25)
    assert (work.reads, work.decided, work.retries, work.passed_on) == (2, 4, 1, 5)
    assert (work.asked, work.bound, work.transactions, work.conflicted) == (1, 0, 1, 1)
    assert work.refused == {"version": 1}


@pytest.mark.parametrize(("busy_s", "over_s", "share"), [(9.0, 3.0, 1.0), (1.0, 0.0, 0.0)])
def test_utilization_is_at_most_one(busy_s, over_s, share):
    assert work_of("s", "", {"busy_s": busy_s}, over_s).busyness == share


def test_a_run_reports_metrics_of_each_of_its_schedulers():
    settings = Settings(schedulers={"web": 1, "batch": 1}, conflicts="version")
    statuses = {f"scheduler-{n}": ActorStatus("", metrics=(("asked", n),)) for n in range(2)}

    found = concurrency_of(settings, statuses, 1.0)

    assert (found.mode, found.detection, found.transaction) == ("shared", "version", "incremental")
    assert [(each.profile, each.asked) for each in found.schedulers] == [("web", 0), ("batch", 1)]
