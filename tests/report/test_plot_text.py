"""Proves the number formats and the line breaks of plots."""

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.report.plot_text import number_text, text_width, tick_texts, wrap

TEXTS = st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=200)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5.0, "5"),
        (-2.5, "-2.5"),
        (0.1 + 0.2, "0.3"),
        (0.05, "0.05"),
        (0.000002, "0.000002"),
        (5e-9, "5×10⁻⁹"),
        (1234.56, "1,235"),
        (20_000.0, "20,000"),
        (999_999.0, "1M"),
        (1_000_000.0, "1M"),
        (2_500_000.0, "2.5M"),
        (123_456_789.0, "123.5M"),
        (3e12, "3×10¹²"),
    ],
)
def test_numbers_have_four_digits_separators_and_no_exponent(value, text):
    assert number_text(value) == text


def test_close_ticks_have_as_many_digits_as_needed():
    assert tick_texts([1_000_000.0, 1_000_002.0]) == ["1,000,000", "1,000,002"]
    assert tick_texts([0.0, 0.5, 1.0]) == ["0", "0.5", "1"]


@given(st.floats(1e-6, 1e9))
def test_a_printed_number_equals_its_value_to_four_digits(value):
    text = number_text(value).replace(",", "")
    read = float(text.removesuffix("M")) * (1e6 if text.endswith("M") else 1.0)

    assert isclose(read, value, rel_tol=1e-3)


@given(TEXTS, st.floats(20.0, 600.0))
def test_no_line_exceeds_the_width_and_no_word_is_lost(text, width):
    lines = wrap(text, width)

    assert all(text_width(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("latency-first", ["latency-", "first"]),
        ("50/80/95", ["50/80/", "95"]),
        ("one two three", ["one two", "three"]),
        ("", [""]),
    ],
)
def test_lines_are_broken_at_spaces_and_in_wide_words_after_hyphens_and_slashes(text, lines):
    assert wrap(text, 55.0) == lines
