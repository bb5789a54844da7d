"""Every message, and every journal record, survives the wire; cut or changed ones are refused.

Examples are built from the types of the fields, so that a new message is tested with no more code.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.filter_rules import Rules
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.facts.run_mark import RunMark
from roadstead.protocol.codec import Envelope, from_wire, to_wire
from roadstead.protocol.plain_data import MSGPACK_DEPTH_MAX, CodecError, DecodeLimits, pack, unpack
from tests.protocol.test_codec import OUTER, Outer
from tests.protocol.test_hostile_messages import MESSAGES, decoded

INT64_MAX = 2**63 - 1
RECORDED = [NodeFacts, PodFacts, PodIdentity, ClusterFacts, BoundClaims, Rules, RunMark]
"""Classes whose names and fields are data in a journal."""
SENT = [*MESSAGES, *(each for each in RECORDED if each not in MESSAGES)]

LEAVES: dict[object, tuple[object, object]] = {
    str: ("", "ü\x00€" * 9),
    int: (0, INT64_MAX),
    bool: (False, True),
    bytes: (b"", bytes(range(256))),
    float: (0.0, -1.5),
    object: (None, ["any", {"thing": [1, 2.5, b"x"]}]),
    NoneType: (None, None),
}


def example(kind: Any, full: bool) -> Any:
    """Return a value of a type: the emptiest that it allows, or one that uses everything."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in LEAVES:
        return LEAVES[kind][full]
    if origin is Literal:
        return arguments[-1 if full else 0]
    if origin in (Union, UnionType):
        if NoneType in arguments and not full:
            return None
        return example(next(each for each in arguments if each is not NoneType), full)
    if origin is tuple and arguments[-1:] == (Ellipsis,):
        return (example(arguments[0], False), example(arguments[0], True)) if full else ()
    if origin is tuple:
        return tuple(example(each, full) for each in arguments)
    if origin is dict:
        few, many = (example(arguments[1], each) for each in (False, True))
        return {"": few, "key": many} if full else {}
    if issubclass(kind, Enum):
        return [*kind][-1 if full else 0]
    if kind is NodeList:
        # Its columns must agree with each other.
        return NodeList.of([NodeFacts("n1"), NodeFacts("n2", allocatable_pods=1)][: 2 * full])
    assert is_dataclass(kind), f"no example of {kind}"
    hints = get_type_hints(kind)
    return kind(**{each.name: example(hints[each.name], full) for each in fields(kind)})


@pytest.mark.parametrize("full", [False, True], ids=["empty", "full"])
@pytest.mark.parametrize("message", SENT, ids=lambda each: each.__name__)
def test_each_message_is_decoded_unchanged(message: type, full: bool) -> None:
    sent = example(message, full)

    data = pack(to_wire(sent))

    for typed in (False, True):
        assert from_wire(message, unpack(data, typed=typed)) == sent
    envelope = Envelope(message.__name__, INT64_MAX, 0, "token", to_wire(sent)).encode()
    assert from_wire(message, Envelope.decode(envelope).body) == sent, "also in an envelope"


@pytest.mark.parametrize("message", SENT, ids=lambda each: each.__name__)
def test_a_message_with_a_field_more_or_less_is_refused_with_both_lengths(message: type) -> None:
    """A sender of another version has other fields: none may be taken for another."""
    wire = to_wire(example(message, True))

    for other in ([*wire, None], [*wire, *wire, 0], wire[:-1]):
        if len(other) != len(wire):
            with pytest.raises(CodecError, match=f"want a list of {len(wire)}"):
                from_wire(message, other)


@pytest.mark.parametrize("message", SENT, ids=lambda each: each.__name__)
def test_a_message_as_a_map_of_its_fields_is_refused(message: type) -> None:
    names = [each.name for each in fields(message)]
    wire = dict(zip(names, to_wire(example(message, True)), strict=True))

    with pytest.raises(CodecError, match=message.__name__):
        from_wire(message, wire)


@pytest.mark.parametrize("message", SENT, ids=lambda each: each.__name__)
def test_fields_in_another_order_are_refused_or_are_themselves_a_message(message: type) -> None:
    wire = to_wire(example(message, True))

    for shift in range(1, len(wire)):
        moved = wire[shift:] + wire[:shift]
        found = decoded(message, moved)
        # Fields of equal types may change places; no value changes.
        is_whole = isinstance(found, message) and to_wire(found) == moved
        assert is_whole or found.startswith(message.__name__), "the text names the message"


WHOLE = Envelope("kind", 1, 2, "token", to_wire(OUTER)).encode()


def test_an_envelope_cut_at_any_byte_is_refused() -> None:
    for length in range(len(WHOLE)):
        for typed in (False, True):
            with pytest.raises(CodecError):
                Envelope.decode(WHOLE[:length], typed=typed)


def test_no_flipped_bit_of_an_envelope_raises_anything_but_a_codec_error() -> None:
    refused = 0
    for place in range(len(WHOLE)):
        for bit in range(8):
            data = bytearray(WHOLE)
            data[place] ^= 1 << bit
            try:
                body = Envelope.decode(bytes(data), typed=True).body
            except CodecError:
                refused += 1
                continue
            found = decoded(Outer, body)
            refused += not isinstance(found, Outer)
    assert refused > len(WHOLE), "most changes are noticed"


