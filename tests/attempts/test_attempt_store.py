"""validate() finds invalid states; each case breaks one thing by force."""

import pytest

from roadstead.attempts.pods import AttemptState
from tests.attempts.core_world import World
from tests.inside import store_of


def live(world):
    return store_of(world.core).pods.present["u1"]


def under_another_name(world):
    store = store_of(world.core)
    store.pods.present["u9"] = store.pods.present.pop("u1")


def ended_and_live(world):
    live(world).state = AttemptState.FAILED


def in_a_passing_state(world):
    live(world).state = AttemptState.PERMITTED


def decided_and_undecided(world):
    live(world).state = AttemptState.ASSUMING


def undecided_twice(world):
    store_of(world.core).undecided["u9"] = live(world)


def waits_without_deadline(world):
    store_of(world.core).waiting.remove("u1")


def waits_for_nobody(world):
    live(world).waits = {}


def deadline_of_nobody(world):
    store_of(world.core).waiting.put("u9", (1.0,), 9, live(world))


def answered_and_live(world):
    live(world).answer = "bound"


def attempt_of_nobody(world):
    store_of(world.core).attempts["s/1/9"] = live(world)


def attempt_lost(world):
    store_of(world.core).attempts.clear()


def lease_of_nobody(world):
    store_of(world.core).pods.begun += 1


def live_and_remembered(world):
    store_of(world.core).pods.ended["u1"] = live(world)


def attempt_live_and_remembered(world):
    store_of(world.core).ended_attempts["s/1/1"] = live(world)


BROKEN = [
    (AttemptState.LEASED, under_another_name, "u1 under u9"),
    (AttemptState.LEASED, ended_and_live, "u1 is present as failed"),
    (AttemptState.BINDING, in_a_passing_state, "u1 is live and permitted"),
    (AttemptState.LEASED, decided_and_undecided, "u1: decided"),
    (AttemptState.LEASED, undecided_twice, "a pod waits for a decision and is not leased"),
    (AttemptState.WAITING, waits_without_deadline, "u1: waiting"),
    (AttemptState.WAITING, waits_for_nobody, "u1: waiting"),
    (AttemptState.WAITING, deadline_of_nobody, "a pod that does not wait has a deadline"),
    (AttemptState.BINDING, answered_and_live, "u1 is live and answered"),
    (AttemptState.BINDING, attempt_of_nobody, "attempts and pods disagree"),
    (AttemptState.ASKED, attempt_lost, "attempts and pods disagree"),
    (AttemptState.LEASED, lease_of_nobody, "of 2 pods 1 are present"),
    (AttemptState.LEASED, live_and_remembered, "a pod is present and ended"),
    (AttemptState.BINDING, attempt_live_and_remembered, "an attempt is live and ended"),
]


@pytest.mark.parametrize(("state", "break_it", "text"), BROKEN)
def test_validate_finds_a_pod_outside_its_own_state(state, break_it, text):
    world = World().bring_to(state)
    world.core.validate()
    break_it(world)
    with pytest.raises(AssertionError, match=text):
        world.core.validate()


def test_validate_finds_two_pods_with_one_token():
    world = World()
    world.lease("u1", "u2")
    world.place("u1", "u2")
    first, second = store_of(world.core).pods.present.values()
    second.attempt = first.attempt
    store_of(world.core).attempts = {"s/1/1": second}
    with pytest.raises(AssertionError, match="two pods have one token"):
        world.core.validate()


def test_validate_finds_a_live_pod_among_the_remembered_ones():
    world = World().bring_to(AttemptState.FAILED)
    store_of(world.core).pods.ended["u1"].state = AttemptState.WAITING
    with pytest.raises(AssertionError, match="u1 ended as waiting"):
        world.core.validate()


def test_validate_finds_a_bound_pod_without_a_bind():
    world = World().bring_to(AttemptState.BOUND)
    store_of(world.core).pods.ended["u1"].answer = None
    with pytest.raises(AssertionError, match="u1 is bound, and the binder did not report it"):
        world.core.validate()


@pytest.mark.parametrize(
    ("state", "text"),
    [(AttemptState.FAILED, "too many pods"), (AttemptState.CONFLICT, "too many attem")],
)
def test_validate_finds_a_memory_beyond_its_bound(state, text):
    world = World().bring_to(state)
    if state is AttemptState.CONFLICT:
        store_of(world.core).pods.ended.clear()
    store_of(world.core).pods.max_ended = 0
    with pytest.raises(AssertionError, match=text):
        world.core.validate()


def test_an_attempt_of_a_pod_that_was_never_placed_is_a_broken_invariant():
    world = World().bring_to(AttemptState.LEASED)
    with pytest.raises(AssertionError, match="u1 was never placed"):
        _ = live(world).placed_attempt


def test_memory_keeps_the_last_pods_and_attempts():
    world = World(max_remembered=2)
    for number, uid in enumerate(["u1", "u2", "u3"], 1):
        world.lease(uid, lease_id=number)
        world.refuse(*world.place(uid))
    store = store_of(world.core)
    assert list(store.pods.ended) == ["u2", "u3"]
    assert list(store.ended_attempts) == ["s/1/2", "s/1/3"]
    world.core.validate()
