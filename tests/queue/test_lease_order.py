"""The order of leases: no pod starves (I11), and gangs are not split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.pod import GroupMembership, PodIdentity
from roadstead.queue import QueueCore, QueueSettings, QueueState, Requeue, RequeueReason, containers
from roadstead.queue.pods import PodEntry
from tests.builders import pod
from tests.inside import objects_in, store_of

BOUND = 5
CONFLICT, ERROR = RequeueReason.CONFLICT, RequeueReason.ERROR


class World:
    """A queue with a small bound; by default one scheduler leases one pod at a time."""

    def __init__(self, **settings):
        self.core = QueueCore(settings=QueueSettings(max_bypasses=BOUND, **settings))
        self.leases = {}

    def add(self, *names, **facts):
        pods = [(PodIdentity(name, "default", name), pod(**facts)) for name in names]
        self.core.add(pods, 0.0)
        return self

    def lease(self, count=1, owner="s", profile=""):
        batch = self.core.lease(owner, 1, count, 0.0, profile)
        names = [each.identity.name for each in batch.pods]
        self.leases |= dict.fromkeys(names, batch.lease_id)
        self.core.validate()
        return names

    def back(self, name, reason=CONFLICT):
        self.core.requeue(self.leases[name], [Requeue(name, reason)], 0.0)
        self.core.validate()


def order_in(world):
    active = store_of(world.core).active
    return active.order_of(next(iter(active.heap)))


def arrivals_in(world):
    """Return the UIDs of the arrival list, which has pairs of a number and a pod."""
    active = store_of(world.core).active
    pairs = [each for each in objects_in(order_in(world), tuple) if len(each) == 2]
    uids = [each.uid for _, each in pairs if isinstance(each, PodEntry)]
    for each in active.heap:
        # The heap has such a pair for each of its pods.
        uids.remove(each.uid)
    return uids


def test_a_pod_that_always_loses_races_finally_lets_others_pass():
    world = World().add("loser", priority=100).add("waits")
    leased = []

    while "waits" not in leased:
        (name,) = world.lease()
        leased.append(name)
        if name == "loser":
            world.back("loser")

    # Its first attempt is exempt from the bound.
    assert leased == ["loser"] * (1 + BOUND) + ["waits"]


def test_first_attempts_are_ordered_by_priority_however_many():
    world = World().add("low").add(*(f"h{number}" for number in range(3 * BOUND)), priority=1)

    leased = [name for _ in range(3 * BOUND) for name in world.lease()]

    assert "low" not in leased


def test_the_longest_waiting_pod_is_first_when_several_were_bypassed_too_often():
    world = World().add("loser", priority=100).add("first").add("second", priority=1)
    for _ in range(1 + BOUND):
        assert world.lease() == ["loser"]
        world.back("loser")

    assert [world.lease(), world.lease(), world.lease()] == [["first"], ["second"], ["loser"]]


def test_an_update_of_a_pod_in_active_q_keeps_its_turn():
    world = World().add("loser", priority=100).add("waits").add("later")
    leased = []

    while len(leased) < 1 + BOUND:
        leased += world.lease()
        world.back("loser")
        world.add("waits", labels={"seen": str(len(leased))})

    assert [world.lease(), world.lease()] == [["waits"], ["later"]]


def test_a_pod_deleted_and_added_again_waits_from_the_start():
    world = World().add("loser", priority=100).add("waits").add("later")
    assert world.lease() == ["loser"]
    world.back("loser")
    world.core.delete(["waits"])
    world.add("waits")

    leased = ["loser"]
    while leased[-1] == "loser":
        leased += world.lease()
        if leased[-1] == "loser":
            world.back("loser")

    assert leased == ["loser"] * (1 + BOUND) + ["later"]


def test_a_pod_that_changes_its_profile_waits_for_its_turn_there():
    world = World(by_profile=True).add("loser", priority=100, scheduler_name="b")
    world.add("waits").add("other", scheduler_name="b")
    assert world.lease(profile="b") == ["loser"]
    world.back("loser")

    world.add("waits", scheduler_name="b")

    leased = []
    while "waits" not in leased:
        leased += world.lease(profile="b")
        if leased[-1] == "loser":
            world.back("loser")
    assert leased == ["loser"] * BOUND + ["other", "waits"]


def test_the_longest_waiting_pod_bypasses_no_other():
    world = World().add("loser")
    for _ in range(2 * BOUND):
        assert world.lease() == ["loser"]
        world.back("loser")
    world.add("late")

    assert order_in(world).bypasses == 0
    assert world.lease() == ["loser"]


def test_a_pod_of_another_profile_is_not_leased_however_long_it_waited():
    world = World(by_profile=True).add("other", scheduler_name="b")
    world.add("loser", scheduler_name="a")

    for _ in range(3 * BOUND):
        assert world.lease(profile="a") == ["loser"]
        world.core.requeue(world.leases["loser"], [Requeue("loser", CONFLICT)], 0.0)

    assert world.lease(profile="b") == ["other"]


GANG = {"pod_group": GroupMembership("g", 2)}


def test_a_pod_whose_gang_another_scheduler_leases_waits_for_it():
    world = World().add("a", "b", **GANG).add("plain")
    assert world.lease(owner="one") == ["a"]

    assert world.lease(3, owner="two") == ["plain"]
    assert world.lease(3, owner="one") == ["b"]


def test_it_waits_while_a_pod_without_a_gang_is_leased():
    world = World().add("a", **GANG)
    assert world.lease(owner="one") == ["a"]
    world.add("plain").add("b", **GANG)

    assert world.lease(3, owner="two") == ["plain"]
    assert world.lease(3, owner="one") == ["b"]


def test_it_is_leased_when_the_others_are_returned():
    world = World().add("a", "b", **GANG)
    world.lease(owner="one")
    assert world.lease(owner="two") == []
    world.back("a")

    assert world.lease(2, owner="two") == ["a", "b"]


def test_pods_in_backoff_wait_for_their_gang_too():
    world = World().add("a", "b", **GANG)
    world.lease(2, owner="one")
    back = Requeue("b", RequeueReason.UNSCHEDULABLE, ("P",))
    world.core.requeue(world.leases["b"], [back], 0.0)
    world.core.move([object()], 0.0)
    assert world.core.state_of("b") is QueueState.BACKOFF

    assert world.lease(owner="two") == []
    assert world.lease(owner="one") == ["b"]
    assert world.core.state_of("b") is QueueState.IN_FLIGHT


def test_a_skipped_pod_keeps_its_position():
    world = World().add("a", "b", "c", **GANG).add("plain")
    assert world.lease(owner="one") == ["a"]
    for _ in range(3):
        assert world.lease(owner="two") in (["plain"], [])

    assert order_in(world).oldest().uid == "b"
    assert world.lease(3, owner="one") == ["b", "c"]


def test_a_pod_skipped_for_its_gang_is_first_when_it_may_be_leased():
    world = World().add("a", "b", **GANG).add("loser", priority=100)
    assert world.lease(2, owner="two") == ["loser", "a"]
    world.back("loser")
    for _ in range(2 * BOUND):
        assert world.lease(owner="one") == ["loser"]
        world.back("loser")

    assert [world.lease(owner="two") for _ in range(2)] == [["b"], ["loser"]]


def test_a_leased_pod_leaves_the_arrival_list():
    world = World().add("a", "b", "c")
    world.lease(2)

    assert arrivals_in(world) == ["c"]


def test_the_arrival_list_stays_small(monkeypatch):
    monkeypatch.setattr(containers, "SLACK", 4)
    world = World().add("waits")
    for _ in range(50):
        world.add("loser")
        world.lease(2)
        world.back("loser")
        world.back("waits")

    assert len(arrivals_in(world)) <= 2 * 2 + 4


def test_the_arrival_list_stays_small_after_a_waiting_pod(monkeypatch):
    monkeypatch.setattr(containers, "SLACK", 4)
    world = World().add("waits")
    for number in range(50):
        world.add(f"p{number}", priority=1)
        assert world.lease() == [f"p{number}"]

    assert len(arrivals_in(world)) <= 2 * 2 + 4


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("ltb"), st.integers(0, 2)), max_size=80)
)
def test_no_pod_is_bypassed_more_often_than_allowed(steps):
    world = World()
    for number, what, priority in steps:
        name = f"p{number}"
        if what == "l":
            world.lease(1 + priority, owner=f"s{number % 2}")
        elif what == "t":
            gang = GANG if priority == 2 else {}
            world.add(name, priority=priority, **gang)
        elif world.core.state_of(name) is QueueState.IN_FLIGHT:
            world.back(name)
        world.core.validate()
        assert all(
            order_in(world).bypasses_of(each) <= BOUND for each in store_of(world.core).active.heap
        )


def test_a_broken_bound_is_found():
    world = World().add("a")
    order_in(world).bypasses = BOUND + 1

    with pytest.raises(AssertionError, match="a was bypassed 6 times"):
        world.core.validate()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 7), st.integers(0, 2), st.sampled_from(["", "g"])),
        st.tuples(st.just("lease"), st.integers(1, 9), st.sampled_from(["s", "t"])),
        st.tuples(st.just("back"), st.integers(0, 9)),
    ),
    max_size=25,
)


@given(steps)
def test_a_batch_lease_equals_single_leases(has_reason):
    many, single = World(), World()
    leased: list[str] = []
    count = 0
    for what, *more in has_reason:
        if what == "add":
            number, priority, group = more
            names = [f"p{count + each}" for each in range(number)]
            count += number
            gang = {"pod_group": GroupMembership(group, 1)} if group else {}
            for world in (many, single):
                world.add(*names, priority=priority, **gang)
        elif what == "lease":
            found = many.lease(more[0], more[1])
            assert found == [name for _ in range(more[0]) for name in single.lease(1, more[1])]
            leased += found
        elif leased:
            name = leased.pop(more[0] % len(leased))
            for world in (many, single):
                world.back(name)
