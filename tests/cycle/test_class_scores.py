"""The results of a single class of pods."""

import numpy as np

from roadstead.cycle.class_scores import ClassScores
from roadstead.extenders.sequence import EXTENDER
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.found_nodes import FoundNodes, SearchResult
from roadstead.protocol.status import unschedulable
from tests.builders import node, pod, profile_of, table_of


def test_passed_nodes_are_counted_without_extenders_results_for_unknown_nodes():
    table = table_of(*(node(f"n{number}", cpu=1000) for number in range(4)))
    profile = profile_of({"filter": ["NodeResourcesFit"]}, classes=table.classes)
    run = ClassScores(Evaluation(profile, table.classes.pod_class(pod(cpu=500)), table))
    refusal = unschedulable("full")
    arrivals = table.arrivals.astype(np.int64)
    found_nodes = FoundNodes(
        arrivals[1:], np.zeros(3, np.int64), refused=((refusal, arrivals[:1]),)
    )
    run.search_result = SearchResult(found_nodes, unknown_nodes=(refusal,), by_extender=True)

    assert run.filter(run.evaluation.run_pre_filter()) == ""

    assert run.passed_count() == 3
    assert run.diagnosis().plugins == (EXTENDER,)
    assert sum(run.diagnosis().refused.values()) == 2
