"""The pods on rows: right after any change, shared by equal rows, never by different ones."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.pods_on_row import NO_PODS, add_each, changed, duplicate
from tests.builders import pod

CLASSES = [PodClasses().pod_class(pod(cpu=100 * n)) for n in range(1, 4)]
INFO = st.sampled_from(CLASSES)


@given(
    st.lists(st.tuples(st.integers(0, 2), INFO, st.sampled_from((-1, 1, 1, 2)))),
    st.lists(st.tuples(st.integers(0, 2), INFO)),
)
def test_rows_count_added_and_removed_pods(changes, at_once):
    rows, wanted = [NO_PODS] * 3, [Counter(), Counter(), Counter()]
    for row, pod_class, change in changes:
        if wanted[row][pod_class] + change < 0:
            continue
        rows[row] = changed(rows[row], pod_class, change)
        wanted[row][pod_class] += change
    add_each(rows, [row for row, _ in at_once], [pod_class for _, pod_class in at_once])
    for row, pod_class in at_once:
        wanted[row][pod_class] += 1

    assert rows == [{pod_class: n for pod_class, n in each.items() if n} for each in wanted]
    assert all(len(here) > 1 or here is duplicate(here) for here in rows), "equal rows are shared"
    assert len({id(here) for here in rows if len(here) > 1}) == sum(len(r) > 1 for r in rows)
    assert NO_PODS == {}


def test_rows_of_one_class_share_a_mapping_until_they_differ():
    one, other = CLASSES[:2]
    rows = [NO_PODS, NO_PODS]
    add_each(rows, [0, 1], [one, one])
    assert rows[0] is rows[1]

    rows[0] = changed(rows[0], other, 1)

    assert rows == [{one: 1, other: 1}, {one: 1}]


def test_a_copy_of_a_row_changes_independently():
    one, other, third = CLASSES
    row = changed(changed(NO_PODS, one, 1), other, 1)
    copy = changed(duplicate(row), third, 1)
    assert row == {one: 1, other: 1}
    assert copy == {one: 1, other: 1, third: 1}
