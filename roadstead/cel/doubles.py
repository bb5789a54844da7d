"""Doubles as Go prints them.

Upstream: Go's strconv (FormatFloat).
"""

from __future__ import annotations

import math


def double_text(number: float) -> str:
    """Return a double as Go's `%g` prints it: shortest digits, exponent from seven digits on."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    shortest = repr(abs(number))
    mantissa, _, power = shortest.partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    significant = (whole + fraction).lstrip("0")
    if not significant:
        return "-0" if math.copysign(1, number) < 0 else "0"
    # Number of significant digits before the point; if negative, of zeros after it.
    point = len(whole) + int(power or 0)
    point -= len(whole + fraction) - len((whole + fraction).lstrip("0"))
    significant = significant.rstrip("0")
    sign = "-" if number < 0 else ""
    exponent = point - 1
    if -4 <= exponent < 6:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{significant}"
        padded = significant.ljust(point, "0")
        return sign + padded[:point] + (f".{padded[point:]}" if padded[point:] else "")
    decimals = f".{significant[1:]}" if significant[1:] else ""
    return f"{sign}{significant[0]}{decimals}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
