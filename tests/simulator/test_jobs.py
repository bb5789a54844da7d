"""Job: completions, failures, and the time between them."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.simulator.controllers.job import backoff_us
from roadstead.simulator.simulated_pods import Ending, LifeState
from tests.simulator.fake_fleet import SECOND_US, FakeFleet, controller


@dataclass(frozen=True)
class Seconds:
    """The same duration for all pods."""

    seconds: int

    def draws(self, seed, stream):
        while True:
            yield self.seconds * SECOND_US


def job(completions, parallelism=1, duration_s=100, **more):
    durations = Seconds(duration_s)
    return controller("Job", completions, parallelism=parallelism, durations=durations, **more)


def test_it_ends_when_its_completions_are_reached():
    fleet = FakeFleet(job(5, parallelism=2))

    for at_s, active in ((0, 2), (99, 2), (100, 2), (200, 1), (300, 0)):
        fleet.run_to(at_s)
        assert len(fleet.active()) == active, f"at {at_s} s"
    assert len(fleet.created) == 5
    assert fleet.notes[1:] == [(300, "job completed", "5 pods succeeded")]


def test_a_job_without_completions_to_reach_is_complete_at_once():
    fleet = FakeFleet(job(0))

    assert not fleet.created
    assert fleet.notes[1:] == [(0, "job completed", "0 pods succeeded")]


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (8, 600), (10**6, 600)],
)
def test_the_time_to_the_next_pod_doubles_up_to_a_bound(failures, seconds):
    assert backoff_us(failures) == seconds * SECOND_US


@pytest.mark.parametrize("ending", [Ending.EVICTED, Ending.PREEMPTED, Ending.LOST, Ending.FAILED])
def test_a_pod_that_did_not_succeed_is_replaced_after_its_backoff(ending):
    fleet = FakeFleet(job(1))
    fleet.run_to(50)
    fleet.end(*fleet.active(), ending=ending)

    fleet.run_to(59)
    assert not fleet.pods
    fleet.run_to(60)
    assert len(fleet.active()) == 1
    fleet.end(*fleet.active(), ending=ending)

    fleet.run_to(79)
    assert not fleet.pods
    fleet.run_to(80)
    assert len(fleet.active()) == 1


def test_a_pod_that_terminates_has_failed_when_that_begins():
    fleet = FakeFleet(job(1))
    fleet.run_to(50)
    fleet.evict(*fleet.active())

    fleet.run_to(60)

    assert len(fleet.names(LifeState.TERMINATING)) == 1
    assert len(fleet.active()) == 1


def test_a_success_ends_the_row_of_failures():
    fleet = FakeFleet(job(3, parallelism=2))
    fleet.run_to(50)
    fleet.end(fleet.active()[0], ending=Ending.FAILED)
    fleet.run_to(60)
    assert len(fleet.active()) == 2
    # The other one succeeds at 100 s.
    fleet.run_to(110)
    fleet.end(fleet.active()[0], ending=Ending.FAILED)

    fleet.run_to(119)
    waiting = len(fleet.active())
    fleet.run_to(120)

    assert (waiting, len(fleet.active())) == (1, 2), "10 s again, not 20 s"


def test_failure_and_success_of_one_time_count_as_a_success():
    fleet = FakeFleet(job(3, parallelism=2, duration_s=50))
    fleet.run_to(49)
    first, second = fleet.active()
    fleet.run_to(50)
    assert {first.ends_as, second.ends_as} == {Ending.DONE}
    (core,) = fleet.controllers.cores
    (last,) = fleet.active()

    fleet.end(last, ending=Ending.PREEMPTED)

    assert (core.failed, core.failed_since_success) == (1, 0)
    assert len(fleet.active()) == 1, "it is replaced without a backoff"


def test_more_failures_than_the_limit_end_it_with_all_its_pods():
    fleet = FakeFleet(job(9, parallelism=3, backoff_limit=1))
    fleet.run_to(50)
    fleet.end(fleet.active()[0], ending=Ending.FAILED)
    fleet.run_to(70)
    assert len(fleet.active()) == 3

    fleet.end(fleet.active()[0], ending=Ending.FAILED)

    assert not fleet.active()
    fleet.run_to(1_000)
    assert not fleet.pods
    assert len(fleet.created) == 4
    assert fleet.notes[1:] == [(70, "job failed", "2 pods failed: BackoffLimitExceeded")]


def test_the_share_that_fails_depends_on_the_seed_alone():
    def endings(seed):
        plan = job(2_000, parallelism=2_000, duration_s=1, failing=0.25, backoff_limit=10_000)
        fleet = FakeFleet(plan, seed=seed)
        return [life.ends_as for life in fleet.created]

    first = endings(1)

    assert first == endings(1)
    assert first != endings(2)
    assert 0.22 < first.count(Ending.FAILED) / len(first) < 0.28
    assert set(first) == {Ending.DONE, Ending.FAILED}


@settings(deadline=None)
@given(
    completions=st.integers(0, 8),
    parallelism=st.integers(1, 4),
    limit=st.integers(0, 4),
    moves=st.lists(
        st.tuples(st.sampled_from(["start", "fail", "evict", "lose", "wait"]), st.integers(0, 150)),
        max_size=30,
    ),
)
def test_a_job_ends_with_its_completions_or_too_many_failures(
    completions, parallelism, limit, moves
):
    fleet = FakeFleet(job(completions, parallelism, backoff_limit=limit), starts=False)
    (core,) = fleet.controllers.cores

    for what, number in moves:
        waiting = [each for each in fleet.active() if each.state is LifeState.PENDING]
        running = fleet.available()
        if what == "start":
            fleet.start(*waiting[: 1 + number % 3])
        elif what in ("fail", "lose") and running:
            ending = Ending.FAILED if what == "fail" else Ending.LOST
            fleet.end(running[number % len(running)], ending=ending)
        elif what == "evict" and running:
            fleet.evict(running[number % len(running)])
        fleet.run_to(fleet.now_us / SECOND_US + number)
        assert len(fleet.active()) <= parallelism
        assert core.succeeded + len(fleet.active()) <= completions
        assert core.is_live == (core.succeeded < completions and core.failed <= limit)

    fleet.starts = True
    fleet.start(*(each for each in fleet.active() if each.state is LifeState.PENDING))
    fleet.run_to(20_000)
    assert not core.is_live
    assert not fleet.pods
    done = sum(life.ends_as is Ending.DONE for life in fleet.created)
    assert done == core.succeeded
    assert (done == completions) != (core.failed > limit)
