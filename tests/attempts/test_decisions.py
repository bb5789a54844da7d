"""Decisions without a node: PostFilter, the message of the report, and the report to the queue."""

import pytest

from roadstead.attempts.commands import (
    Nominate,
    PodReport,
    ReportKind,
    RequeueCause,
    RequeueItem,
    RequeuePods,
    SendReports,
)
from roadstead.attempts.pods import AttemptState
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.victims import Candidate, Victim
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SUCCESS, Code, Status, error, unschedulable
from tests.attempts.core_world import World, kinds, only, too_small

TAINTED = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("tainted", "cold"), "TaintToleration")
UNSCHEDULABLE = RequeueCause.UNSCHEDULABLE


def undecided_pod(diagnosis=None, **world):
    """The world, and the effects of a decision that u1 fits on no node."""
    world = World(plugins=("A",), **world)
    world.lease()
    return world, world.core.decided([world.to_none(diagnosis=diagnosis)])


def post_filter_returns(found):
    return {"answers": {"A": {"post_filter": found}}}


def report_of(effects):
    (report,) = only(SendReports, effects).reports
    return report


def item_of(effects):
    (item,) = only(RequeuePods, effects).items
    return item


def test_a_pod_without_a_node_is_requeued_with_upstreams_message():
    diagnosis = too_small(3)
    diagnosis.add(TAINTED, 2)
    diagnosis.node_count = 5
    world, effects = undecided_pod(diagnosis)
    message = "0/5 nodes are available: 2 cold, 2 tainted, 3 Insufficient cpu. nobody to evict"
    plugins = ("NodeResourcesFit", "TaintToleration")
    reasons = (("Insufficient cpu", 3), ("cold", 2), ("tainted", 2))
    assert effects == [
        RequeuePods(1, (RequeueItem("u1", UNSCHEDULABLE, plugins, (), message),)),
        SendReports(
            (
                PodReport(
                    "u1", "default/u1", ReportKind.UNSCHEDULABLE, message, reasons, plugins, None
                ),
            )
        ),
    ]
    assert world.core.state_of("u1") is AttemptState.UNSCHEDULABLE


def test_plugins_that_returned_pending_are_listed_separately():
    diagnosis = too_small(2)
    diagnosis.add(Status(Code.PENDING, ("no claim yet",), "DynamicResources"), 1)
    item = item_of(undecided_pod(diagnosis)[1])
    assert item.rejected_by == ("DynamicResources", "NodeResourcesFit")
    assert item.pending == ("DynamicResources",)


def test_a_prefilter_that_returned_pending_is_listed_separately():
    status = Status(Code.PENDING, ("no claim yet",), "DynamicResources")
    diagnosis = Diagnosis(2, pre_filter=status)
    item = item_of(undecided_pod(diagnosis)[1])
    assert (item.rejected_by, item.pending) == (("DynamicResources",), ("DynamicResources",))
    assert item.message == "0/2 nodes are available: no claim yet. nobody to evict"


@pytest.mark.parametrize("nominated", [None, "", "n7"])
def test_the_nomination_is_the_result_of_postfilter(nominated):
    found = PostFilterResult(SUCCESS, nominated)
    report = report_of(undecided_pod(**post_filter_returns(found))[1])
    assert report.nominated_node == nominated
    assert report.message == "0/3 nodes are available: 3 Insufficient cpu."


def test_a_failed_postfilter_ends_the_message_and_the_pod_is_unschedulable():
    found = PostFilterResult(error("no dry run"))
    _, effects = undecided_pod(**post_filter_returns(found))
    assert report_of(effects).message.endswith("cpu. no dry run")
    assert item_of(effects).reason is UNSCHEDULABLE


def test_a_raising_postfilter_affects_no_other_pod_and_is_reported():
    _, effects = undecided_pod(**post_filter_returns(ValueError("no dry run")))
    text = 'cpu. running PostFilter plugin "A": ValueError: no dry run'
    assert report_of(effects).message.endswith(text)
    assert item_of(effects).reason is UNSCHEDULABLE


def test_without_postfilter_plugins_the_nomination_is_cleared():
    _, effects = undecided_pod(points=("bind",))
    assert report_of(effects).nominated_node == ""
    assert report_of(effects).message == "0/3 nodes are available: 3 Insufficient cpu."


def test_a_cluster_without_nodes_skips_postfilter_and_has_its_own_message():
    world, effects = undecided_pod(Diagnosis(0))
    assert report_of(effects).message == "no nodes available to schedule pods"
    assert report_of(effects).nominated_node == ""
    assert item_of(effects).rejected_by == ()
    assert world.log == []


def test_a_postfilter_with_missing_requirements_names_the_pod_and_changes_nothing():
    missing = UnsupportedError("DefaultPreemption", "", "spec.priority: 5")
    world = World(plugins=("A",), answers={"A": {"post_filter": missing}})
    world.lease("u1", "u2", "u3")
    before = world.picture()
    batch = [world.to_node("u1"), world.to_none("u2"), world.to_error("u3")]
    with pytest.raises(UnsupportedError) as caught:
        world.core.decided(batch)
    assert str(caught.value) == (
        'Pod "default/u2": spec.priority: 5: is not supported by the plugin DefaultPreemption'
    )
    assert world.picture() == before


def test_a_failed_cycle_is_retried_after_backoff_with_its_text():
    world = World()
    world.lease()
    effects = world.core.decided([world.to_error(text="PreScore broke")])
    assert item_of(effects) == RequeueItem(
        "u1", RequeueCause.ERROR, message="PreScore broke", nominated_node=""
    )
    assert report_of(effects) == PodReport(
        "u1", "default/u1", ReportKind.FAILED, "PreScore broke", nominated_node=""
    )
    assert world.log == []


def test_a_batch_is_answered_by_kind_and_by_lease():
    world = World()
    world.lease("u1", "u2")
    world.lease("v1", "v2", lease_id=2)
    batch = [world.to_none("v1"), world.to_node("u1"), world.to_error("u2"), world.to_node("v2")]
    effects = world.core.decided(batch)
    assert kinds(effects) == ["Assume", "RequeuePods", "RequeuePods", "SendReports"]
    assert [one.uid for one in effects[0].attempts] == ["u1", "v2"]
    assert [(one.lease_id, one.items[0].uid) for one in effects[1:3]] == [(2, "v1"), (1, "u2")]
    assert [one.uid for one in effects[3].reports] == ["v1", "u2"]


def test_an_empty_decision_is_a_broken_invariant():
    world = World()
    world.lease()
    decision = world.to_node(node_name=None)
    with pytest.raises(AssertionError, match="default/u1: no node and no reason"):
        world.core.decided([decision])


def test_refusals_of_several_postfilter_plugins_are_joined():
    world = World(answers={"A": {"post_filter": PostFilterResult(unschedulable("no victims"))}})
    world.lease()
    effects = world.core.decided([world.to_none()])
    assert report_of(effects).message.endswith("cpu. no victims, nobody to evict")


def test_a_nomination_with_victims_names_the_plugin_that_preempts():
    victims = (Victim("v1", "default/v1", 0),)
    found = PostFilterResult(SUCCESS, "n1", (Candidate("n1", victims),))
    world = World(answers={"B": {"post_filter": found}})
    world.lease()
    effects = world.core.decided([world.to_none()])
    (nomination,) = only(Nominate, effects).nominations
    assert (nomination.node_name, nomination.victims) == ("n1", victims)
    assert nomination.preempting_plugin == "B"
