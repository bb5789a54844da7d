"""Every attempt that ends without a bind is undone in reverse and forgotten, and reported to the
queue.
"""

import pytest

from roadstead.attempts.commands import (
    Done,
    Forget,
    Nominate,
    PodReport,
    ReportKind,
    RequeueCause,
    RequeueItem,
    RequeuePods,
    SendReports,
)
from roadstead.attempts.pods import AttemptState, BindOutcome, BindResult
from roadstead.protocol.status import SKIP, SUCCESS, Code, Status, error, unschedulable
from tests.attempts.core_world import WAIT, World, kinds, only, tokens
from tests.builders import pod
from tests.inside import next_deadline_s

UNDONE = ["unreserve B u1", "unreserve A u1"]
BROKEN = RuntimeError("disk on fire")
PENDING = Status(Code.PENDING, ("the gang is not complete",))


def ended_by(answers):
    """The effects of an accepted assumption for which plugin A does not return Success."""
    world = World(answers={"A": answers})
    world.lease()
    return world, world.accept(*world.place())


def requeued(effects):
    (item,) = only(RequeuePods, effects).items
    return item


def reported(effects):
    (report,) = only(SendReports, effects).reports
    return report


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ({"reserve": unschedulable("full")}, ["reserve A u1"]),
        ({"permit": (unschedulable("full"), 0.0)}, ["reserve B u1", "permit A u1"]),
    ],
)
def test_a_refusal_up_to_permit_is_undone_and_makes_the_pod_unschedulable(answers, asked):
    world, effects = ended_by(answers)
    assert kinds(effects) == ["Forget", "RequeuePods", "SendReports"]
    assert tokens(Forget, effects) == ["s/1/1"]
    message = "0/1 nodes are available: 1 full."
    reason = RequeueCause.UNSCHEDULABLE
    assert requeued(effects) == RequeueItem("u1", reason, ("A",), (), message, "")
    kind = ReportKind.UNSCHEDULABLE
    assert reported(effects) == PodReport(
        "u1", "default/u1", kind, message, (("full", 1),), ("A",), nominated_node=""
    )
    assert world.log[-len(asked) - 2 :] == [*asked, *UNDONE]
    assert world.core.state_of("u1") is AttemptState.UNSCHEDULABLE


@pytest.mark.parametrize("answers", [{"reserve": PENDING}, {"permit": (PENDING, 0.0)}])
def test_a_plugin_that_returns_pending_is_named_as_pending(answers):
    item = requeued(ended_by(answers)[1])
    assert (item.rejected_by, item.pending) == (("A",), ("A",))


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"reserve": error("boom")}, 'running Reserve plugin "A": boom'),
        ({"reserve": BROKEN}, 'running Reserve plugin "A": RuntimeError: disk on fire'),
        ({"reserve": SKIP}, 'running Reserve plugin "A": Skip'),
        ({"permit": (error("boom"), 0.0)}, 'running Permit plugin "A": boom'),
        ({"permit": BROKEN}, 'running Permit plugin "A": RuntimeError: disk on fire'),
        ({"permit": None}, 'running Permit plugin "A": returned None, want a Status and seconds'),
        ({"pre_bind": error("boom")}, 'running PreBind plugin "A": boom'),
        ({"pre_bind": BROKEN}, 'running PreBind plugin "A": RuntimeError: disk on fire'),
        ({"bind": error("boom")}, 'running Bind plugin "A": boom'),
        ({"bind": BROKEN}, 'running Bind plugin "A": RuntimeError: disk on fire'),
        ({"bind": None}, 'running Bind plugin "A": returned None, want a Status'),
    ],
)
def test_a_failing_plugin_is_undone_and_the_pod_retried_after_backoff(answers, message):
    world, effects = ended_by(answers)
    assert kinds(effects) == ["Forget", "RequeuePods", "SendReports"]
    item, report = requeued(effects), reported(effects)
    assert item.message.startswith(message)
    assert (item.reason, item.rejected_by) == (RequeueCause.ERROR, ())
    assert (report.kind, report.message) == (ReportKind.FAILED, item.message)
    assert (report.plugins, report.nominated_node) == ((), "")
    assert world.log[-2:] == UNDONE
    assert world.core.state_of("u1") is AttemptState.FAILED


@pytest.mark.parametrize("point", ["pre_bind", "bind"])
def test_a_refusal_from_prebind_on_is_a_failure_that_names_its_plugin(point):
    world, effects = ended_by({point: unschedulable("the volume is elsewhere")})
    item = requeued(effects)
    assert item == RequeueItem(
        "u1", RequeueCause.ERROR, message="the volume is elsewhere", nominated_node=""
    )
    assert reported(effects).plugins == ("A",)
    assert world.log[-2:] == UNDONE


def test_a_pod_that_every_bind_plugin_skips_fails():
    world = World(answers={"A": {"bind": SKIP}, "B": {"bind": SKIP}})
    world.lease()
    effects = world.accept(*world.place())
    assert requeued(effects).message == "no Bind plugin took the pod"


def test_a_refused_pod_does_not_stop_the_others_of_its_batch():
    world = World(answers={"A": {("reserve", "u2"): unschedulable("full")}})
    world.lease("u1", "u2", "u3")
    effects = world.accept(*world.place("u1", "u2", "u3"))
    assert kinds(effects) == ["Forget", "FinishBinding", "Bind", "RequeuePods", "SendReports"]
    assert tokens(Forget, effects) == ["s/1/2"]
    assert effects[2].attempts[1].uid == "u3"


