"""Quantities are exact, obey the laws of arithmetic, and refuse hostile text."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.protocol.quantity import (
    DIGITS_MAX,
    EXPONENT_SPAN_MAX,
    FORMAT_ERROR,
    SUFFIX_ERROR,
    TEXT_MAX_CHARS,
    Quantity,
    QuantityError,
    parse_quantity,
)

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
SUFFIXES += ["e3", "E-3", "e+6", "e0", "E2", "e-9"]
NUMBERS = st.from_regex(r"[+-]?[0-9]{1,12}(\.[0-9]{0,6})?", fullmatch=True)
TEXTS = st.builds(str.__add__, NUMBERS, st.sampled_from(SUFFIXES))
QUANTITIES = TEXTS.map(parse_quantity)


def exact(quantity: Quantity) -> Fraction:
    return Fraction(quantity.unscaled) * Fraction(10) ** quantity.exponent


@given(TEXTS)
def test_a_canonical_notation_has_the_same_value_and_is_stable(text: str) -> None:
    quantity = parse_quantity(text)
    again = parse_quantity(str(quantity))
    assert again == quantity
    assert exact(again) == exact(quantity)
    zero = parse_quantity("0")
    assert str(again.add(zero)) == str(again.add(zero).add(zero))


@given(QUANTITIES, QUANTITIES)
def test_sums_and_differences_are_exact(left: Quantity, right: Quantity) -> None:
    assert exact(left.add(right)) == exact(left) + exact(right)
    assert exact(left.sub(right)) == exact(left) - exact(right)


@given(QUANTITIES, QUANTITIES, QUANTITIES)
def test_addition_is_commutative_associative_and_reversible(
    a: Quantity, b: Quantity, c: Quantity
) -> None:
    assert a.add(b) == b.add(a)
    assert a.add(b).add(c) == a.add(b.add(c))
    assert a.add(b).sub(b) == a


@given(QUANTITIES, QUANTITIES)
def test_quantities_are_ordered_by_value_and_equal_ones_have_equal_hashes(
    a: Quantity, b: Quantity
) -> None:
    assert a.cmp(b) == (exact(a) > exact(b)) - (exact(a) < exact(b)) == -b.cmp(a)
    assert (a == b) == (exact(a) == exact(b))
    assert a != b or hash(a) == hash(b)


@given(st.integers(-(10**12), 10**12), st.integers(-9, 3))
def test_values_are_rounded_away_from_zero(unscaled: int, exponent: int) -> None:
    quantity = Quantity(unscaled, exponent)
    number = abs(exact(quantity))
    assert quantity.value() == quantity.sign * -(-number // 1)
    assert quantity.milli_value() == quantity.sign * -(-number * 1000 // 1)


@given(st.text(max_size=40))
def test_any_text_is_a_quantity_or_raises_a_quantity_error(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return
    assert str(quantity)
    assert -(2**63) <= quantity.value() < 2**63
    assert -(2**63) <= quantity.milli_value() < 2**63


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", FORMAT_ERROR), (" ", FORMAT_ERROR), ("1 ", FORMAT_ERROR), ("1\n", FORMAT_ERROR),
        ("NaN", FORMAT_ERROR), ("inf", FORMAT_ERROR), ("Infinity", FORMAT_ERROR),
        ("1_000", FORMAT_ERROR), ("1,5", FORMAT_ERROR), ("٣", FORMAT_ERROR), ("１", FORMAT_ERROR),
        ("0x10", FORMAT_ERROR), ("1.2.3", FORMAT_ERROR), ("1\x00", FORMAT_ERROR),
        ("12x", FORMAT_ERROR), ("true", FORMAT_ERROR), ("1e5.5", FORMAT_ERROR),
        ("--1", SUFFIX_ERROR), ("1mm", SUFFIX_ERROR), ("1K", SUFFIX_ERROR), ("1kI", FORMAT_ERROR),
        ("1e", SUFFIX_ERROR), ("1ee3", SUFFIX_ERROR), ("1e-", SUFFIX_ERROR), ("1+1", SUFFIX_ERROR),
        ("1e2147483648", SUFFIX_ERROR), ("1e99999999999999999999", SUFFIX_ERROR),
        ("9" * 500 + "e2147483647", "must not differ"),
        ("9" * (TEXT_MAX_CHARS + 1), "must be no more than"),
        ("0" * 10_000_000 + "x", "must be no more than"),
        ("\ud800", FORMAT_ERROR), ("1" * 999 + "x", FORMAT_ERROR), ("0" * 999 + "x", FORMAT_ERROR),
        ("." * 999, FORMAT_ERROR), ("1.5Kii", SUFFIX_ERROR),
    ],
)  # fmt: skip
def test_hostile_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("1e1000000", "10e999999"), ("1e-1000000", "1e-9"), ("0e2147483647", "0")],
)  # fmt: skip
def test_huge_exponents_that_upstream_accepts_are_cheap(text: str, canonical: str) -> None:
    quantity = parse_quantity(text)
    assert str(quantity) == canonical
    assert quantity.value() in (0, 1)
    assert quantity.cmp(parse_quantity("5")) in (-1, 1)


def test_amounts_a_million_digits_apart_can_be_compared_but_not_added() -> None:
    huge, small = parse_quantity("1e1000000"), parse_quantity("1m")
    assert huge.cmp(small) == 1
    assert parse_quantity("-1e1000000").cmp(small) == -1
    assert parse_quantity("-1e1000000").cmp(parse_quantity("-1")) == -1
    with pytest.raises(QuantityError, match=str(EXPONENT_SPAN_MAX)):
        huge.add(small)
    with pytest.raises(QuantityError, match=str(EXPONENT_SPAN_MAX)):
        small.sub(huge)


def test_amounts_with_more_digits_than_python_prints_are_refused() -> None:
    with pytest.raises(QuantityError, match=str(DIGITS_MAX)):
        parse_quantity("1" * 990 + "e4000")
    # Each sum is within the span, and together they have over 5,000 digits.
    wide = parse_quantity("1e5000").add(parse_quantity("1e1000"))
    with pytest.raises(QuantityError, match=str(DIGITS_MAX)):
        wide.add(parse_quantity("1n"))
    largest = parse_quantity("1" * 200 + "e3990")
    assert str(largest) == "1" * 200 + "e3990"
    assert hash(largest) == hash(largest.add(parse_quantity("0")))


def test_equality_with_other_types_is_false_and_zero_equals_zero() -> None:
    assert parse_quantity("1") != 1
    assert parse_quantity("0") == parse_quantity("-0Ki") == Quantity(0)
    assert hash(parse_quantity("0")) == hash(parse_quantity("0e9"))
    assert parse_quantity("1000m") == parse_quantity("1")


def test_suffixes_above_the_largest_are_omitted_like_upstream() -> None:
    assert str(parse_quantity("999999999999999999E").add(parse_quantity("1E"))) == "1"
    binary = Quantity(2**70, 0, "BinarySI", is_big=True)
    assert str(binary) == "1"


def test_large_amounts_scaled_up_overflow_like_upstream() -> None:
    big = Quantity(3, 25, is_big=True)
    assert big.value() == -(2**63)
    assert Quantity(5, 3, is_big=True).value() == 5000
    assert Quantity(5, 0, is_big=True).value() == 5


def test_a_binary_amount_below_one_is_printed_in_decimal_notation() -> None:
    small = parse_quantity("0.0001Ki")
    assert (str(small), small.format) == ("102400u", "DecimalSI")
    assert str(parse_quantity("0.5Ki")) == "512"


@given(st.integers(-(10**6), 10**6), st.integers(-9, 3))
def test_rounding_up_is_exact_away_from_zero(unscaled: int, exponent: int) -> None:
    amount = Quantity(unscaled, exponent)

    rounded = amount.rounded_up(-3)

    assert (exact(rounded) * 1000).denominator == 1
    assert abs(exact(amount)) <= abs(exact(rounded)) < abs(exact(amount)) + Fraction(1, 1000)
    assert rounded is amount or rounded != amount
