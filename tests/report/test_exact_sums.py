"""Amounts of nodes add up exactly, for any number of nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.node import NodeFacts
from roadstead.report.node_use import node_use
from roadstead.report.result import RunResult
from roadstead.report.summary import summarize

INT64_MAX = (1 << 63) - 1


@given(st.lists(st.integers(0, INT64_MAX), max_size=8))
def test_the_sum_over_nodes_equals_that_of_integers(amounts: list[int]) -> None:
    nodes = [NodeFacts(f"n-{i}", (), (("memory", each),), 1) for i, each in enumerate(amounts)]
    result = RunResult("", (), (), node_use(nodes, (), ()), 1.0, 1.0, {}, 0)

    use = {each.resource: each for each in summarize(result).utilization}

    assert use["memory"].allocatable == sum(amounts)
    assert use["memory"].after == 0
