"""Quantities: "500m", "4", "16384Mi", 1e3 (upstream apimachinery/pkg/api/resource, 1.34).

A quantity is `unscaled * 10**exponent`, in integers of any size, never floats. Upstream keeps most
quantities in an int64 and the rest in a big decimal, and the result of `value()` where an int64
overflows differs between the two. `is_big` records which of them upstream uses, so that even those
results are upstream's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]
"""Upstream's name of a notation: "1M", "1Mi" or "1e6"."""

TEXT_MAX_CHARS = 1000
"""Bound of this project: longer texts are refused."""
EXPONENT_SPAN_MAX = 4000
"""Limit of the zeros that are written out: quantities whose exponents differ by more are not added,
and big decimals with a larger exponent are refused (`QuantityError`)."""
DIGITS_MAX = 4200
"""Most digits of an amount that is written out: Python converts no more than 4,300 to text, and
`_canonical` may append two."""

# Exponents of ten. Upstream rounds smaller fractions up to whole nanos.
_NANO, _MILLI = -9, -3
_CACHED_MAX_CHARS = 32
# Any number of so many digits fits an int64.
_INT64_DIGITS = 18
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_INT32_MAX = 2**31 - 1
_AMOUNT_LIMIT = 10**DIGITS_MAX
# Possessive throughout: like upstream's scanner, it never backtracks, even on hostile text.
# Sign, whole digits, digits of a fraction, suffix.
_SPLIT = re.compile(
    r"([+-]?+)0*+([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?+[0-9]*+)",
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_NAMES = {0: ""} | {exponent: suffix for suffix, exponent in _BINARY.items()}
# Powers of ten by which upstream multiplies without a check of overflow.
_WRAPPING_SHIFTS = frozenset({0, 1, 2, 3, 6, 9})

FORMAT_ERROR = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
SUFFIX_ERROR = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """No quantity, or one that is too large to work with; the text is upstream's if it has one."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount. Equal amounts are equal whatever their notation ("1" and "1000m").

    text: the parsed text, if upstream takes it for canonical and prints it again; "" if the
        notation is computed when it is printed.
    """

    unscaled: int
    exponent: int = 0
    format: Format = "DecimalSI"
    is_big: bool = False
    text: str = ""

    @property
    def sign(self) -> int:
        return (self.unscaled > 0) - (self.unscaled < 0)

    def value(self) -> int:
        """Return the amount in whole units, rounded away from zero and wrapped as upstream."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """Return the amount in thousandths, rounded and wrapped like `value`."""
        return self.scaled_value(_MILLI)

    def scaled_value(self, scale: int) -> int:
        """Return the amount in units of 10**scale, rounded and wrapped like `value`."""
        if self.is_big:
            return _scaled_big(self.unscaled, self.exponent - scale)
        return _scaled_int64(self.unscaled, self.exponent - scale)

    def rounded_up(self, scale: int) -> Quantity:
        """Round away from zero to a multiple of 10**scale; return itself if it is one."""
        if self.exponent >= scale:
            return self
        step = _power_of_10(scale - self.exponent)
        amount = -(-abs(self.unscaled) // step)
        if amount * step == abs(self.unscaled):
            return self
        return Quantity(amount * (self.sign or 1), scale, self.format, self.is_big)

    def cmp(self, other: Quantity) -> int:
        """Return -1, 0 or 1 for less, equal or more; fast even at exponents that are far apart."""
        if self.sign != other.sign or not self.unscaled:
            return (self.sign > other.sign) - (self.sign < other.sign)
        size, other_size = _digits_before_point(self), _digits_before_point(other)
        # Different magnitudes are compared without writing out the zeros of either number.
        if size != other_size:
            return self.sign if size > other_size else -self.sign
        amount, other_amount, _ = _aligned(self, other)
        return (amount > other_amount) - (amount < other_amount)

    def add(self, other: Quantity) -> Quantity:
        """Return the exact sum, in this one's format unless this is zero.

        Raises:
            QuantityError: the two lie more than `EXPONENT_SPAN_MAX` digits apart, or the sum has
                more than `DIGITS_MAX`.
        """
        return _sum(self, other, factor=1)

    def sub(self, other: Quantity) -> Quantity:
        """Return the exact difference; raises as `add`."""
        return _sum(self, other, factor=-1)

    def __eq__(self, other: object) -> bool:
        return self.cmp(other) == 0 if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        unscaled, exponent = _without_trailing_zeros(self.unscaled, self.exponent)
        return hash((unscaled, exponent))

    def __str__(self) -> str:
        """Return the canonical notation: no fraction, the largest suffix that loses nothing."""
        return self.text or _canonical(self)


def parse_quantity(text: str) -> Quantity:
    """Parse a quantity; short texts are cached.

    Raises:
        QuantityError: upstream's text, or that the text is too long or too large.
    """
    return _parse_cached(text) if len(text) <= _CACHED_MAX_CHARS else _parse(text)


def _parse(text: str) -> Quantity:
    if len(text) > TEXT_MAX_CHARS:
        raise QuantityError(f"quantities must be no more than {TEXT_MAX_CHARS} characters")
    match = _SPLIT.fullmatch(text) if text else None
    if match is None:
        raise QuantityError(FORMAT_ERROR)
    sign, whole, fraction, suffix = match.groups(default="")
    if suffix in _BINARY:
        return _parse_binary(text, sign, whole or "0", fraction, _BINARY[suffix])
    if suffix in _DECIMAL:
        return _parse_decimal(text, sign, whole or "0", fraction, _DECIMAL[suffix], "DecimalSI")
    exponent = _parse_exponent(suffix)
    return _parse_decimal(text, sign, whole or "0", fraction, exponent, "DecimalExponent")


_parse_cached = lru_cache(maxsize=65536)(_parse)


def _parse_exponent(suffix: str) -> int:
    # 12 characters are enough for any int32, with a sign and some zeros.
    digits = suffix[1:]
    if suffix[0] not in "eE" or not digits.lstrip("+-").isdigit() or len(digits) > 12:
        raise QuantityError(SUFFIX_ERROR)
    exponent = int(digits)
    if abs(exponent) > _INT32_MAX:
        raise QuantityError(SUFFIX_ERROR)
    return exponent


def _parse_decimal(
    text: str, sign: str, whole: str, fraction: str, exponent: int, notation: Format
) -> Quantity:
    digits, scale = whole + fraction, exponent - len(fraction)
    if len(digits) > _INT64_DIGITS or scale < _NANO:
        return _parse_big(sign, digits, scale, notation)
    # Upstream's test of whether the text is canonical. It ignores signs and zeros in front and
    # accepts some fractions, so "+5", "05" and "5.500k" pass, too, and are printed unchanged.
    is_canonical = scale % 3 == 0 and digits[0] != "0" and not digits.endswith("000")
    canonical = text if is_canonical or text == "0" else ""
    return Quantity(_signed(sign, int(digits)), scale, notation, text=canonical)


def _parse_binary(text: str, sign: str, whole: str, fraction: str, bits: int) -> Quantity:
    # Upstream estimates the decimal digits, 0.3 for each bit of the suffix, and uses an int64 for
    # up to 14.
    if fraction or len(whole) + bits * 3 // 10 > _INT64_DIGITS - 4:
        return _parse_big(sign, whole + fraction, -len(fraction), "BinarySI", bits)
    mantissa = int(whole)
    # Upstream's test: a number that is not divisible by 8 is not divisible by 1024 either, so no
    # larger suffix is possible. For others, the notation is computed when it is printed.
    canonical = text if mantissa & 7 else ""
    return Quantity(_signed(sign, mantissa << bits), 0, "BinarySI", text=canonical)


def _parse_big(sign: str, digits: str, scale: int, notation: Format, bits: int = 0) -> Quantity:
    """Return a quantity that upstream keeps as a big decimal.

    As upstream: a BinarySI amount above the largest int64 is reduced to it, and one below 1 becomes
    DecimalSI.
    """
    amount = int(digits) << bits
    if amount:
        amount, scale = _round_to_nano(amount, scale)
    if notation == "BinarySI" and amount > _INT64_MAX * _power_of_10(-scale):
        amount, scale = _INT64_MAX, 0
    if notation == "BinarySI" and 0 < amount < _power_of_10(-scale):
        notation = "DecimalSI"
    return Quantity(_signed(sign, amount), scale, notation, is_big=True)


def _round_to_nano(amount: int, scale: int) -> tuple[int, int]:
    if scale >= _NANO:
        _check_span(scale)
        return _checked_size(amount * _power_of_10(scale - _NANO)), _NANO
    # An amount has fewer digits than this, so that dropping more of them gives the same result.
    digits_dropped = min(_NANO - scale, 2 * TEXT_MAX_CHARS)
    return -(-amount // _power_of_10(digits_dropped)), _NANO


def _power_of_10(exponent: int) -> int:
    power: int = 10**exponent
    return power


def _signed(sign: str, amount: int) -> int:
    return -amount if sign == "-" else amount


def _wrap_int64(value: int) -> int:
    return (value - _INT64_MIN) % 2**64 + _INT64_MIN


def _is_int64(value: int) -> bool:
    return _INT64_MIN <= value <= _INT64_MAX


def _scaled_int64(value: int, shift: int) -> int:
    """int64Amount.AsScaledInt64: on overflow some shifts wrap and others return 0, as upstream.

    The power is limited to 10**20, which exceeds every int64: larger ones give the same result.
    """
    if shift < 0:
        magnitude = -(-abs(value) // _power_of_10(min(-shift, _INT64_DIGITS + 2)))
        return magnitude if value >= 0 else -magnitude
    if shift in _WRAPPING_SHIFTS:
        return _wrap_int64(value * _power_of_10(shift))
    scaled = value * _power_of_10(min(shift, _INT64_DIGITS + 2))
    return scaled if _is_int64(scaled) else 0


def _scaled_big(unscaled: int, shift: int) -> int:
    """scaledValue of scale_int.go of 1.34, which tests whether an amount is small without `abs`.

    So upstream treats every negative amount as an int64; one that does not fit wraps.
    """
    if shift >= 0:
        # Go converts a float beyond int64 to the smallest int64.
        factor = _power_of_10(shift) if shift <= _INT64_DIGITS else _INT64_MIN
        return _wrap_int64(_wrap_int64(unscaled) * factor) if shift else _wrap_int64(unscaled)
    divisor = _power_of_10(-shift)
    if unscaled < _INT64_MAX:
        small = _wrap_int64(unscaled)
        quotient = abs(small) // divisor * (1 if small >= 0 else -1)
        return quotient + (small % divisor != 0)
    return _wrap_int64(-(-unscaled // divisor))


def _check_span(digits: int) -> None:
    if digits > EXPONENT_SPAN_MAX:
        raise QuantityError(f"quantities must not differ by more than {EXPONENT_SPAN_MAX} digits")


def _checked_size(amount: int) -> int:
    if abs(amount) >= _AMOUNT_LIMIT:
        raise QuantityError(f"quantities must have no more than {DIGITS_MAX} digits")
    return amount


def _digits_before_point(quantity: Quantity) -> int:
    return len(str(abs(quantity.unscaled))) + quantity.exponent


def _aligned(left: Quantity, right: Quantity) -> tuple[int, int, int]:
    """Return both amounts in units of one power of ten, and the exponent of this power."""
    exponent = min(left.exponent, right.exponent)
    _check_span(max(left.exponent, right.exponent) - exponent)
    left_amount = left.unscaled * _power_of_10(left.exponent - exponent)
    right_amount = right.unscaled * _power_of_10(right.exponent - exponent)
    return left_amount, right_amount, exponent


def _sum(left: Quantity, right: Quantity, factor: int) -> Quantity:
    """Return left + factor * right; factor: 1 or -1."""
    notation = left.format if left.unscaled else right.format
    if not (left.is_big or right.is_big):
        if not right.unscaled:
            return Quantity(left.unscaled, left.exponent, notation)
        if not left.unscaled:
            return Quantity(factor * right.unscaled, right.exponent, notation)
    left_amount, right_amount, exponent = _aligned(left, right)
    total = _checked_size(left_amount + factor * right_amount)
    fits_int64 = all(_is_int64(each) for each in (left_amount, right_amount, total))
    is_big = left.is_big or right.is_big or not fits_int64
    return Quantity(total, exponent, notation, is_big)


def _without_trailing_zeros(unscaled: int, exponent: int) -> tuple[int, int]:
    if not unscaled:
        return 0, 0
    digits = str(unscaled)
    stripped = digits.rstrip("0")
    return int(stripped), exponent + len(digits) - len(stripped)


def _canonical(quantity: Quantity) -> str:
    if not quantity.unscaled:
        return "0"
    unscaled, exponent = _without_trailing_zeros(quantity.unscaled, quantity.exponent)
    if quantity.format == "BinarySI" and exponent >= 0:
        whole = unscaled * _power_of_10(exponent)
        if abs(whole) >= 1024:
            return _binary_string(whole)
    # Each third power of ten up to 18 has a suffix, so the exponent is reduced to a multiple of 3.
    # As in upstream 1.34, a larger exponent is dropped: 10**21 prints "1" (later corrected there:
    # kubernetes/kubernetes#140459).
    remainder = exponent % 3
    mantissa, exponent = unscaled * _power_of_10(remainder), exponent - remainder
    if quantity.format == "DecimalExponent":
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_NAMES.get(exponent, '')}"


def _binary_string(whole: int) -> str:
    bits = 0
    while whole % 1024 == 0:
        whole, bits = whole >> 10, bits + 10
    # As in upstream 1.34, an exponent above that of Ei is dropped: 2**70 prints "1".
    return f"{whole}{_BINARY_NAMES.get(bits, '')}"
