"""Any bytes and any data become a message or a CodecError; limits are exact; errors are short."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import fields
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.actors import messages as _messages  # noqa: F401
from roadstead.actors.interface import METHODS
from roadstead.facts.pod import PodFacts
from roadstead.protocol.codec import Envelope, from_wire, to_wire
from roadstead.protocol.plain_data import CodecError, DecodeLimits, pack, unpack
from tests.protocol.test_codec import OUTER, PLAIN, Inner, Outer

MESSAGES = sorted(
    {each for method in METHODS.values() for each in (method.message, method.reply)},
    key=lambda each: each.__name__,
)
ERROR_MAX_CHARS = 1000

HOSTILE: list[Any] = [
    *(None, True, 0, -1, 2**63, 1.5, math.nan, "", "x" * 50_000, b"", b"\xff" * 7),
    *([], [[]], [None], ["a", 1], {}, {"a": 1}, {"a": []}, {1: "a"}),
]
"""Data of any type in place of a message and of each of its fields."""


def places(data: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of each value inside lists and maps."""
    keys = range(len(data)) if isinstance(data, list) else data if isinstance(data, dict) else ()
    here = [(data, key) for key in keys]
    return here + [place for container, key in here for place in places(container[key])]


def replaced(data: Any, number: int, value: object) -> Any:
    """Return a copy of the data in which one value is another one."""
    copy = unpack(pack(data))
    container, key = places(copy)[number]
    container[key] = value
    return copy


def decoded(message: type, data: object) -> Any:
    """Return the message, or the text of the CodecError."""
    try:
        return from_wire(message, data)
    except CodecError as error:
        text = str(error)
    assert len(text) < ERROR_MAX_CHARS
    return text


@given(st.data(), PLAIN)
def test_a_message_with_one_foreign_value_is_decoded_or_refused(
    data: st.DataObject, value: object
) -> None:
    wire = to_wire(OUTER)
    number = data.draw(st.integers(0, len(places(unpack(pack(wire)))) - 1))
    found = decoded(Outer, replaced(wire, number, value))
    if isinstance(found, Outer):
        assert from_wire(Outer, unpack(pack(to_wire(found)))) == found
    else:
        assert found.startswith("Outer.")


@given(st.data())
def test_each_prefix_of_a_message_is_refused(data: st.DataObject) -> None:
    whole = Envelope("kind", 1, 2, "token", to_wire(OUTER)).encode()
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CodecError):
        Envelope.decode(whole[:length])


@given(st.binary(min_size=1, max_size=8))
def test_bytes_after_a_message_are_refused(more: bytes) -> None:
    with pytest.raises(CodecError, match="extra data"):
        Envelope.decode(Envelope("kind", 1, 2, "token").encode() + more)


@given(st.data(), st.integers(0, 255))
def test_a_changed_byte_gives_an_envelope_or_a_codec_error(data: st.DataObject, byte: int) -> None:
    whole = bytearray(Envelope("kind", 1, 2, "token", to_wire(OUTER)).encode())
    whole[data.draw(st.integers(0, len(whole) - 1))] = byte
    for typed in (False, True):
        with suppress(CodecError):
            decoded(Outer, Envelope.decode(bytes(whole), typed=typed).body)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda each: each.__name__)
def test_any_data_is_a_message_or_is_refused_with_its_name(message: type) -> None:
    each_alike = [[value] * len(fields(message)) for value in HOSTILE]
    for data in (*HOSTILE, *each_alike):
        found = decoded(message, data)
        assert isinstance(found, message) or found.startswith(message.__name__)


def size_of(data: object) -> tuple[int, int]:
    """Return (elements of all lists and maps, depth of nesting)."""
    parts = data if isinstance(data, list) else data.values() if isinstance(data, dict) else ()
    sizes = [size_of(each) for each in parts]
    items = len(sizes) + sum(items for items, _ in sizes)
    return items, 1 + max(depth for _, depth in sizes) if sizes else 0


@given(PLAIN)
def test_limits_accept_data_of_exactly_their_size_and_no_more(value: object) -> None:
    data = pack(value)
    items, depth = size_of(value)
    exact = DecodeLimits(max_bytes=len(data), max_items=items, max_depth=depth)
    assert unpack(data, exact) == value
    less = [DecodeLimits(max_bytes=len(data) - 1)]
    if items:
        less += [DecodeLimits(max_items=items - 1), DecodeLimits(max_depth=depth - 1)]
    for limits in less:
        with pytest.raises(CodecError):
            unpack(data, limits)


@pytest.mark.parametrize("typed", [False, True])
def test_an_extension_anywhere_in_a_message_is_refused(typed: bool) -> None:
    for number in range(len(places(unpack(pack(to_wire(Inner("x", 1.0))))))):
        wire: list[Any] = to_wire(Inner("x", 1.0))
        wire[number] = msgpack.ExtType(5, b"abc")
        with pytest.raises(CodecError, match="extension type 5"):
            unpack(msgpack.packb(wire), typed=typed)


def test_an_error_cuts_a_long_value_short() -> None:
    for value in ("x" * 100_000, [1] * 100_000, {"k" * 50_000: 1}, 2**63):
        with pytest.raises(CodecError) as refused:
            from_wire(PodFacts, [value])
        assert len(str(refused.value)) < ERROR_MAX_CHARS


def test_the_first_wrong_field_is_named_if_several_are_wrong() -> None:
    with pytest.raises(CodecError, match=r"^Inner\.text: want str, got 1$"):
        from_wire(Inner, [1, "much"])