@pytest.mark.parametrize("header", [b"\xdd", b"\xdf", b"\xc6", b"\xdb", b"\xdc", b"\xde"])
@pytest.mark.parametrize("before", [b"", b"\x91", b"\x91" * 50, b"\x81\xa1a"])
def test_a_claimed_length_costs_no_memory(header: bytes, before: bytes) -> None:
    """A few bytes that announce four billion elements must not reserve room for them."""
    claim = b"\xff\xff" if header in (b"\xdc", b"\xde") else b"\xff\xff\xff\xff"
    tracemalloc.start()
    try:
        with pytest.raises(CodecError):
            unpack(before + header + claim + b"\x01")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 4 * 1024 * 1024, "bytes allocated for a message of a few bytes"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("limit", [1, 2, 30, 500])
def test_the_limit_of_depth_counts_lists_and_maps_alike(limit: int) -> None:
    limits = DecodeLimits(max_depth=limit)
    in_maps: Any = 1
    for _ in range(limit):
        in_maps = {"k": in_maps}

    for deepest in (nested(limit), in_maps):
        assert unpack(pack(deepest), limits) == deepest
        for deeper in ([deepest], {"k": deepest}):
            with pytest.raises(CodecError, match=f"nested deeper than {limit}"):
                unpack(pack(deeper), limits)


def test_msgpack_itself_ends_at_the_documented_depth() -> None:
    found = unpack(b"\x91" * MSGPACK_DEPTH_MAX + b"\x01")
    depth = 0
    # Not by `==`, which recurses.
    while isinstance(found, list):
        depth, found = depth + 1, found[0]
    assert (depth, found) == (MSGPACK_DEPTH_MAX, 1)

    with pytest.raises(CodecError, match=f"nested deeper than {MSGPACK_DEPTH_MAX}"):
        unpack(b"\x91" * (MSGPACK_DEPTH_MAX + 1) + b"\x01")


def test_items_of_all_lists_and_maps_count_together() -> None:
    value = [[1, 2], {"a": [3, 4], "b": 5}, []]
    items = 3 + 2 + 2 + 2

    assert unpack(pack(value), DecodeLimits(max_items=items)) == value
    with pytest.raises(CodecError, match=f"more than {items - 1} items"):
        unpack(pack(value), DecodeLimits(max_items=items - 1))


@pytest.mark.parametrize("key", [b"a", b"", 1, -1, 2.5, None, True])
@pytest.mark.parametrize("wrap", [lambda each: each, lambda each: [each], lambda each: {"k": each}])
def test_keys_of_maps_are_text_at_any_depth(key: object, wrap: Any) -> None:
    data = msgpack.packb(wrap({key: 1}), use_bin_type=True)

    for typed in (False, True):
        with pytest.raises(CodecError):
            unpack(data, typed=typed)


def test_a_key_as_bytes_beside_the_same_text_is_refused() -> None:
    """Two keys that a reader may confuse, with different values."""
    with pytest.raises(CodecError, match="a key of a map is not text"):
        unpack(b"\x82\xc4\x01a\x02\xa1a\x03")


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Choice:
    value: str | int


@pytest.mark.parametrize("value", ["", "x", 0, 2**63, True, 1.0, None, b"x", [], ["x"], {"x": 1}])
def test_a_field_of_several_plain_types_accepts_exactly_these(value: Any) -> None:
    if type(value) in (str, int):
        assert from_wire(Choice, [value]) == Choice(value)
    else:
        with pytest.raises(CodecError, match=r"Choice\.value: want one of 2 plain types"):
            from_wire(Choice, [value])


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), float("-inf"), True, "1", None, [1.0], b"1"]
)
def test_nan_and_infinity_are_refused_in_both_directions(value: Any) -> None:
    with pytest.raises(CodecError, match="want a finite number"):
        from_wire(Number, [value])
    with pytest.raises(CodecError, match="want a finite number"):
        to_wire(Number(value))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_decoded_bit_for_bit(value: float) -> None:
    (found,) = to_wire(from_wire(Number, unpack(pack(to_wire(Number(value))))))

    assert msgpack.packb(found) == msgpack.packb(value), "also the sign of zero"


@given(st.integers(-(2**63), 2**64 - 1))
def test_integers_of_64_bits_are_decoded_unchanged_and_no_others_are_encoded(value: int) -> None:
    assert unpack(pack(value)) == value
    for beyond in (value + 2**65, value - 2**65):
        with pytest.raises(CodecError, match="cannot be packed"):
            pack(beyond)


@pytest.mark.parametrize("version", [0, 2, -1, 1.0, True, "1", None, [1], 2**63])
def test_an_envelope_of_any_other_version_is_refused_before_its_body_is_read(version: Any) -> None:
    with pytest.raises(CodecError, match="only 1 is known"):
        Envelope.decode(pack([version, "kind", 1, 2, "token", "a body of another version"]))


def test_equal_messages_have_equal_bytes() -> None:
    """Digests and duplicate detection compare bytes."""
    for message in SENT:
        one, other = (pack(to_wire(example(message, True))) for _ in range(2))
        assert one == other, message.__name__
