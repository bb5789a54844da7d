"""Deployment: rollouts step by step as upstream's controller makes them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.simulator.share import Share
from roadstead.simulator.simulated_pods import Ending, LifeState
from tests.simulator.fake_fleet import (
    SECOND_US,
    FakeFleet,
    controller,
    rolled_out,
    scaled,
    template,
)

TEMPLATES = (template("web-a"), template("web-b"), template("web-c"))


def deployment(replicas, surge, unavailable, *changes, **more):
    return controller(
        "Deployment",
        replicas,
        templates=TEMPLATES,
        max_surge=Share(surge),
        max_unavailable=Share(unavailable),
        changes=changes,
        **more,
    )


def sizes(fleet):
    return tuple(len(fleet.of(each.name_prefix)) for each in TEMPLATES)


def started(fleet, base):
    """Start the pods of a template that wait."""
    fleet.start(*(each for each in fleet.of(base) if each.state is LifeState.PENDING))


@pytest.mark.parametrize(
    ("surge", "unavailable", "old", "new"),
    [(0, 0, 9, 1), (0, 2, 8, 2), (2, 0, 10, 2), (3, 2, 8, 5), (10, 0, 10, 10), (0, 10, 0, 10)],
)
def test_a_rollout_begins_with_as_many_pods_as_its_bounds_allow(surge, unavailable, old, new):
    fleet = FakeFleet(deployment(10, surge, unavailable, rolled_out(60, 1)), starts=False)
    started(fleet, "web-a")

    fleet.run_to(60)

    assert sizes(fleet) == (old, new, 0)


def test_old_pods_go_when_new_ones_are_available():
    fleet = FakeFleet(deployment(10, 3, 2, rolled_out(60, 1)), starts=False)
    started(fleet, "web-a")
    fleet.run_to(60)
    seen = []

    while not seen or seen[-1] != (0, 10, 0):
        started(fleet, "web-b")
        seen.append(sizes(fleet))

    assert seen == [(3, 10, 0), (0, 10, 0)]
    started(fleet, "web-b")
    assert [each[1:] for each in fleet.notes[1:]] == [
        ("rollout started", "web-b"),
        ("rollout finished", "web-b"),
    ]


@pytest.mark.parametrize(("unhealthy", "ends_with"), [(2, 8), (1, 8), (3, 8)])
def test_old_pods_that_are_not_available_go_first(unhealthy, ends_with):
    fleet = FakeFleet(deployment(10, 0, 2, rolled_out(60, 1)), starts=False)
    healthy = fleet.created[unhealthy:10]
    fleet.start(*healthy)

    fleet.run_to(60)

    old = fleet.of("web-a")
    available = [each for each in old if each.state is LifeState.RUNNING]
    assert len(old) == ends_with
    assert len(available) == min(8, len(healthy)), "no available pod goes in place of another"


def test_new_pods_that_never_start_do_not_make_more_old_ones_go():
    fleet = FakeFleet(deployment(10, 3, 2, rolled_out(60, 1)), starts=False)
    started(fleet, "web-a")
    fleet.run_to(60)
    assert sizes(fleet) == (8, 5, 0)

    fleet.end(fleet.of("web-a")[0])

    assert sizes(fleet) == (8, 5, 0), "the lost pod comes back, as 13 - 8 - 5 pods may go: none"


def test_a_rollback_removes_the_new_pods_that_are_not_available():
    fleet = FakeFleet(deployment(10, 3, 2, rolled_out(60, 1), rolled_out(120, 0)), starts=False)
    started(fleet, "web-a")
    fleet.run_to(119)
    assert sizes(fleet) == (8, 5, 0)

    fleet.run_to(120)

    assert sizes(fleet) == (10, 0, 0)
    assert len([each for each in fleet.created if ("base", "web-a") in each.facts.labels]) == 12


def test_a_rollout_over_an_unfinished_one_shrinks_both_old_sets():
    fleet = FakeFleet(deployment(10, 3, 2, rolled_out(60, 1), rolled_out(120, 2)), starts=False)
    started(fleet, "web-a")

    fleet.run_to(120)

    assert sizes(fleet) == (8, 0, 5), "the pods of the second template had not started"


def test_a_deployment_that_is_scaled_in_a_rollout_keeps_the_proportion():
    fleet = FakeFleet(deployment(10, 3, 2, rolled_out(60, 1), scaled(120, 20)), starts=False)
    started(fleet, "web-a")
    fleet.run_to(119)
    assert sizes(fleet) == (8, 5, 0)

    fleet.run_to(120)

    # 23 pods in all: 8 * 23 / 13 = 14.2 and 5 * 23 / 13 = 8.8.
    assert sizes(fleet) == (14, 9, 0)


def test_a_rollout_continues_when_it_is_scaled_to_the_size_that_it_has():
    fleet = FakeFleet(deployment(4, 0, 2, rolled_out(60, 1), scaled(120, 2)), starts=False)
    started(fleet, "web-a")
    fleet.run_to(60)
    assert sizes(fleet) == (2, 2, 0)

    fleet.run_to(120)
    fleet.starts = True
    for _ in range(4):
        started(fleet, "web-b")

    assert sizes(fleet) == (0, 2, 0)


def test_without_a_rollout_it_is_scaled_like_a_replica_set():
    fleet = FakeFleet(deployment(4, 1, 0, scaled(60, 9), scaled(120, 2), scaled(180, 0)))

    for at_s, number in ((59, 4), (60, 9), (120, 2), (180, 0)):
        fleet.run_to(at_s)
        assert sizes(fleet) == (number, 0, 0)


def test_pods_count_as_available_when_they_have_run_long_enough():
    plan = deployment(2, 1, 0, rolled_out(60, 1), min_ready_us=20 * SECOND_US)
    fleet = FakeFleet(plan)

    for at_s, expected in ((60, (2, 1, 0)), (79, (2, 1, 0)), (80, (1, 2, 0)), (100, (0, 2, 0))):
        fleet.run_to(at_s)
        assert sizes(fleet) == expected, f"at {at_s} s"


def test_a_pod_that_ended_before_it_was_available_never_is():
    plan = deployment(1, 1, 0, rolled_out(60, 1), min_ready_us=20 * SECOND_US)
    fleet = FakeFleet(plan)
    fleet.run_to(70)
    fleet.end(*fleet.of("web-b"))

    fleet.run_to(89)
    assert sizes(fleet) == (1, 1, 0)
    fleet.run_to(90)
    assert sizes(fleet) == (0, 1, 0)


def test_recreate_waits_until_all_old_pods_have_ended():
    fleet = FakeFleet(deployment(3, 0, 0, rolled_out(60, 1), scaled(200, 5), recreates=True))

    fleet.run_to(60)
    assert sizes(fleet) == (0, 0, 0)
    assert len(fleet.names(LifeState.TERMINATING)) == 3
    fleet.run_to(89)
    assert sizes(fleet) == (0, 0, 0)
    fleet.run_to(90)
    assert sizes(fleet) == (0, 3, 0)
    fleet.run_to(200)
    assert sizes(fleet) == (0, 5, 0)


def test_a_deletion_ends_the_pods_of_all_sets():
    plan = deployment(10, 3, 2, rolled_out(60, 1), deleted_us=70 * SECOND_US)
    fleet = FakeFleet(plan, starts=False)
    started(fleet, "web-a")

    fleet.run_to(100)

    assert not fleet.pods


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["start", "start all", "lose", "evict", "fail", "wait"]), st.integers(0)
    ),
    max_size=30,
)
CHANGES = st.lists(
    st.tuples(
        st.integers(1, 200),
        st.one_of(
            st.integers(0, 12).map(lambda number: ("scale", number)),
            st.integers(0, 2).map(lambda number: ("rollout", number)),
        ),
    ),
    max_size=5,
)


def play(fleet, what, number):
    waiting = [each for each in fleet.active() if each.state is LifeState.PENDING]
    running = fleet.available()
    if what == "start" and waiting:
        fleet.start(waiting[number % len(waiting)])
    elif what == "start all":
        fleet.start(*waiting)
    elif what in ("lose", "fail") and running:
        ending = Ending.LOST if what == "lose" else Ending.FAILED
        fleet.end(running[number % len(running)], ending=ending)
    elif what == "evict" and running:
        fleet.evict(running[number % len(running)])
    elif what == "wait":
        fleet.run_to(fleet.now_us / SECOND_US + number % 40)


@settings(deadline=None)
@given(
    replicas=st.integers(0, 12),
    surge=st.integers(0, 4),
    unavailable=st.integers(0, 4),
    steps=CHANGES,
    moves=MOVES,
)
def test_a_deployment_keeps_its_bounds_under_random_events(
    replicas, surge, unavailable, steps, moves
):
    changes = [
        scaled(at_s, number) if what == "scale" else rolled_out(at_s, number)
        for at_s, (what, number) in sorted(steps, key=lambda step: step[0])
    ]
    fleet = FakeFleet(deployment(replicas, surge, unavailable, *changes), starts=False)
    (core,) = fleet.controllers.cores

    for what, number in moves:
        # A pod that ends when it was created is replaced a second later.
        fleet.run_to(fleet.now_us / SECOND_US + 1)
        size, before = core.replicas, len(fleet.available())
        play(fleet, what, number)
        above, below = (surge, unavailable) if surge or unavailable else (0, 1)
        most = core.replicas + above if core.replicas else 0
        assert len(fleet.active()) <= most, "more pods than replicas and surge"
        assert len(fleet.active()) >= core.replicas - below, "pods are not replaced"
        if size == core.replicas:
            lost = 1 if what in ("lose", "fail", "evict") else 0
            least = min(before - lost, core.replicas - below)
            assert len(fleet.available()) >= least, "more pods are missing than may be"

    # When nothing more goes wrong, the last rollout ends.
    for _ in range(3 * len(TEMPLATES) + 40):
        fleet.run_to(fleet.now_us / SECOND_US + 10)
        play(fleet, "start all", 0)
    assert len(fleet.of(TEMPLATES[core.template].name_prefix)) == core.replicas == len(fleet.pods)
