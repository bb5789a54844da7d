"""Copies, late answers and lost answers: nothing is done twice, and nothing is forgotten too
early.
"""

import pytest

from roadstead.attempts.commands import Assume, Bind, Done, Forget, RequeuePods, RetryBind
from roadstead.attempts.pods import TRANSIENT, AttemptState, BindOutcome, BindResult
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import unschedulable
from tests.attempts.core_world import World, kinds, only, tokens
from tests.builders import pod

LASTING = [
    state for state in AttemptState if state not in TRANSIENT and state is not AttemptState.NEW
]


@pytest.mark.parametrize("state", LASTING)
def test_a_copy_of_a_lease_changes_nothing(state):
    world = World().bring_to(state)
    before = world.picture()
    assert world.lease() == []
    assert world.picture() == before


@pytest.mark.parametrize(
    "state", [state for state in LASTING if state not in (AttemptState.LEASED, AttemptState.GONE)]
)
def test_a_copy_of_the_decision_changes_nothing(state):
    world = World().bring_to(state)
    decision = {
        AttemptState.UNSCHEDULABLE: world.to_none(),
        AttemptState.FAILED: world.to_error(),
    }.get(state, world.to_node())
    before = world.picture()
    world.log.clear()
    assert world.core.decided([decision, decision]) == []
    assert world.picture() == before
    assert world.log == []


def test_a_decision_repeated_in_a_batch_counts_once():
    world = World()
    world.lease()
    effects = world.core.decided([world.to_node(), world.to_node()])
    assert tokens(Assume, effects) == ["s/1/1"]


def test_an_answer_repeated_in_a_batch_counts_once():
    world = World()
    world.lease("u1", "u2")
    first, second = world.place("u1", "u2")
    refusal = (second, unschedulable("held"))
    effects = world.core.assumed([first, first], [refusal, refusal], 0.0)
    assert kinds(effects) == ["FinishBinding", "Bind", "RequeuePods"]
    assert len(only(RequeuePods, effects).items) == 1
    bound = BindResult(first, BindOutcome.BOUND, "n1")
    effects = world.core.bind_answered([bound, bound])
    assert effects[1] == Done(1, ("u1",))


@pytest.mark.parametrize(
    "state", [AttemptState.WAITING, AttemptState.BINDING, AttemptState.ASKED, AttemptState.BOUND]
)
def test_a_second_answer_of_the_cache_changes_nothing(state):
    world = World().bring_to(state)
    before = world.picture()
    assert world.accept("s/1/1") == []
    assert world.refuse("s/1/1", "it is added already") == []
    assert world.picture() == before


@pytest.mark.parametrize("state", [AttemptState.GONE, AttemptState.CONFLICT])
def test_an_assumption_accepted_after_its_attempt_ended_is_forgotten(state):
    world = World().bring_to(state)
    before = world.picture()
    assert world.refuse("s/1/1") == []
    assert kinds(world.accept("s/1/1")) == ["Forget"]
    assert tokens(Forget, world.accept("s/1/1", "s/1/1")) == ["s/1/1"]
    assert world.picture() == before
    assert world.log == []


def test_a_repeated_assumption_accepted_after_its_rollback_is_forgotten_again():
    world = World(answers={"A": {"reserve": unschedulable("full")}}).bring_to(AttemptState.ASSUMING)
    world.core.timed_out(["s/1/1"])
    assert tokens(Forget, world.accept("s/1/1")) == ["s/1/1"]
    assert kinds(world.accept("s/1/1")) == ["Forget"]
    assert world.log.count("reserve A u1") == 1


def test_a_late_answer_on_an_old_attempt_leaves_the_new_one_unchanged():
    world = World()
    world.lease()
    world.refuse(*world.place())
    world.lease(lease_id=2, attempt=2)
    (token,) = world.place(attempt=2)
    assert tokens(Forget, world.accept("s/1/1")) == ["s/1/1"]
    assert world.core.state_of("u1") is AttemptState.ASSUMING
    assert kinds(world.accept(token)) == ["FinishBinding", "Bind"]


def test_the_binders_answer_on_a_deleted_pod_is_ignored():
    world = World().bring_to(AttemptState.BINDING)
    world.core.deleted(["u1"])
    before = world.picture()
    assert world.answer(BindOutcome.BOUND) == []
    assert world.answer(BindOutcome.CONFLICT) == []
    assert world.picture() == before


def test_a_decision_on_a_deleted_pod_is_ignored():
    world = World()
    world.lease()
    world.core.deleted(["u1"])
    assert world.core.decided([world.to_node()]) == []
    assert world.core.state_of("u1") is AttemptState.GONE


def test_a_decision_on_an_older_attempt_is_ignored():
    world = World()
    world.lease()
    world.lease(lease_id=2, attempt=2)
    assert world.core.decided([world.to_node(attempt=1)]) == []
    assert [one.attempt for one in world.core.undecided(9)] == [2]


def test_a_pod_leased_again_before_its_decision_has_new_facts_and_the_same_position():
    world = World()
    world.lease("u1", "u2")
    world.pod_class = world.classes.pod_class(pod(cpu=700))
    world.lease("u1", lease_id=2, attempt=2)
    first, second = world.core.undecided(9)
    assert (first.uid, first.attempt, first.pod_class) == ("u1", 2, world.pod_class)
    assert second.uid == "u2"


