"""Restricting the rows of an evaluation from outside, and restoring Filter's results afterwards."""

import numpy as np

from roadstead.config.model import default_config
from roadstead.framework.evaluation import EXCLUDED, PASSED, Evaluation
from roadstead.framework.found_nodes import NOT_EVALUATED, FoundNodes, no_arrivals
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry
from roadstead.protocol.status import Status, unschedulable
from tests.builders import named, node, pod

NO_GPU = Status(unschedulable().code, ("no gpu",), "Extender")


def evaluated(facts, nodes=4):
    """Return an evaluation over nodes of 4 CPUs, the last of which has one."""
    table = NodeTable()
    for index in range(nodes):
        table.add_node(node(f"n{index}", cpu=4000 if index < nodes - 1 else 1000))
    profile = Profile(default_config().profiles[0], in_tree_registry(), Handle(table.classes))
    evaluation = Evaluation(profile, table.classes.pod_class(facts), table)
    evaluation.update(evaluation.run_pre_filter())
    return evaluation


def found_nodes(*stays, scores=None, evaluated=None, refused=()):
    stays = np.array(stays, dtype=np.int64)
    added = np.zeros(len(stays), dtype=np.int64) if scores is None else np.array(scores)
    found = tuple((status, np.array(them, dtype=np.int64)) for status, them in refused)
    return FoundNodes(
        stays, added, None if evaluated is None else np.array(evaluated, dtype=np.int64), found
    )


def by_row(evaluation):
    """Return per row: True if it is feasible, else its status (None if it is excluded)."""
    meaning = {PASSED: True, EXCLUDED: None}
    return [
        meaning[code] if code in meaning else evaluation.statuses[code - 1]
        for code in evaluation.codes.tolist()
    ]


def test_excluded_rows_were_not_visited_or_are_refused():
    evaluation = evaluated(pod(cpu=2000))
    too_small = by_row(evaluation)[3]

    evaluation.restrict(found_nodes(1, refused=[(NO_GPU, [0])]))

    assert by_row(evaluation) == [NO_GPU, True, NOT_EVALUATED, too_small]
    assert evaluation.feasible.tolist() == [False, True, False, False]


def test_a_refusal_by_filter_counts_only_for_visited_rows():
    evaluation = evaluated(pod(cpu=2000))

    evaluation.restrict(found_nodes(1, evaluated=[0, 1]))

    assert by_row(evaluation) == [NOT_EVALUATED, True, NOT_EVALUATED, NOT_EVALUATED]


def test_a_refusal_from_outside_overrides_that_of_filter():
    evaluation = evaluated(pod(cpu=2000))

    evaluation.restrict(found_nodes(1, evaluated=[1], refused=[(NO_GPU, [3])]))

    assert by_row(evaluation) == [NOT_EVALUATED, True, NOT_EVALUATED, NO_GPU]


def test_unvisited_rows_count_as_excluded_by_prefilter():
    evaluation = evaluated(pod(cpu=100, required_node_terms=(named("n1"), named("n2"))))
    assert by_row(evaluation) == [None, True, True, None]

    evaluation.restrict(found_nodes(2))

    assert by_row(evaluation) == [None, None, True, None]


def test_scores_from_outside_are_stored_beside_the_rows():
    evaluation = evaluated(pod(cpu=100))

    evaluation.restrict(found_nodes(2, 0, scores=[7, -3]))

    assert evaluation.extender_scores.tolist() == [-3, 0, 7, 0]


def test_the_next_update_restores_the_results_of_filter():
    evaluation = evaluated(pod(cpu=2000))
    before = by_row(evaluation)
    evaluation.restrict(FoundNodes(no_arrivals(), no_arrivals()))
    assert not evaluation.feasible.any()
    assert evaluation.extender_scores is None

    evaluation.update(evaluation.run_pre_filter())

    assert by_row(evaluation) == before
    assert evaluation.before_restriction is None


def test_scores_are_equal_before_and_after_a_restriction():
    evaluation = evaluated(pod(cpu=100))
    evaluation.update_scores(evaluation.run_pre_score())
    before = [None if raw is None else raw.tolist() for raw in evaluation.raw]

    evaluation.restrict(found_nodes(0))
    assert evaluation.update_scores(evaluation.run_pre_score())[1] is None
    evaluation.update(evaluation.run_pre_filter())
    assert evaluation.update_scores(evaluation.run_pre_score())[1] is None

    assert [None if raw is None else raw.tolist() for raw in evaluation.raw] == before
