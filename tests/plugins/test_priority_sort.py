from hypothesis import given
from hypothesis import strategies as st

from roadstead.plugins.priority_sort import PrioritySort
from tests.builders import pod

PLUGIN = PrioritySort()

waiting_pods = st.tuples(
    st.integers(-(2**31), 2**31 - 1), st.floats(0, 2**40, allow_nan=False, allow_infinity=False)
)


def key(priority, queued_s):
    return PLUGIN.sort_key(pod(priority=priority), queued_s)


def upstream_less(one, other):
    """queuesort/priority_sort.go Less."""
    return one[0] > other[0] or (one[0] == other[0] and one[1] < other[1])


def test_pods_are_sorted_by_priority_and_then_by_waiting_time():
    order = sorted([(0, 5.0), (10, 7.0), (0, 1.0), (10, 6.0)], key=lambda each: key(*each))

    assert order == [(10, 6.0), (10, 7.0), (0, 1.0), (0, 5.0)]


@given(waiting_pods, waiting_pods)
def test_the_order_equals_upstreams(one, other):
    assert (key(*one) < key(*other)) == upstream_less(one, other)


def test_the_queue_order_is_not_part_of_a_signature():
    assert PLUGIN.sign(pod()) == PLUGIN.sign(pod(priority=9)) == ()
