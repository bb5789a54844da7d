"""How many feasible nodes are enough."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.framework.sampling import feasible_nodes_to_find


@pytest.mark.parametrize(
    ("nodes", "percentage", "found"),
    [
        (99, 5, 99),
        (100, None, 100),
        (1000, None, 420),
        (5000, 0, 500),
        (6000, None, 300),
        (5000, 4, 200),
        (1000, 1, 100),
        (5000, 100, 5000),
        (5000, 150, 5000),
    ],
)
def test_small_clusters_are_seen_whole_and_large_ones_by_share(nodes, percentage, found):
    assert feasible_nodes_to_find(nodes, percentage) == found


@given(st.integers(0, 10**6), st.integers(0, 100))
def test_never_fewer_than_a_hundred_and_never_more_than_there_are(nodes, percentage):
    found = feasible_nodes_to_find(nodes, percentage)

    assert min(nodes, 100) <= found <= nodes
