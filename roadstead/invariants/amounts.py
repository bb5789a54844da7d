"""Quantities as exact numbers."""

from __future__ import annotations

from fractions import Fraction

from roadstead.protocol.quantity import parse_quantity


def amount_of(text: str) -> Fraction:
    """Return the number that a quantity means."""
    quantity = parse_quantity(text)
    return quantity.unscaled * Fraction(10) ** quantity.exponent
