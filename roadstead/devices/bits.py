"""Sets of devices of a pool as bits of an integer, by the position of the device.

An operation on an integer takes time in proportion to its length; pools may have 100,000 devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

_CHUNK_BYTES: Final = 64


def positions_of(bits: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, from the lowest.

    In chunks, because each operation on an integer takes time in proportion to its length.
    """
    if bits < 0:
        raise ValueError("negative bits have no end")
    if bits.bit_length() <= 8 * _CHUNK_BYTES:
        yield from _positions_in(bits, 0)
        return
    data = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    for start in range(0, len(data), _CHUNK_BYTES):
        yield from _positions_in(
            int.from_bytes(data[start : start + _CHUNK_BYTES], "little"), 8 * start
        )


def _positions_in(bits: int, start: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield start + low.bit_length() - 1
        bits ^= low


def bits_of(positions: Iterable[int], size: int) -> int:
    """Return the bits at positions below `size`."""
    if size <= 8 * _CHUNK_BYTES:
        bits = 0
        for position in positions:
            bits |= 1 << position
        return bits
    data = bytearray((size + 7) // 8)
    for position in positions:
        data[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(data, "little")
