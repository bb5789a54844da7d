"""Cells of tables: a reader returns a number within bounds, or names the cell that it refuses."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.protocol.errors import InputError
from roadstead.traces.files import ProgressMeter
from roadstead.traces.rows import AMOUNT_MAX, Row, read_header_table, read_table


def row(text):
    return Row("t.csv", 7, (text,), {"cell": 0})


def refusal_of(read):
    with pytest.raises(InputError) as caught:
        read()
    assert str(caught.value).startswith("t.csv: line 7: cell: ")
    assert len(str(caught.value)) < 300
    return str(caught.value)


NOT_NUMBERS = [
    *("", "NaN", "nan", "inf", "-Infinity", "1e9999", "0x10", "1_000", "٣٢", "1,5", "true", "--1"),
    *("1e", "9" * 100_000, "1 2", "\0", "1\x1b[2J"),
]


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_values_that_are_no_finite_numbers_are_refused(text):
    assert "is not a number" in refusal_of(lambda: row(text).real("cell"))
    assert "is not a whole number" in refusal_of(lambda: row(text).integer("cell"))


@given(st.floats(-1e15, 1e15))
def test_numbers_are_read_as_python_reads_them(number):
    assert row(repr(number)).real("cell") == number


@given(st.text(max_size=40))
def test_no_text_raises_anything_but_an_input_error(text):
    for name in ("real", "integer", "time_ms", "amount"):
        try:
            value = getattr(row(text), name)("cell")
        except InputError:
            continue
        assert math.isfinite(value)


def test_integers_are_int64():
    assert row(str((1 << 63) - 1)).integer("cell") == (1 << 63) - 1
    assert "is beyond int64" in refusal_of(lambda: row(str(1 << 63)).integer("cell"))


def test_times_are_rounded_to_milliseconds_and_end_before_int64_nanoseconds_do():
    assert row("1.0004").time_ms("cell") == 1000
    assert row("-2.5").time_ms("cell", 60) == -150_000
    assert row("9223372036").time_ms("cell") == 9_223_372_036_000
    message = refusal_of(lambda: row("9223372037").time_ms("cell"))
    assert '"9223372037" is more than 292 years (int64 nanoseconds)' in message


def test_amounts_are_neither_negative_nor_enormous():
    assert row("0.5").amount("cell", 1000) == 500
    assert row(str(AMOUNT_MAX)).amount("cell") == AMOUNT_MAX
    assert "is negative" in refusal_of(lambda: row("-1").amount("cell"))
    assert "is more than 9.0072e+12" in refusal_of(lambda: row("1e30").amount("cell", 1000))


def test_counts_may_be_written_with_a_point():
    assert row("3.0").count("cell", 5) == 3
    assert "is not a whole number" in refusal_of(lambda: row("2.5").count("cell", 5))
    assert "is not a whole number" in refusal_of(lambda: row("-1").count("cell", 5))
    assert "is more than 5" in refusal_of(lambda: row("6").count("cell", 5))


def test_a_table_without_header_is_read_by_the_order_of_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('1,"x, y"\n\n2,z\n')
    rows = list(read_table(path, ("number", "name"), ProgressMeter()))
    assert [(each.line, each.text("name")) for each in rows] == [(1, "x, y"), (3, "z")]


def test_a_line_that_repeats_the_names_of_the_columns_is_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("number,name\n1,x\n")
    assert [each.line for each in read_table(path, ("number", "name"), ProgressMeter())] == [2]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("1,2,3\n", "line 1: has 3 cells for 2 columns"),
        ("1,2\n1\n", "line 2: has 1 cells for 2 columns"),
        ('1,"' + "x" * 200_000 + "\n", "is not CSV: field larger than field limit"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_line(tmp_path, content, text):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=text):
        list(read_table(path, ("number", "name"), ProgressMeter()))


def test_a_header_names_the_columns_once(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1;2\n")
    (only,) = read_header_table(path, ProgressMeter(), delimiter=";")
    assert (only.text("a"), only.text("b")) == ("1", "2")
    path.write_text("a,b,a\n")
    with pytest.raises(InputError, match='line 1: "a" is twice in the header'):
        list(read_header_table(path, ProgressMeter()))
