"""StatefulSet: ordinals in order, names that stay, updates from the highest ordinal."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from roadstead.facts.pod import PodFacts
from roadstead.simulator.simulated_pods import Ending, LifeState
from tests.simulator.fake_fleet import (
    LIFE,
    SECOND_US,
    FakeFleet,
    PodTemplatePlan,
    controller,
    rolled_out,
    scaled,
)


def revision(label):
    """A revision of a StatefulSet of up to 64 pods: all revisions have the same names."""
    facts = tuple(PodFacts(labels=(("base", label), ("i", str(each)))) for each in range(64))
    return PodTemplatePlan("web", facts[0], LIFE, facts)


REVISIONS = (revision("a"), revision("b"), revision("c"))


def stateful(replicas, *changes, **more):
    return controller("StatefulSet", replicas, templates=REVISIONS, changes=changes, **more)


def revisions(fleet):
    """The revision of each active pod by its ordinal."""
    lives = sorted(fleet.active(), key=lambda life: life.ordinal)
    return "".join(dict(life.facts.labels)["base"] for life in lives)


def ordinals(fleet):
    return sorted(life.ordinal for life in fleet.active())


def test_a_pod_is_created_when_those_before_it_run():
    fleet = FakeFleet(stateful(3), starts=False)

    assert fleet.names() == ["web-0"]
    fleet.start(fleet.pod("web-0"))
    assert fleet.names() == ["web-0", "web-1"]
    fleet.start(fleet.pod("web-1"))
    fleet.start(fleet.pod("web-2"))

    assert fleet.names() == ["web-0", "web-1", "web-2"]
    assert fleet.created[2].facts == REVISIONS[0].ordinals[2]


def test_in_parallel_all_are_created_and_deleted_together():
    fleet = FakeFleet(stateful(3, scaled(60, 1), is_parallel=True), starts=False)
    assert fleet.names() == ["web-0", "web-1", "web-2"]
    fleet.start(*fleet.created)

    fleet.run_to(60)

    assert fleet.names() == ["web-0"]


def test_the_first_ordinal_is_the_given_one():
    fleet = FakeFleet(stateful(2, first_ordinal=5))

    assert fleet.names() == ["web-5", "web-6"]
    assert fleet.created[0].facts == REVISIONS[0].ordinals[0]


def test_a_lost_pod_returns_under_its_name_with_another_uid():
    fleet = FakeFleet(stateful(3))
    fleet.run_to(60)

    fleet.end(fleet.pod("web-1"))

    assert fleet.pod("web-1").created_us == 60 * SECOND_US
    assert fleet.pod("web-1").uid != fleet.created[1].uid
    assert fleet.pod("web-1").facts is fleet.created[1].facts, "its claims have its ordinal"


def test_a_pod_returns_only_when_the_one_of_its_name_is_gone():
    fleet = FakeFleet(stateful(2))
    fleet.run_to(60)

    fleet.evict(fleet.pod("web-0"))
    fleet.run_to(89)
    assert fleet.names() == ["web-1"]
    fleet.run_to(90)

    assert sorted(fleet.names()) == ["web-0", "web-1"]


def test_pods_are_deleted_from_the_highest_ordinal_each_when_the_last_is_gone():
    fleet = FakeFleet(stateful(4, scaled(60, 1)))

    for at_s, left in ((59, 4), (60, 3), (89, 3), (90, 2), (120, 1), (300, 1)):
        fleet.run_to(at_s)
        assert ordinals(fleet) == list(range(left)), f"at {at_s} s"


def test_a_pod_that_does_not_run_holds_up_the_deletion_of_later_ones():
    fleet = FakeFleet(stateful(4, scaled(60, 2)))
    fleet.run_to(59)
    fleet.starts = False
    fleet.end(fleet.pod("web-0"))

    fleet.run_to(100)
    assert ordinals(fleet) == [0, 1, 2, 3]
    fleet.start(fleet.pod("web-0"))

    assert ordinals(fleet) == [0, 1, 2]


def test_only_the_first_pod_beyond_the_replicas_may_be_deleted_before_it_runs():
    fleet = FakeFleet(stateful(4, scaled(60, 1)))
    fleet.run_to(59)
    fleet.starts = False
    fleet.end(fleet.pod("web-3"))
    fleet.end(fleet.pod("web-1"))

    fleet.run_to(70)
    assert ordinals(fleet) == [0, 1, 2, 3], "web-3 waits for web-1"
    fleet.start(fleet.pod("web-1"))

    assert ordinals(fleet) == [0, 1], "web-3 was on no node, and web-2 terminates"


def test_a_scale_up_before_the_scale_down_has_ended_creates_missing_pods():
    fleet = FakeFleet(stateful(4, scaled(60, 1), scaled(70, 4)))

    fleet.run_to(80)
    assert ordinals(fleet) == [0, 1, 2], "web-3 terminates, and its name is in use"
    fleet.run_to(90)

    assert ordinals(fleet) == [0, 1, 2, 3]
    assert len(fleet.created) == 5


def test_an_update_replaces_one_pod_after_the_other_from_the_highest():
    fleet = FakeFleet(stateful(3, rolled_out(60, 1)))

    for at_s, expected in ((59, "aaa"), (60, "aa"), (90, "ab"), (120, "bb"), (150, "bbb")):
        fleet.run_to(at_s)
        assert revisions(fleet) == expected, f"at {at_s} s"
    assert fleet.notes[1:] == [(60, "rollout started", ""), (150, "rollout finished", "")]


def test_an_update_waits_for_a_pod_that_does_not_run():
    fleet = FakeFleet(stateful(3, rolled_out(60, 1)))
    fleet.run_to(59)
    fleet.starts = False

    fleet.run_to(200)
    assert revisions(fleet) == "aab"
    assert fleet.pod("web-2").state is LifeState.PENDING
    fleet.start(fleet.pod("web-2"))

    assert revisions(fleet) == "ab", "now web-1 terminates"


def test_an_update_goes_pod_by_pod_in_a_parallel_set_too():
    fleet = FakeFleet(stateful(3, rolled_out(60, 1), is_parallel=True))
    fleet.run_to(59)
    fleet.starts = False

    fleet.run_to(200)
    assert revisions(fleet) == "aab"
    fleet.start(fleet.pod("web-2"))

    assert revisions(fleet) == "ab"


def test_a_pod_that_is_lost_in_an_update_returns_with_the_new_template():
    fleet = FakeFleet(stateful(3, rolled_out(60, 1)))
    fleet.run_to(70)

    fleet.end(fleet.pod("web-0"))

    assert revisions(fleet) == "ba", "web-2 terminates"


def test_on_delete_pods_get_the_new_template_when_they_are_replaced():
    fleet = FakeFleet(stateful(2, rolled_out(60, 1), updates_on_delete=True))
    fleet.run_to(100)
    assert revisions(fleet) == "aa"

    fleet.end(fleet.pod("web-0"))

    assert revisions(fleet) == "ba"


MOVES = st.lists(
    st.tuples(st.sampled_from(["start", "lose", "evict", "wait"]), st.integers(0)), max_size=30
)
CHANGES = st.lists(
    st.tuples(st.integers(1, 200), st.booleans(), st.integers(0, 6)), max_size=5
).map(lambda steps: sorted(steps, key=lambda step: step[0]))


@settings(deadline=None)
@given(st.integers(0, 6), st.booleans(), CHANGES, MOVES)
@example(0, True, [(1, True, 1), (84, True, 0), (85, True, 1), (114, False, 1)], [])
def test_an_ordinal_has_one_pod_and_its_turn(replicas, is_parallel, steps, moves):
    changes = [
        scaled(at_s, number) if is_scaling else rolled_out(at_s, number % len(REVISIONS))
        for at_s, is_scaling, number in steps
    ]
    fleet = FakeFleet(stateful(replicas, *changes, is_parallel=is_parallel), starts=False)
    (core,) = fleet.controllers.cores

    for what, number in moves:
        fleet.run_to(fleet.now_us / SECOND_US + 1)
        created = len(fleet.created)
        running = {life.ordinal for life in fleet.available()}
        waiting = [each for each in fleet.active() if each.state is LifeState.PENDING]
        if what == "start" and waiting:
            running |= {waiting[number % len(waiting)].ordinal}
            fleet.start(waiting[number % len(waiting)])
        elif what == "lose" and fleet.available():
            fleet.end(fleet.available()[number % len(running)], ending=Ending.LOST)
        elif what == "evict" and fleet.available():
            fleet.evict(fleet.available()[number % len(running)])
        elif what == "wait":
            fleet.run_to(fleet.now_us / SECOND_US + number % 40)
        taken = [life.ordinal for life in fleet.pods.values()]
        assert len(set(taken)) == len(taken), "two pods have one ordinal"
        if not is_parallel:
            for life in fleet.created[created:]:
                assert set(range(life.ordinal)) <= running, f"{life.uid} is created too early"
            leaving = fleet.names(LifeState.TERMINATING)
            asked = [each for each in leaving if fleet.pod(each).ends_as is Ending.DELETED]
            assert len(asked) <= 1, "two pods are deleted at one time"

    fleet.starts = True
    fleet.start(*(each for each in fleet.active() if each.state is LifeState.PENDING))
    fleet.run_to(2_000)
    assert revisions(fleet) == dict(REVISIONS[core.template].facts.labels)["base"] * core.replicas
    assert ordinals(fleet) == list(range(core.replicas))
