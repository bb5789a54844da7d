"""Each transition of the attempts' table leads to its target; any other pair raises without a
change.
"""

from itertools import product

import pytest

from roadstead.attempts.pods import (
    AT_BINDER,
    ENDED,
    LIVE,
    TABLE,
    TRANSIENT,
    AttemptEvent,
    AttemptState,
    BindOutcome,
    BindResult,
)
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import error, unschedulable
from tests.attempts.core_world import WAIT, World
from tests.inside import store_of

S, E = AttemptState, AttemptEvent
ARROWS = list(TABLE)
ALLOWED = {(state, event) for state, event, _ in ARROWS}
FORBIDDEN = sorted(set(product(AttemptState, AttemptEvent)) - ALLOWED)
LASTING = [state for state in AttemptState if state not in TRANSIENT]
OUTCOMES = {
    E.COMMIT: BindOutcome.BOUND,
    E.REFUSE: BindOutcome.CONFLICT,
    E.BOUND_ELSEWHERE: BindOutcome.BOUND_ELSEWHERE,
    E.FAIL: BindOutcome.FAILED,
}
ENDS_WITH = {
    (S.ASSUMED, E.REJECT): ({"reserve": unschedulable("full")}, S.UNSCHEDULABLE),
    (S.ASSUMED, E.FAIL): ({"reserve": error("broken")}, S.FAILED),
    (S.ASSUMED, E.PARK): ({"permit": (WAIT, 5.0)}, S.WAITING),
    (S.ASSUMED, E.PERMIT): ({}, S.BINDING),
    (S.PERMITTED, E.FAIL): ({"pre_bind": error("broken")}, S.FAILED),
    (S.PERMITTED, E.BIND): ({}, S.BINDING),
}


def send(world, state, event):
    """Send an event to the core by its public method."""
    core = world.core
    if event is E.LEASE:
        core.lease(2, [world.pod(attempt=2)])
    elif event is E.DELETE:
        core.deleted(["u1"])
    elif event is E.ASK:
        core.timed_out(["s/1/1"])
    elif event is E.PERMIT:
        core.allow("u1", "A")
    elif state is S.LEASED:
        decisions = {E.PLACE: world.to_node(), E.REJECT: world.to_none(), E.FAIL: world.to_error()}
        core.decided([decisions[event]])
    elif state is S.WAITING:
        core.reject("u1", "A", "the gang is gone")
    elif state is S.ASSUMING:
        world.accept("s/1/1") if event is E.ACCEPT else world.refuse()
    else:
        world.answer(OUTCOMES[event])


def record_in(world, state):
    """The record of u1, put into the state by force where no call ends in it."""
    if state in TRANSIENT:
        world.bring_to(S.ASSUMING)
    else:
        world.bring_to(state)
    if state is S.NEW:
        return store_of(world.core).new(world.pod(), None, 0)
    record = store_of(world.core).pods.find("u1")
    record.state = state
    return record


@pytest.mark.parametrize(
    ("state", "event", "target"), [arrow for arrow in ARROWS if arrow[0] in LASTING]
)
def test_each_transition_of_the_table_leads_to_its_target(state, event, target):
    world = World().bring_to(state)
    send(world, state, event)
    through = {S.ASSUMED: S.BINDING, S.PERMITTED: S.BINDING}
    assert world.core.state_of("u1") is through.get(target, target)
    assert f"{event.value}→{target.value}" in store_of(world.core).pods.find("u1").history
    world.core.validate()


@pytest.mark.parametrize(
    ("state", "event", "target"), [arrow for arrow in ARROWS if arrow[0] in TRANSIENT]
)
def test_a_transition_from_a_passing_state_completes_within_one_call(state, event, target):
    answers, ends_in = ENDS_WITH[state, event]
    world = World(answers={"A": answers}).bring_to(S.ASSUMING)
    world.accept("s/1/1")
    assert world.core.state_of("u1") is ends_in
    assert f"{event.value}→{target.value}" in store_of(world.core).pods.find("u1").history
    world.core.validate()


@pytest.mark.parametrize(("state", "event"), FORBIDDEN)
def test_an_event_outside_the_table_raises_and_changes_nothing(state, event):
    world = World()
    record = record_in(world, state)
    before = world.picture()
    with pytest.raises(IllegalTransitionError, match=f"{event.value} is not allowed in state"):
        store_of(world.core).transition(record, event)
    assert world.picture() == before


def test_every_state_and_event_is_used_by_some_transition():
    assert {state for state, _, _ in ARROWS} == set(AttemptState)
    assert {target for _, _, target in ARROWS} == set(AttemptState) - {S.NEW}
    assert {event for _, event, _ in ARROWS} == set(AttemptEvent)


def test_every_state_is_new_live_passing_or_ended_and_only_one_of_these():
    assert sorted([S.NEW, *LIVE, *TRANSIENT, *ENDED]) == sorted(AttemptState)


def test_every_live_pod_can_be_leased_again_and_deleted():
    assert all(TABLE.allows(state, E.LEASE) and TABLE.allows(state, E.DELETE) for state in LIVE)


def test_only_the_binder_or_the_end_of_the_pod_ends_a_binding_attempt():
    ends = {event for state, event, target in ARROWS if state in AT_BINDER and target in ENDED}
    assert ends == {E.COMMIT, E.REFUSE, E.FAIL, E.BOUND_ELSEWHERE, E.DELETE}


