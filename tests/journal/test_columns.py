"""A group of records in columns equals the group of records."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.pod import PodFacts
from roadstead.journal import JournalRecord, RecordColumns, RecordKind

records = st.lists(
    st.builds(
        JournalRecord,
        lsn=st.integers(0, 9),
        kind=st.sampled_from([RecordKind.ADD, RecordKind.BIND, RecordKind.NODE]),
        uid=st.text("ab", max_size=2),
        key=st.text("ab", max_size=2),
        node_name=st.sampled_from(["n1", "n2"]),
        token=st.sampled_from(["", "t"]),
        epoch=st.integers(0, 2),
        facts=st.sampled_from([None, PodFacts()]),
    ),
    max_size=9,
)


@given(records, st.integers(0, 9), st.integers(0, 9))
def test_columns_return_the_records_they_were_built_from(group, start, stop):
    columns = RecordColumns.of(group)

    assert list(columns) == group
    assert [columns[place] for place in range(-len(group), len(group))] == group * 2
    assert list(columns[start:stop]) == group[start:stop]
    assert RecordColumns.of(columns) is columns


@pytest.mark.parametrize("place", [1, 2, -2, -3])
def test_a_record_that_does_not_exist_has_no_place(place):
    columns = RecordColumns.of([JournalRecord(1, RecordKind.NODE, "u", "k", "n1")])

    with pytest.raises(IndexError):
        columns[place]


@given(records)
def test_runs_have_one_kind_and_omit_nothing(group):
    runs = list(RecordColumns.of(group).split_by_kind())

    assert [record for _, run in runs for record in run] == group
    assert all(set(run.kinds) == {kind} for kind, run in runs)
    assert all(one != other for (one, _), (other, _) in pairwise(runs))
