"""Bounded msgpack: plain data to bytes and back.

Input is not trusted: size, depth and number of items are bounded; extension types, repeated keys
and trailing bytes are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import msgpack

from roadstead.protocol.errors import RoadsteadError, cut_short

MSGPACK_DEPTH_MAX = 1024
"""Nesting depth beyond which msgpack itself refuses."""

_TIMESTAMP = re.compile(rb"[\xd4-\xd8]\xff|\xc7.\xff|\xc8..\xff|\xc9....\xff", re.DOTALL)
"""The first bytes of a timestamp, the one extension type that msgpack decodes itself.

Other data may contain these bytes too.
"""


class CodecError(RoadsteadError):
    """Bytes or data that the wire format does not allow."""


@dataclass(frozen=True, slots=True)
class DecodeLimits:
    """Limits of one message. `max_items` counts the elements of all lists and maps.

    Depth and items are counted one by one only if size and msgpack do not bound them already.
    """

    max_bytes: int = 256 * 1024 * 1024
    max_depth: int = MSGPACK_DEPTH_MAX
    max_items: int = 50_000_000


DEFAULT_LIMITS = DecodeLimits()


def pack(value: object) -> bytes:
    """Encode plain data as msgpack; tuples become lists.

    Raises:
        CodecError: an unsupported type, an integer beyond 64 bits, or nesting that is too deep.
    """
    try:
        return cast("bytes", msgpack.packb(value, use_bin_type=True))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise CodecError(f"cannot be packed: {cut_short(str(error))}") from None


def unpack(data: bytes, limits: DecodeLimits = DEFAULT_LIMITS, *, typed: bool = False) -> object:
    """Decode msgpack to plain data: None, bool, int, float, str, bytes, lists and maps.

    typed: check only the size here; the caller passes the result to `codec.from_wire`, where the
        types of a dataclass's fields bound the depth and refuse every other type.

    Raises:
        CodecError: too long, too deep, too many items, an extension type, a key that is not a
            string, a repeated key in a map, trailing bytes, or not msgpack at all.
    """
    if len(data) > limits.max_bytes:
        raise CodecError(f"{len(data)} bytes are more than {limits.max_bytes}")
    try:
        value = msgpack.unpackb(
            data, strict_map_key=True, ext_hook=_refuse_extension, object_pairs_hook=_unique_keys
        )
    except msgpack.exceptions.StackError:
        raise CodecError(f"nested deeper than {MSGPACK_DEPTH_MAX}") from None
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        text = cut_short(str(error) or type(error).__name__)
        raise CodecError(f"not msgpack: {text}") from None
    if typed:
        return value
    may_hold_timestamps = _TIMESTAMP.search(data) is not None
    if may_hold_timestamps or limits.max_depth < MSGPACK_DEPTH_MAX or limits.max_items < len(data):
        _check_items_and_depth(value, limits)
    return value


def _refuse_extension(code: int, data: bytes) -> object:
    raise CodecError(f"extension type {code} is refused")


def _unique_keys(pairs: list[tuple[object, object]]) -> dict[object, object]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise CodecError("a map has the same key twice")
    # msgpack also accepts bytes, which `strict_map_key` allows.
    if not all(type(key) is str for key in unique):
        raise CodecError("a key of a map is not text")
    return unique


def _check_items_and_depth(value: object, limits: DecodeLimits) -> None:
    items, depth, level = 0, 0, [value]
    while True:
        if any(type(each) is msgpack.Timestamp for each in level):
            raise CodecError("extension type -1 is refused")
        level = [each for parent in level for each in _children(parent)]
        if not level:
            return
        items, depth = items + len(level), depth + 1
        if items > limits.max_items:
            raise CodecError(f"more than {limits.max_items} items")
        if depth > limits.max_depth:
            raise CodecError(f"nested deeper than {limits.max_depth}")


def _children(value: object) -> Iterator[object]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()
