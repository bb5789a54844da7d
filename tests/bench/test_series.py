import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.bench.series import ENDLESS, NodeSeries, PodSeries
from roadstead.facts.node import HOSTNAME_LABEL, NAME_PLACEHOLDER, NodeFacts
from tests.builders import pod

A, B, C = (pod(cpu=cpu) for cpu in (100, 200, 300))


def test_nodes_alternate_among_classes_and_have_their_own_names():
    big = NodeFacts("", labels=((HOSTNAME_LABEL, NAME_PLACEHOLDER),), allocatable_pods=9)
    series = NodeSeries((big, NodeFacts("")), 3, "n-", first=5)

    nodes = series.part(0, 10)

    assert [facts.name for facts in nodes] == ["n-5", "n-6", "n-7"]
    assert [facts.allocatable_pods for facts in nodes] == [9, 0, 9]
    assert nodes[2].labels == ((HOSTNAME_LABEL, "n-7"),)


def test_nodes_may_have_names_of_their_own():
    series = NodeSeries((NodeFacts(""),), 2, names=("x", "y"))

    assert [facts.name for facts in series.part(1, 2)] == ["y"]


def test_pods_of_one_class_are_its_facts_and_names():
    columns = PodSeries(5, "ns", (A,), "p-", first=10).part(2, 4)

    assert columns.classes == (A,)
    assert columns.names == ("p-12", "p-13")
    assert columns.uids == ("ns/p-12", "ns/p-13")
    assert columns.class_of == (0, 0)


def test_classes_alternate_or_are_a_column_and_only_used_ones_are_encoded():
    turns = PodSeries(4, "ns", (A, B, C)).part(1, 3)
    column = PodSeries(4, "ns", (A, B, C), class_of=np.array([2, 2, 0, 1], np.int32)).part(0, 3)

    assert [turns.classes[place] for place in turns.class_of] == [B, C]
    assert len(turns.classes) == 2
    assert [column.classes[place] for place in column.class_of] == [C, C, A]


def test_distinct_pods_are_created_when_they_are_needed():
    series = PodSeries(ENDLESS, "ns", make_class=lambda place: pod(cpu=place))

    columns = series.part(7, 9)

    assert columns.classes == (pod(cpu=7), pod(cpu=8))
    assert columns.class_of == (0, 1)


def test_pods_with_names_and_uids_of_their_own_keep_them():
    series = PodSeries(2, "ns", (A,), names=("x", "y"), uids=("u1", "u2"))

    assert series.part(0, 2).names == ("x", "y")
    assert series.part(0, 2).uids == ("u1", "u2")
    assert [series.index_of(uid) for uid in ("u2", "u1", "ns/x")] == [1, 0, None]


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 120))
def test_a_uid_is_found_at_its_index_or_belongs_to_another_series(first, count, number):
    series = PodSeries(count, "ns", (A,), "p-", first)

    place = series.index_of(f"ns/p-{number}")

    assert place == (number - first if first <= number < first + count else None)


@pytest.mark.parametrize("uid", ["ns/p-", "ns/p-x", "ns/p-h-1", "other/p-1", "ns/p-1x", ""])
def test_an_unknown_uid_has_no_index(uid):
    assert PodSeries(9, "ns", (A,), "p-").index_of(uid) is None
