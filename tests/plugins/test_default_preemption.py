import pytest

from roadstead.framework.plugin import PostFilterResult, PostFilterView
from roadstead.plugins.default_preemption import DefaultPreemption
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SUCCESS, unresolvable, unschedulable
from tests.builders import pod

PLUGIN = DefaultPreemption()


def asked(facts=None, *, nodes, helpful, victims=0, pre_filter=SUCCESS):
    view = PostFilterView(nodes, helpful, victims, pre_filter)
    return PLUGIN.post_filter(pod() if facts is None else facts, view)


def clearing(text):
    return PostFilterResult(unschedulable(text), nominated_node="")


def test_nodes_without_victims_and_nodes_beyond_help_are_counted():
    assert asked(nodes=5, helpful=2) == clearing(
        "preemption: 0/5 nodes are available: 2 No preemption victims found for incoming pod, "
        "3 Preemption is not helpful for scheduling."
    )


def test_counts_are_sorted_as_text():
    assert asked(nodes=12, helpful=2).status.message == (
        "preemption: 0/12 nodes are available: 10 Preemption is not helpful for scheduling, "
        "2 No preemption victims found for incoming pod."
    )


def test_only_what_occurs_is_counted():
    assert asked(nodes=3, helpful=3) == clearing(
        "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
    )
    assert asked(nodes=3, helpful=0) == clearing(
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_pre_filter_found_hopeless_is_not_helped_anywhere():
    said = asked(nodes=3, helpful=3, victims=3, pre_filter=unresolvable("no"))

    assert said == clearing(
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_never_preempts_keeps_its_nomination():
    never = pod(preemption_policy="Never", priority=10)

    assert asked(never, nodes=3, helpful=3, victims=3) == PostFilterResult(
        unschedulable("preemption: not eligible due to preemptionPolicy=Never.")
    )


def test_where_there_are_victims_the_dry_run_is_missed_by_name():
    with pytest.raises(UnsupportedError, match=r"spec.priority: 10: needs the plugin Default"):
        asked(pod(priority=10), nodes=3, helpful=3, victims=1)


def test_every_pod_may_be_queued():
    assert PLUGIN.pre_enqueue(pod()) is SUCCESS


def test_priority_and_policy_are_the_signature():
    assert PLUGIN.sign(pod(cpu=1)) == PLUGIN.sign(pod())
    assert PLUGIN.sign(pod(priority=1)) != PLUGIN.sign(pod())
    assert PLUGIN.sign(pod(preemption_policy="Never")) != PLUGIN.sign(pod())