@pytest.mark.parametrize(
    "state", [AttemptState.ASSUMING, AttemptState.WAITING, AttemptState.BINDING, AttemptState.ASKED]
)
def test_a_pod_leased_again_during_its_attempt_is_reported_under_the_new_lease(state):
    world = World().bring_to(state)
    assert world.lease(lease_id=5, attempt=2) == []
    assert world.core.state_of("u1") is state
    assert world.core.undecided(9) == ()
    if state is AttemptState.ASSUMING:
        world.accept("s/1/1")
    elif state is AttemptState.WAITING:
        world.core.allow("u1", "A")
    assert world.answer(BindOutcome.BOUND)[1] == Done(5, ("u1",))


def test_an_older_lease_that_arrives_later_changes_nothing():
    world = World()
    world.lease(lease_id=5, attempt=2)
    before = world.picture()
    assert world.lease(lease_id=4, attempt=1) == []
    assert world.picture() == before


def test_a_bound_pod_leased_again_is_reported_done_again():
    world = World().bring_to(AttemptState.BOUND)
    assert world.lease(lease_id=2, attempt=2) == [Done(2, ("u1",))]
    assert world.lease(lease_id=2, attempt=2) == []
    assert world.core.idle


def test_a_pod_without_a_profile_raises_and_changes_nothing():
    world = World()
    before = world.picture()
    unscheduled = world.pod("u2")
    unscheduled = unscheduled._replace(
        pod_class=world.classes.pod_class(pod(scheduler_name="other"))
    )
    with pytest.raises(KeyError, match="other"):
        world.core.lease(1, [world.pod(), unscheduled])
    assert world.picture() == before


def test_a_lost_assumption_is_repeated_under_its_token():
    world = World().bring_to(AttemptState.ASSUMING)
    effects = world.core.timed_out(["s/1/1", "s/1/1"])
    assert kinds(effects) == ["Assume"]
    assert tokens(Assume, effects) == ["s/1/1"]
    assert world.core.state_of("u1") is AttemptState.ASSUMING


def test_a_lost_bind_is_queried_and_nothing_is_undone_before_the_answer():
    world = World().bring_to(AttemptState.BINDING)
    world.log.clear()
    for _ in range(2):
        effects = world.core.timed_out(["s/1/1"])
        assert kinds(effects) == ["RetryBind"]
        assert only(RetryBind, effects).attempts == world.core.attempts()
    assert world.core.state_of("u1") is AttemptState.ASKED
    assert world.log == []
    assert kinds(world.answer(BindOutcome.BOUND)) == ["Confirm", "Done"]


@pytest.mark.parametrize(
    ("outcome", "outcome_token"),
    [
        (BindOutcome.CONFLICT, ["Forget", "RequeuePods"]),
        (BindOutcome.FAILED, ["Forget", "RequeuePods", "SendReports"]),
        (BindOutcome.BOUND_ELSEWHERE, ["Forget", "Done"]),
        (BindOutcome.GONE, ["Forget"]),
    ],
)
def test_an_answer_to_a_query_ends_the_attempt_like_any_answer(outcome, outcome_token):
    world = World().bring_to(AttemptState.ASKED)
    assert kinds(world.answer(outcome)) == outcome_token


@pytest.mark.parametrize("state", [AttemptState.WAITING, AttemptState.BOUND, AttemptState.CONFLICT])
def test_a_lost_answer_that_arrived_meanwhile_needs_no_query(state):
    world = World().bring_to(state)
    before = world.picture()
    assert world.core.timed_out(["s/1/1"]) == []
    assert world.picture() == before


def test_plugin_decisions_on_a_forgotten_attempt_change_nothing():
    world = World(max_remembered=2)
    for number in range(1, 4):
        uid = f"u{number}"
        world.lease(uid, lease_id=number)
        world.refuse(*world.place(uid))
    before = world.picture()
    assert world.accept("s/1/1") == []
    assert world.refuse("s/1/1") == []
    assert world.answer(BindOutcome.FAILED) == []
    assert world.core.timed_out(["s/1/1"]) == []
    assert world.picture() == before
    assert world.core.state_of("u1") is AttemptState.NEW
    world.core.validate()


def test_a_plugin_decision_on_a_forgotten_attempt_does_not_stop_later_ones():
    world = World(max_remembered=0)
    world.lease("u1", "u2")
    old, new = world.place("u1", "u2")
    world.refuse(old)
    assert tokens(Bind, world.accept(old, new)) == [new]
    assert tokens(RetryBind, world.core.timed_out([old, new])) == [new]
    bound = [BindResult(token, BindOutcome.BOUND, "n1") for token in (old, new)]
    assert kinds(world.core.bind_answered(bound)) == ["Confirm", "Done"]


def test_a_decision_on_a_pod_that_was_never_leased_raises():
    with pytest.raises(IllegalTransitionError, match=r'"u1": place .* state new; before it: noth'):
        World().core.decided([World().to_node()])


def test_a_deleted_pod_added_again_under_its_uid_is_a_new_pod():
    world = World().bring_to(AttemptState.BOUND)
    world.core.deleted(["u1"])
    assert world.lease(lease_id=2, attempt=1) == []
    assert world.place() == ["s/1/2"]
