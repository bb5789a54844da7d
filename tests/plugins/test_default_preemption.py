import pytest

from roadstead.config.plugin_args import DefaultPreemptionArgs
from roadstead.framework.post_filter_answers import PostFilterResult, PostFilterView
from roadstead.framework.victims import Candidate, DryRunResult, Victim
from roadstead.plugins.default_preemption import DefaultPreemption
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SUCCESS, Code, error, unresolvable, unschedulable
from tests.builders import pod

PLUGIN = DefaultPreemption(DefaultPreemptionArgs())
URGENT = pod(priority=10)


def view(*, nodes, helpful, lowest=None, pre_filter=SUCCESS, dry_run_result=None):
    return PostFilterView(
        nodes, helpful, pre_filter, lowest_priority=lowest, dry_run_result=dry_run_result
    )


def asked(facts=None, **seen):
    return PLUGIN.post_filter(pod() if facts is None else facts, view(**seen))


def clearing(text):
    return PostFilterResult(unschedulable(text), nominated_node="")


def on(node_name, priority=0):
    return Candidate(node_name, (Victim(f"u-{node_name}", f"d/{node_name}", priority, 1.0),))


def test_nodes_without_victims_and_unresolvable_nodes_are_counted():
    assert asked(nodes=5, helpful=2) == clearing(
        "preemption: 0/5 nodes are available: 2 No preemption victims found for incoming pod, "
        "3 Preemption is not helpful for scheduling."
    )


def test_counts_are_sorted_as_text():
    assert asked(nodes=12, helpful=2).status.message == (
        "preemption: 0/12 nodes are available: 10 Preemption is not helpful for scheduling, "
        "2 No preemption victims found for incoming pod."
    )


def test_only_occurring_reasons_are_counted():
    assert asked(nodes=3, helpful=3) == clearing(
        "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
    )
    assert asked(nodes=3, helpful=0) == clearing(
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


def test_preemption_helps_no_pod_that_pre_filter_rejected_as_unresolvable():
    answer = asked(URGENT, nodes=3, helpful=3, lowest=0, pre_filter=unresolvable("no"))

    assert answer == clearing(
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )


def test_preemption_may_help_on_every_node_after_a_resolvable_pre_filter():
    seen = view(nodes=300, helpful=0, lowest=0, pre_filter=unschedulable("no"))

    assert PLUGIN.dry_run_size(URGENT, seen) == 100


def test_a_pod_that_never_preempts_keeps_its_nomination():
    never = pod(preemption_policy="Never", priority=10)

    assert asked(never, nodes=3, helpful=3, lowest=0) == PostFilterResult(
        unschedulable("preemption: not eligible due to preemptionPolicy=Never.")
    )
    assert PLUGIN.dry_run_size(never, view(nodes=3, helpful=3, lowest=0)) is None


@pytest.mark.parametrize(
    ("percentage", "absolute", "helpful", "wanted"),
    [(10, 100, 50, 50), (10, 100, 500, 100), (10, 100, 5000, 500), (100, 0, 70, 70), (1, 0, 70, 0)],
)
def test_the_larger_of_two_limits_is_the_number_of_wanted_candidates(
    percentage, absolute, helpful, wanted
):
    plugin = DefaultPreemption(DefaultPreemptionArgs(percentage, absolute))

    assert plugin.dry_run_size(URGENT, view(nodes=9000, helpful=helpful, lowest=0)) == wanted


def test_no_preemption_is_tried_without_pods_of_lower_priority():
    for lowest in (None, 10, 11):
        seen = view(nodes=3, helpful=3, lowest=lowest)
        assert PLUGIN.dry_run_size(URGENT, seen) is None


def test_a_missing_dry_run_is_requested_by_name():
    with pytest.raises(UnsupportedError, match=r"spec.priority: 10: is not supported by"):
        asked(URGENT, nodes=3, helpful=3, lowest=0)


def test_the_best_candidate_is_nominated_and_its_equals_are_reported():
    dry_run_result = DryRunResult((on("n3", 5), on("n2"), on("n1")))

    result = asked(URGENT, nodes=9, helpful=4, lowest=0, dry_run_result=dry_run_result)

    assert result.status is SUCCESS
    assert (result.nominated_node, result.acceptable) == ("n1", ("n2", "n1"))
    assert (result.candidates, result.exhaustive) == (dry_run_result.candidates, True)
    assert result.chosen == on("n1")


def test_a_limited_dry_run_is_not_exhaustive():
    result = asked(
        URGENT, nodes=900, helpful=101, lowest=0, dry_run_result=DryRunResult((on("n1"),))
    )

    assert not result.exhaustive


def test_reasons_of_the_dry_run_are_counted_with_those_of_untried_nodes():
    dry_run_result = DryRunResult((), 3, (("Insufficient cpu", 2), ("Too many pods", 2)))

    assert asked(URGENT, nodes=4, helpful=3, lowest=0, dry_run_result=dry_run_result) == clearing(
        "preemption: 0/4 nodes are available: 1 Preemption is not helpful for scheduling, "
        "2 Insufficient cpu, 2 Too many pods."
    )


@pytest.mark.parametrize(
    ("dry_run_result", "status"),
    [
        (
            DryRunResult(waits=True),
            unschedulable(
                "preemption: not eligible due to a terminating pod on the nominated node."
            ),
        ),
        (
            DryRunResult(refused_by_extenders=True),
            unschedulable("preemption: no candidate node for preemption"),
        ),
        (DryRunResult((), 1, errors=("broke",)), error("preemption: broke")),
        (DryRunResult((), 2, errors=("a", "b")), error("preemption: [a, b]")),
    ],
    ids=["waits", "extenders", "an error", "errors"],
)
def test_an_attempt_without_a_dry_run_keeps_the_nomination(dry_run_result, status):
    result = asked(URGENT, nodes=3, helpful=3, lowest=0, dry_run_result=dry_run_result)

    assert result == PostFilterResult(status)


def test_every_pod_may_enter_the_queue():
    assert PLUGIN.pre_enqueue(pod()) is SUCCESS
    assert SUCCESS.code is Code.SUCCESS


def test_the_signature_is_priority_and_preemption_policy():
    assert PLUGIN.sign(pod(cpu=1)) == PLUGIN.sign(pod())
    assert PLUGIN.sign(pod(priority=1)) != PLUGIN.sign(pod())
    assert PLUGIN.sign(pod(preemption_policy="Never")) != PLUGIN.sign(pod())
