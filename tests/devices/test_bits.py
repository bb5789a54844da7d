"""Bits of positions, also of pools with very many devices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.devices.bits import bits_of, positions_of


@given(st.sets(st.integers(0, 3000)))
def test_positions_come_back_in_order(positions):
    assert list(positions_of(bits_of(positions, 3001))) == sorted(positions)


def test_positions_are_read_only_as_far_as_needed():
    assert next(positions_of(1 << 100_000 | 1 << 7)) == 7


def test_negative_bits_are_refused():
    with pytest.raises(ValueError, match="no end"):
        next(positions_of(-1))
