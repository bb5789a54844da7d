"""Columns and tables: every type that is written, nulls, chunks, no rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.api.frames import frame_values
from roadstead.report import arrow
from roadstead.report.arrow import BOOL, FLOAT64, INT64, STRING, list_of, make_table, struct_of
from tests.tables import rows_of

INTEGERS = st.integers(-(2**63), 2**63 - 1)
REASONS = list_of(struct_of({"reason": STRING, "nodes": INT64}))
COLUMNS = {
    "string": (STRING, st.none() | st.text(st.characters(exclude_categories=["Cs"]))),
    "int64": (INT64, st.none() | INTEGERS),
    "float64": (FLOAT64, st.none() | st.floats(allow_nan=False)),
    "bool": (BOOL, st.none() | st.booleans()),
    "strings": (list_of(STRING), st.lists(st.sampled_from("abc"))),
    "reasons": (
        REASONS,
        st.lists(st.fixed_dictionaries({"reason": st.sampled_from("abc"), "nodes": INTEGERS})),
    ),
}


@pytest.mark.parametrize(("kind", "values"), COLUMNS.values(), ids=COLUMNS)
@given(data=st.data(), chunk_rows=st.integers(1, 4))
def test_a_column_returns_its_values_in_chunks_of_every_length(kind, values, data, chunk_rows):
    rows = data.draw(st.lists(values, max_size=9))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "CHUNK_ROWS", chunk_rows)
        column = arrow.column(rows, kind)

    assert column.type == kind
    assert column.to_pylist() == rows
    assert column.num_chunks == max(-(-len(rows) // chunk_rows), 1)
    assert rows_of(make_table({"x": column})) == [{"x": value} for value in rows]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], BOOL),
        ([1, 2], INT64),
        ([1.5, 2.5], FLOAT64),
        ([1, 2.5], FLOAT64),
        (["a", "b"], STRING),
    ],
)
def test_values_have_the_narrowest_type_that_can_hold_them(values, kind):
    assert arrow.type_of(values) == kind
    assert arrow.column(values, kind).to_pylist() == values


def test_a_value_of_another_type_is_refused():
    with pytest.raises(TypeError):
        arrow.column(["1"], INT64)
    with pytest.raises(OverflowError):
        arrow.column([2**63], INT64)


@pytest.mark.parametrize(
    ("kind", "values", "dtype"),
    [
        (INT64, [1, 2**62 + 1], np.int64),
        (INT64, [1, None], np.float64),
        (INT64, [], np.int64),
        (FLOAT64, [1.5], np.float64),
        (STRING, ["a", None], str),
        (STRING, [], str),
        (list_of(STRING), [["a"], []], object),
    ],
)
def test_values_for_a_frame_have_pyarrows_dtype(kind, values, dtype):
    given, given_dtype = frame_values(arrow.column(values, kind))

    assert (list(given), given_dtype) == (values, dtype)
