"""Pods that wait for Permit: allowed by every plugin, rejected by one, or timed out."""

import math

import pytest

from roadstead.attempts.commands import (
    Bind,
    PodReport,
    ReportKind,
    RequeueCause,
    RequeuePods,
    SendReports,
)
from roadstead.attempts.pods import TRANSIENT, AttemptState
from roadstead.protocol.status import unschedulable
from tests.attempts.core_world import WAIT, World, kinds, only, tokens
from tests.inside import next_deadline_s

NOT_WAITING = [state for state in AttemptState if state not in (*TRANSIENT, AttemptState.WAITING)]
UNDONE = ["unreserve B u1", "unreserve A u1"]


def waiting(a=10.0, b=None, now_s=100.0):
    """A world in which u1 waits: for A, and for B where it has a timeout."""
    answers = {"A": {"permit": (WAIT, a)}} | ({} if b is None else {"B": {"permit": (WAIT, b)}})
    world = World(answers=answers)
    world.lease()
    assert world.accept(*world.place(), now_s=now_s) == []
    assert world.core.state_of("u1") is AttemptState.WAITING
    return world


def message_of(effects):
    (report,) = only(SendReports, effects).reports
    return report.message


def test_a_waiting_pod_keeps_its_reservation_and_does_not_proceed():
    world = waiting()
    assert world.log == ["reserve A u1", "reserve B u1", "permit A u1", "permit B u1"]
    assert [one.token for one in world.core.attempts()] == ["s/1/1"]


def test_an_allowed_pod_reaches_the_binder():
    world = waiting()
    effects = world.core.allow("u1", "A")
    assert kinds(effects) == ["FinishBinding", "Bind"]
    assert tokens(Bind, effects) == ["s/1/1"]
    assert world.log[-3:] == ["pre_bind A u1", "pre_bind B u1", "bind A u1"]
    assert next_deadline_s(world.core) is None


def test_a_pod_waits_until_every_plugin_allows_it():
    world = waiting(10.0, 20.0)
    assert world.core.allow("u1", "A") == []
    assert world.core.state_of("u1") is AttemptState.WAITING
    assert kinds(world.core.allow("u1", "B")) == ["FinishBinding", "Bind"]


def test_the_deadline_is_the_earliest_of_the_remaining_ones():
    world = waiting(10.0, 20.0)
    assert next_deadline_s(world.core) == 110.0
    world.core.allow("u1", "A")
    assert next_deadline_s(world.core) == 120.0
    assert world.core.tick(119.9) == []
    assert message_of(world.core.tick(120.0)).endswith("waiting 20s at plugin B.")


def test_a_rejected_pod_is_undone_and_unschedulable_by_the_rejecting_plugin():
    world = waiting(10.0, 20.0)
    effects = world.core.reject("u1", "Gang", "a member is gone")
    assert kinds(effects) == ["Forget", "RequeuePods", "SendReports"]
    (item,) = only(RequeuePods, effects).items
    assert (item.reason, item.rejected_by) == (RequeueCause.UNSCHEDULABLE, ("Gang",))
    message = "0/1 nodes are available: 1 a member is gone."
    assert only(SendReports, effects).reports == (
        PodReport(
            "u1",
            "default/u1",
            ReportKind.UNSCHEDULABLE,
            message,
            (("a member is gone", 1),),
            ("Gang",),
            nominated_node="",
        ),
    )
    assert world.log[-2:] == UNDONE
    assert next_deadline_s(world.core) is None


@pytest.mark.parametrize(
    ("wait_s", "waited"),
    [
        (10.0, "10s"),
        (90.0, "1m30s"),
        (0.25, "250ms"),
        (3600.0, "15m0s"),
        (math.inf, "15m0s"),
        (0.0, "0s"),
        (-5.0, "0s"),
        (math.nan, "0s"),
    ],
)
def test_a_timeout_rejects_in_the_name_of_its_plugin(wait_s, waited):
    world = waiting(wait_s)
    effects = world.core.tick(100.0 + 900.0)
    text = f"rejected due to timeout after waiting {waited} at plugin A"
    assert message_of(effects) == f"0/1 nodes are available: 1 {text}."
    (item,) = only(RequeuePods, effects).items
    assert (item.reason, item.rejected_by) == (RequeueCause.UNSCHEDULABLE, ("A",))
    assert world.log[-2:] == UNDONE


def test_a_pod_is_rejected_at_its_deadline_and_not_before():
    world = waiting(10.0)
    assert world.core.tick(109.999) == []
    assert kinds(world.core.tick(110.0)) == ["Forget", "RequeuePods", "SendReports"]
    assert world.core.tick(111.0) == []


def test_timed_out_pods_are_rejected_in_the_order_of_their_deadlines():
    answers = {("permit", f"u{n}"): (WAIT, wait_s) for n, wait_s in enumerate([9.0, 3.0, 6.0, 3.0])}
    world = World(answers={"A": answers})
    uids = ["u0", "u1", "u2", "u3"]
    world.lease(*uids)
    world.accept(*world.place(*uids))
    effects = world.core.tick(6.0)
    assert [one.uid for one in only(RequeuePods, effects).items] == ["u1", "u3", "u2"]
    assert next_deadline_s(world.core) == 9.0


def test_a_refusal_of_a_later_plugin_ends_the_wait_for_an_earlier_one():
    answers = {"A": {"permit": (WAIT, 5.0)}, "B": {"permit": (unschedulable("no"), 0.0)}}
    world = World(answers=answers)
    world.lease()
    assert kinds(world.accept(*world.place())) == ["Forget", "RequeuePods", "SendReports"]
    assert next_deadline_s(world.core) is None


@pytest.mark.parametrize("state", NOT_WAITING)
def test_a_permit_decision_on_a_pod_that_does_not_wait_changes_nothing(state):
    world = World().bring_to(state)
    before = world.picture()
    assert world.core.allow("u1", "A") == []
    assert world.core.reject("u1", "A", "no") == []
    assert world.core.tick(1e9) == []
    assert world.picture() == before


def test_a_pod_keeps_waiting_if_another_plugin_allows_it():
    world = waiting()
    before = world.picture()
    assert world.core.allow("u1", "B") == []
    assert world.picture() == before


def test_allow_and_reject_may_be_repeated():
    world = waiting(10.0, 20.0)
    world.core.allow("u1", "A")
    before = world.picture()
    assert world.core.allow("u1", "A") == []
    assert world.picture() == before
    world.core.reject("u1", "B", "no")
    assert world.core.reject("u1", "B", "no") == []


def test_the_plugin_with_the_earlier_deadline_rejects():
    world = waiting(20.0, 10.0)
    assert message_of(world.core.tick(500.0)).endswith("waiting 10s at plugin B.")
