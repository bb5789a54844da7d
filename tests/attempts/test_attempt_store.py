"""validate() finds what must never be; each case breaks one thing by force."""

import pytest

from roadstead.attempts.pods import PodState
from tests.attempts.core_world import World


def live(world):
    return world.core._store.pods.here["u1"]


def under_another_name(world):
    store = world.core._store
    store.pods.here["u9"] = store.pods.here.pop("u1")


def ended_and_live(world):
    live(world).state = PodState.FAILED


def in_a_passing_state(world):
    live(world).state = PodState.PERMITTED


def decided_and_undecided(world):
    live(world).state = PodState.ASSUMING


def undecided_twice(world):
    world.core._store.undecided["u9"] = live(world)


def waits_without_deadline(world):
    world.core._store.waiting.take("u1")


def waits_for_nobody(world):
    live(world).waits = {}


def deadline_of_nobody(world):
    world.core._store.waiting.put("u9", (1.0,), 9, live(world))


def answered_and_live(world):
    live(world).answer = "bound"


def attempt_of_nobody(world):
    world.core._store.attempts["s/1/9"] = live(world)


def attempt_lost(world):
    world.core._store.attempts.clear()


def lease_of_nobody(world):
    world.core._store.pods.begun += 1


def live_and_remembered(world):
    world.core._store.pods.ended["u1"] = live(world)


def attempt_live_and_remembered(world):
    world.core._store.ended_attempts["s/1/1"] = live(world)


BROKEN = [
    (PodState.LEASED, under_another_name, "u1 under u9"),
    (PodState.LEASED, ended_and_live, "u1 is here as failed"),
    (PodState.BINDING, in_a_passing_state, "u1 is live and permitted"),
    (PodState.LEASED, decided_and_undecided, "u1: decided"),
    (PodState.LEASED, undecided_twice, "a pod waits for a decision and is not leased"),
    (PodState.WAITING, waits_without_deadline, "u1: waiting"),
    (PodState.WAITING, waits_for_nobody, "u1: waiting"),
    (PodState.WAITING, deadline_of_nobody, "a pod that does not wait has a deadline"),
    (PodState.BINDING, answered_and_live, "u1 is live and answered"),
    (PodState.BINDING, attempt_of_nobody, "attempts and pods disagree"),
    (PodState.ASKED, attempt_lost, "attempts and pods disagree"),
    (PodState.LEASED, lease_of_nobody, "of 2 pods 1 are here"),
    (PodState.LEASED, live_and_remembered, "a pod is here and ended"),
    (PodState.BINDING, attempt_live_and_remembered, "an attempt is both"),
]


@pytest.mark.parametrize(("state", "break_it", "text"), BROKEN)
def test_validate_finds_a_pod_that_is_not_where_it_says(state, break_it, text):
    world = World().bring_to(state)
    world.core.validate()
    break_it(world)
    with pytest.raises(AssertionError, match=text):
        world.core.validate()


def test_validate_finds_two_pods_with_one_token():
    world = World()
    world.lease("u1", "u2")
    world.place("u1", "u2")
    first, second = world.core._store.pods.here.values()
    second.attempt = first.attempt
    world.core._store.attempts = {"s/1/1": second}
    with pytest.raises(AssertionError, match="two pods have one token"):
        world.core.validate()


def test_validate_finds_a_pod_that_is_remembered_as_living():
    world = World().bring_to(PodState.FAILED)
    world.core._store.pods.ended["u1"].state = PodState.WAITING
    with pytest.raises(AssertionError, match="u1 ended as waiting"):
        world.core.validate()


def test_validate_finds_a_bound_pod_that_nobody_bound():
    world = World().bring_to(PodState.BOUND)
    world.core._store.pods.ended["u1"].answer = None
    with pytest.raises(AssertionError, match="u1 is bound, and the binder did not say so"):
        world.core.validate()


@pytest.mark.parametrize(
    ("state", "text"), [(PodState.FAILED, "too many pods"), (PodState.CONFLICT, "too many attem")]
)
def test_validate_finds_a_memory_that_outgrew_its_bound(state, text):
    world = World().bring_to(state)
    if state is PodState.CONFLICT:
        world.core._store.pods.ended.clear()
    world.core._store.pods.max_ended = 0
    with pytest.raises(AssertionError, match=text):
        world.core.validate()


def test_attempt_of_a_pod_that_was_never_placed_is_a_broken_invariant():
    world = World().bring_to(PodState.LEASED)
    with pytest.raises(AssertionError, match="u1 was never placed"):
        _ = live(world).placed_attempt


def test_memory_keeps_the_last_pods_and_attempts():
    world = World(max_remembered=2)
    for number, uid in enumerate(["u1", "u2", "u3"], 1):
        world.lease(uid, lease_id=number)
        world.refuse(*world.place(uid))
    store = world.core._store
    assert list(store.pods.ended) == ["u2", "u3"]
    assert list(store.ended_attempts) == ["s/1/2", "s/1/3"]
    world.core.validate()
