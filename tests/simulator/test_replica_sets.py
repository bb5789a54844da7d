"""ReplicaSet: pods that left are replaced; those that are too many go in upstream's order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.simulator.controllers.deletion_order import first_to_delete
from roadstead.simulator.simulated_pods import Ending, LifeState, SimulatedPod
from tests.simulator.fake_fleet import GRACE_US, SECOND_US, FakeFleet, controller, scaled

HOUR_US = 3_600 * SECOND_US


def pod(name, node="", state=LifeState.PENDING, age_s=60, ready_s=30):
    """A pod of a certain age, at the time of one hour."""
    created_us, started_us = HOUR_US - age_s * SECOND_US, HOUR_US - ready_s * SECOND_US
    identity = PodIdentity(name, "default", name)
    life = SimulatedPod(0, identity, PodFacts(), created_us, -1, 0, -1, 0, state=state, node=node)
    if state is LifeState.RUNNING:
        life.started_us = started_us
    return life


def running(name, node, **ages):
    return pod(name, node, LifeState.RUNNING, **ages)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("b"), pod("a", "n", LifeState.BOUND)),
        (pod("b", "n", LifeState.BOUND), running("a", "n")),
        (running("b", "n", ready_s=30), running("a", "n", ready_s=300)),
        (pod("b", age_s=30), pod("a", age_s=300)),
        # Within one power of two, the UID decides.
        (running("a", "n", ready_s=40), running("b", "n", ready_s=36)),
        (pod("a", age_s=40), pod("b", age_s=36)),
    ],
    ids=["no node", "not running", "ready later", "younger", "alike ready", "alike old"],
)
def test_the_pod_that_upstream_ranks_first_is_deleted(first, second):
    for pods in ([first, second], [second, first]):
        assert first_to_delete(pods, pods, 1, HOUR_US) == [first]


def test_a_pod_beside_others_of_its_deployment_is_deleted_before_a_lone_one():
    lone, beside, old = running("a", "n1"), running("b", "n2"), running("c", "n2")

    chosen = first_to_delete([lone, beside], [lone, beside, old], 1, HOUR_US)

    assert chosen == [beside], "the pod of the other set on its node counts"


@given(st.permutations([(at, ready) for at in range(5) for ready in (1, 10, 100)]), st.integers(0))
def test_the_choice_does_not_depend_on_the_order_of_the_pods(order, wanted):
    pods = [running(f"p{at}-{ready}", f"n{at}", ready_s=ready) for at, ready in order]
    wanted %= len(pods) + 1

    chosen = first_to_delete(pods, pods, wanted, HOUR_US)

    by_name = sorted(pods, key=lambda life: life.uid)
    assert {life.uid for life in chosen} == {
        life.uid for life in first_to_delete(by_name, by_name, wanted, HOUR_US)
    }
    assert len(chosen) == wanted


@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.PREEMPTED, Ending.LOST, Ending.DONE])
def test_a_pod_that_ended_is_replaced_at_once_by_one_of_another_name(ending):
    fleet = FakeFleet(controller("ReplicaSet", 3))
    before = fleet.names()
    fleet.run_to(60)

    fleet.end(fleet.pod(before[0]), ending=ending)

    assert len(fleet.active()) == 3
    assert fleet.created[-1].created_us == 60 * SECOND_US
    assert fleet.created[-1].identity.name not in before


def test_a_pod_that_terminates_is_replaced_before_it_has_ended():
    fleet = FakeFleet(controller("ReplicaSet", 2))
    fleet.run_to(60)

    fleet.evict(fleet.active()[0])

    assert len(fleet.active()) == 2
    assert len(fleet.pods) == 3, "one terminates"
    fleet.run_to(91)
    assert len(fleet.pods) == 2
    assert len(fleet.created) == 3, "its end creates no further pod"


def test_pods_are_created_and_deleted_as_it_is_scaled():
    fleet = FakeFleet(controller("ReplicaSet", 2, changes=(scaled(60, 5), scaled(120, 1))))

    assert len(fleet.active()) == 2
    fleet.run_to(60)
    assert len(fleet.active()) == 5
    fleet.run_to(119)
    oldest = fleet.created[:2]
    fleet.run_to(120)
    (left,) = fleet.active()
    assert left in oldest
    assert len(fleet.names(LifeState.TERMINATING)) == 4
    assert fleet.notes[1:] == [
        (60, "controller scaled", "from 2 to 5 pods"),
        (120, "controller scaled", "from 5 to 1 pods"),
    ]


def test_pods_that_wait_are_deleted_before_those_that_run():
    fleet = FakeFleet(controller("ReplicaSet", 4, changes=(scaled(60, 2),)), starts=False)
    fleet.start(fleet.created[1], fleet.created[3])

    fleet.run_to(60)

    assert fleet.active() == [fleet.created[1], fleet.created[3]]


def test_all_pods_are_deleted_with_their_controller_and_stay_away():
    plan = controller("ReplicaSet", 3, created_us=10 * SECOND_US, deleted_us=100 * SECOND_US)
    fleet = FakeFleet(plan)
    assert not fleet.pods, "it is not created yet"
    fleet.run_to(99)
    assert len(fleet.active()) == 3

    fleet.run_to(100)
    assert not fleet.active()
    fleet.run_to(100 + GRACE_US // SECOND_US)

    assert not fleet.pods
    assert len(fleet.created) == 3
    assert [each[:2] for each in fleet.notes] == [
        (10, "controller created"),
        (100, "controller deleted"),
    ]


def test_pods_that_end_when_they_are_created_do_not_stop_time():
    class NoTime:
        def draws(self, seed, stream):
            while True:
                yield 0

    fleet = FakeFleet(controller("ReplicaSet", 2, durations=NoTime()))
    fleet.run_to(10)

    assert len(fleet.created) == 2 * 11, "two a second"


def test_each_controller_draws_durations_of_its_own():
    class Streams:
        def draws(self, seed, stream):
            while True:
                yield (1 + seed * 10 + stream) * SECOND_US

    plans = [controller("ReplicaSet", 1, durations=Streams(), index=index) for index in range(2)]
    other = controller("ReplicaSet", 1, durations=Streams())

    fleet = FakeFleet(plans[0], seed=3)
    alone = FakeFleet(other, seed=4)

    assert fleet.created[0].duration_us == 31 * SECOND_US
    assert alone.created[0].duration_us == 41 * SECOND_US