def test_a_raising_unreserve_is_reported_and_the_rest_is_undone():
    world = World(answers={"B": {"unreserve": BROKEN, "permit": (unschedulable("full"), 0.0)}})
    world.lease()
    effects = world.accept(*world.place())
    assert kinds(effects) == ["Forget", "RequeuePods", "SendReports"]
    assert [(one.kind, one.message) for one in only(SendReports, effects).reports] == [
        (ReportKind.WARNING, 'running Unreserve plugin "B": RuntimeError: disk on fire'),
        (ReportKind.UNSCHEDULABLE, "0/1 nodes are available: 1 full."),
    ]
    assert world.log[-2:] == UNDONE


def test_a_refused_assumption_returns_to_the_head_and_nothing_is_undone():
    world = World()
    world.lease()
    (token,) = world.place()
    effects = world.refuse(token, "held by t/1/1")
    item = RequeueItem("u1", RequeueCause.CONFLICT, (), (), "held by t/1/1", "")
    assert effects == [RequeuePods(1, (item,))]
    assert world.log == []


def test_a_bind_that_lost_a_race_is_undone_and_returns_to_the_head():
    world = World()
    world.binding()
    effects = world.answer(BindOutcome.CONFLICT, message="n1 is full")
    assert kinds(effects) == ["Forget", "RequeuePods"]
    reason = RequeueCause.CONFLICT
    assert requeued(effects) == RequeueItem("u1", reason, (), (), "n1 is full", "")
    assert world.log[-2:] == UNDONE


@pytest.mark.parametrize("refused_by", ["cache", "binder"])
def test_a_lost_race_ends_the_nomination_of_the_placed_pod(refused_by):
    """As upstream after each failed cycle: no room is reserved for the pod any more, and neither
    cache nor queue keeps a nominated node.
    """
    world = World()
    world.pod_class = world.classes.pod_class(pod(cpu=100, nominated_node_name="n1"))
    world.lease()
    (token,) = world.place()
    if refused_by == "cache":
        effects = world.refuse(token)
    else:
        world.accept(token)
        effects = world.answer(BindOutcome.CONFLICT)
    (nomination,) = only(Nominate, effects).nominations
    assert (nomination.uid, nomination.node_name, nomination.victims) == ("u1", "", ())
    assert requeued(effects).nominated_node == ""


def test_a_failed_bind_is_undone_and_retried_after_backoff():
    world = World()
    world.binding()
    effects = world.answer(BindOutcome.FAILED, message="halted")
    assert kinds(effects) == ["Forget", "RequeuePods", "SendReports"]
    assert requeued(effects) == RequeueItem(
        "u1", RequeueCause.ERROR, message="halted", nominated_node=""
    )
    assert world.log[-2:] == UNDONE


def test_a_pod_bound_by_another_attempt_is_undone_and_done_for_the_queue():
    world = World()
    world.binding()
    effects = world.answer(BindOutcome.BOUND_ELSEWHERE)
    assert kinds(effects) == ["Forget", "Done"]
    assert effects[1] == Done(1, ("u1",))
    assert world.log[-2:] == UNDONE


def test_a_pod_deleted_at_the_binder_is_undone_and_not_reported():
    world = World()
    world.binding()
    assert kinds(world.answer(BindOutcome.GONE)) == ["Forget"]
    assert world.log[-2:] == UNDONE


@pytest.mark.parametrize("state", [AttemptState.WAITING, AttemptState.BINDING, AttemptState.ASKED])
def test_a_deleted_pod_is_undone_and_not_requeued(state):
    world = World().bring_to(state)
    effects = world.core.deleted(["u1"])
    assert kinds(effects) == ["Forget"]
    assert world.log[-2:] == UNDONE
    assert world.core.idle
    assert next_deadline_s(world.core) is None


def test_a_pod_deleted_before_the_caches_answer_is_forgotten_without_unreserve():
    world = World().bring_to(AttemptState.ASSUMING)
    assert kinds(world.core.deleted(["u1"])) == ["Forget"]
    assert world.log == []


@pytest.mark.parametrize("state", [AttemptState.LEASED, AttemptState.BOUND])
def test_a_deleted_pod_without_reservations_has_no_effects(state):
    world = World().bring_to(state)
    world.log.clear()
    assert world.core.deleted(["u1"]) == []
    assert world.log == []
    assert world.core.state_of("u1") is AttemptState.GONE


def test_unknown_deleted_pods_are_ignored():
    world = World().bring_to(AttemptState.UNSCHEDULABLE)
    before = world.picture()
    assert world.core.deleted(["u1", "u7"]) == []
    assert world.picture() == before


def test_rows_are_freed_first_and_the_queue_is_informed_after_the_cache():
    answers = {("reserve", "v2"): unschedulable("full"), "reserve": SUCCESS}
    world = World(answers={"A": answers})
    world.binding("u1", "u2", "u3")
    world.lease("v1", "v2", lease_id=2)
    answers = [BindOutcome.BOUND, BindOutcome.FAILED, BindOutcome.CONFLICT]
    effects = world.core.bind_answered(
        [
            BindResult(f"s/1/{number}", outcome, "n1" if number == 1 else "")
            for number, outcome in enumerate(answers, 1)
        ]
    )
    assert kinds(effects) == ["Forget", "Confirm", "Done", "RequeuePods", "SendReports"]
    effects = world.accept(*world.place("v1", "v2"))
    assert kinds(effects) == ["Forget", "FinishBinding", "Bind", "RequeuePods", "SendReports"]


def test_a_waiting_pod_that_fails_after_it_was_allowed_is_undone():
    world = World(answers={"A": {"permit": (WAIT, 5.0), "pre_bind": error("boom")}})
    world.lease()
    world.accept(*world.place())
    effects = world.core.allow("u1", "A")
    assert kinds(effects) == ["Forget", "RequeuePods", "SendReports"]
    assert world.log[-2:] == UNDONE
