import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.framework.sampling import feasible_nodes_to_find


@pytest.mark.parametrize(
    ("nodes", "percentage", "found"),
    [
        (0, 0, 0),
        (99, 1, 99),
        (100, 1, 100),
        (500, 1, 100),
        (1000, 10, 100),
        (16353, 30, 4905),
        (1000, 100, 1000),
        (1000, 0, 420),
        (1000, None, 420),
        (5000, 0, 500),
        (5625, 0, 281),
        (6000, 0, 300),
        (100_000, 0, 5000),
    ],
)
def test_the_sample_size_is_a_share_of_the_nodes_and_at_least_a_hundred(nodes, percentage, found):
    assert feasible_nodes_to_find(nodes, percentage) == found


@given(st.integers(0, 10**6), st.integers(0, 100))
def test_the_sample_size_is_at_most_the_number_of_nodes_and_at_least_a_hundred(nodes, percentage):
    found = feasible_nodes_to_find(nodes, percentage)

    assert min(nodes, 100) <= found <= nodes