def test_after_permit_a_pod_cannot_become_unschedulable():
    late = [state for state, _, target in ARROWS if target is S.UNSCHEDULABLE]
    assert sorted(late) == sorted([S.LEASED, S.ASSUMED, S.WAITING])


@pytest.mark.parametrize("state", [state for state in LASTING if state is not S.LEASED])
@pytest.mark.parametrize("to", ["node", "none", "error"])
def test_another_decision_on_a_decided_pod_raises_and_changes_nothing(state, to):
    world = World().bring_to(state)
    decision = {
        "node": world.to_node(node_name="n9"),
        "none": world.to_none(),
        "error": world.to_error(text="another"),
    }[to]
    before = world.picture()
    if (state, to) == (S.UNSCHEDULABLE, "none"):
        assert world.core.decided([decision]) == []
    else:
        with pytest.raises(IllegalTransitionError, match="is not allowed in state"):
            world.core.decided([decision])
    assert world.picture() == before


@pytest.mark.parametrize("outcome", BindOutcome)
@pytest.mark.parametrize("state", [S.ASSUMING, S.WAITING, S.CONFLICT])
def test_an_answer_on_an_attempt_outside_the_binder_raises_and_changes_nothing(state, outcome):
    world = World().bring_to(state)
    before = world.picture()
    with pytest.raises(IllegalTransitionError, match=f"not allowed in state {state.value}"):
        world.answer(outcome)
    assert world.picture() == before


@pytest.mark.parametrize("first", BindOutcome)
@pytest.mark.parametrize("second", BindOutcome)
def test_another_answer_of_the_binder_under_one_token_raises_and_changes_nothing(first, second):
    world = World().bring_to(S.BINDING)
    world.answer(first)
    before = world.picture()
    if first is second:
        assert world.answer(second) == []
    else:
        with pytest.raises(IllegalTransitionError, match=f"the binder answered {first.value}"):
            world.answer(second)
    assert world.picture() == before


def test_two_answers_under_one_token_in_a_batch_raise_and_change_nothing():
    world = World().bring_to(S.BINDING)
    before = world.picture()
    bound = BindResult("s/1/1", BindOutcome.BOUND, "n1")
    failed = BindResult("s/1/1", BindOutcome.FAILED)
    with pytest.raises(IllegalTransitionError, match="the binder answered bound n1 before"):
        world.core.bind_answered([bound, failed])
    assert world.picture() == before


def test_a_bind_to_another_node_than_requested_raises_and_changes_nothing():
    world = World().bring_to(S.BINDING)
    before = world.picture()
    with pytest.raises(IllegalTransitionError, match="bound to n2, sent to n1"):
        world.answer(BindOutcome.BOUND, node_name="n2")
    assert world.picture() == before


@pytest.mark.parametrize(
    "token", ["s/1/2", "s/1/0", "s/1/", "s/1/x", "s/2/1", "t/1/1", "1", "s/1/99999999", ""]
)
def test_an_unknown_token_raises_and_changes_nothing(token):
    world = World().bring_to(S.BINDING)
    before = world.picture()
    calls = {
        E.ACCEPT: lambda: world.core.assumed(["s/1/1", token], [], 0.0),
        E.REFUSE: lambda: world.core.assumed([], [(token, unschedulable("no"))], 0.0),
        E.COMMIT: lambda: world.answer(BindOutcome.BOUND, token),
        E.ASK: lambda: world.core.timed_out(["s/1/1", token]),
    }
    for event, call in calls.items():
        why = f"{event} is not allowed in state new .no attempt has this token"
        with pytest.raises(IllegalTransitionError, match=why):
            call()
    assert world.picture() == before


def test_one_illegal_decision_leaves_the_whole_batch_without_effect():
    world = World().bring_to(S.BINDING)
    world.lease("u2", lease_id=2)
    before = world.picture()
    with pytest.raises(IllegalTransitionError, match='"u1": reject is not allowed'):
        world.core.decided([world.to_node("u2"), world.to_none("u1")])
    assert world.picture() == before


def test_two_decisions_on_a_pod_in_a_batch_raise_and_change_nothing():
    world = World().bring_to(S.LEASED)
    before = world.picture()
    with pytest.raises(IllegalTransitionError, match="it is decided twice in a batch"):
        world.core.decided([world.to_node(), world.to_none()])
    assert world.picture() == before


def test_a_decision_on_an_attempt_that_was_never_leased_raises_and_changes_nothing():
    world = World().bring_to(S.LEASED)
    before = world.picture()
    with pytest.raises(IllegalTransitionError, match="attempt 2 was never leased"):
        world.core.decided([world.to_node(attempt=2)])
    assert world.picture() == before


def test_an_error_lists_the_last_ten_steps_of_the_pod_across_leases():
    world = World()
    for number in range(1, 6):
        world.lease(lease_id=number, attempt=number)
        world.refuse(*world.place(attempt=number))
    with pytest.raises(IllegalTransitionError) as caught:
        world.answer(BindOutcome.BOUND, "s/1/5")
    text = str(caught.value)
    assert text.startswith('attempt: "u1": commit is not allowed in state conflict; before it: ')
    assert text.endswith("lease→leased, place→assuming, refuse→conflict")
    assert text.count("→") == 10
