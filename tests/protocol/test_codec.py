"""A decoded message equals the encoded one, and anything else is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Literal

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.codec import Envelope, from_wire, to_wire
from roadstead.protocol.plain_data import MSGPACK_DEPTH_MAX, CodecError, DecodeLimits, pack, unpack


class Colour(IntEnum):
    RED = 1
    BLUE = 2


class Word(Enum):
    YES = "yes"


@dataclass(frozen=True, slots=True)
class Inner:
    text: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Outer:
    flag: bool
    blob: bytes
    colour: Colour
    word: Word
    mode: Literal["fit", "row"]
    pair: tuple[str, int]
    many: tuple[Inner, ...]
    pairs: tuple[tuple[Inner, int], ...]
    by_name: dict[str, Inner]
    counts: dict[str, int]
    inner: Inner | None
    anything: object


@dataclass(frozen=True, slots=True)
class Strange:
    value: complex


OUTER = Outer(
    True, b"\x00", Colour.BLUE, Word.YES, "row", ("a", 1), (Inner("x", 1.5),), ((Inner("y"), 2),),
    {"k": Inner("z")}, {"n": 3}, None, ["free", {"form": 1}],
)  # fmt: skip

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(PLAIN)
def test_plain_data_is_decoded_unchanged(value: object) -> None:
    assert unpack(pack(value)) == value


# Facts hold 64-bit integers only: quantities are cut to that, everything else is smaller.
st.register_type_strategy(int, st.integers(-(2**63), 2**63 - 1))


@given(st.from_type(PodFacts))
def test_pod_facts_are_decoded_unchanged(facts: PodFacts) -> None:
    assert from_wire(PodFacts, unpack(pack(to_wire(facts)))) == facts


@given(st.from_type(NodeFacts))
def test_node_facts_are_decoded_unchanged(facts: NodeFacts) -> None:
    assert from_wire(NodeFacts, unpack(pack(to_wire(facts)))) == facts


def test_nested_classes_enums_literals_and_maps_are_decoded_unchanged() -> None:
    assert from_wire(Outer, unpack(pack(to_wire(OUTER)))) == OUTER
    assert from_wire(Outer, to_wire(OUTER)) == OUTER


@given(st.text(), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.text(), PLAIN)
def test_envelopes_are_decoded_unchanged(
    kind: str, seq: int, epoch: int, token: str, body: object
) -> None:
    envelope = Envelope(kind, seq, epoch, token, body)
    assert Envelope.decode(envelope.encode()) == envelope


@given(st.binary())
def test_any_bytes_are_decoded_or_raise_a_codec_error(data: bytes) -> None:
    try:
        found = Envelope.decode(data)
    except CodecError:
        return
    assert isinstance(found, Envelope)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not msgpack"),
        (b"\x91" * 100_000 + b"\xc0", "nested deeper"),
        (b"\x81\xa1a" * 100_000 + b"\xc0", "nested deeper"),
        (b"\xc0\xc0", "extra data"),
        (b"\xd4\x01\x00", "extension type 1"),
        (b"\xd6\xff\x00\x00\x00\x00", "extension type -1"),
        (b"\x92\x01\x91\xd7\xff" + bytes(8), "extension type -1"),
        (b"\xc7\x0c\xff" + bytes(12), "extension type -1"),
        (b"\xdd\xff\xff\xff\xff", "not msgpack"),
        (b"\xdf\xff\xff\xff\xff", "not msgpack"),
        (b"\xc6\xff\xff\xff\xff", "not msgpack"),
        (b"\xdb\xff\xff\xff\xff", "not msgpack"),
        (b"\x82\xa1a\x01\xa1a\x02", "same key twice"),
        (b"\x81\x01\x02", "int is not allowed"),
        (b"\x81\x90\x02", "not msgpack"),
        (b"\xa1\xff", "not msgpack"),
        (b"\xc1", "not msgpack"),
    ],
)
def test_malformed_bytes_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        unpack(data)


def test_limits_of_bytes_items_and_depth_are_enforced() -> None:
    nested: Any = [[[[1, 2], {"a": [3]}]]]
    assert unpack(pack(nested), DecodeLimits(max_depth=6, max_items=9)) == nested
    with pytest.raises(CodecError, match="nested deeper than 3"):
        unpack(pack(nested), DecodeLimits(max_depth=3))
    with pytest.raises(CodecError, match="more than 5 items"):
        unpack(pack(nested), DecodeLimits(max_items=5))
    with pytest.raises(CodecError, match="bytes are more than 4"):
        unpack(pack(nested), DecodeLimits(max_bytes=4))
    assert DecodeLimits().max_depth <= MSGPACK_DEPTH_MAX


@pytest.mark.parametrize("value", [object(), 2**64, {1, 2}, "\ud800", 1j, [object()]])
def test_values_that_can_not_be_encoded_are_refused(value: object) -> None:
    with pytest.raises(CodecError, match="cannot be packed"):
        pack(value)


def test_data_that_contains_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(CodecError, match="cannot be packed"):
        pack(endless)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([2, "k", 0, 0, "t", None], "version 2: only 1"),
        ([True, "k", 0, 0, "t", None], "version True"),
        (["1", "k", 0, 0, "t", None], "version"),
        ([1, "k", 0, 0, "t"], "want a list of 5"),
        ([1, "k", 0, 0, "t", None, None], "want a list of 5"),
        ([1, 7, 0, 0, "t", None], r"Envelope\.kind: want str, got 7"),
        ([1, "k", True, 0, "t", None], r"Envelope\.seq: want int, got True"),
        ([1, "k", 0, 1.0, "t", None], r"Envelope\.epoch"),
        ([], "not an envelope"),
        ({"v": 1}, "not an envelope"),
        (None, "not an envelope"),
    ],
)
def test_envelopes_of_other_shapes_are_refused(parts: object, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        Envelope.decode(msgpack.packb(parts))


@pytest.mark.parametrize(
    ("index", "value", "message"),
    [
        (0, 1, r"Outer\.flag: want bool"),
        (1, "text", r"Outer\.blob: want bytes"),
        (2, 9, r"Outer\.colour: want a Colour"),
        (2, [1], r"Outer\.colour: want a Colour"),
        (3, 1, r"Outer\.word: want a Word"),
        (4, "all", r"Outer\.mode: want one of"),
        (5, ["a"], r"Outer\.pair: want a list of 2"),
        (5, "ab", r"Outer\.pair: want a list of 2"),
        (6, {}, r"Outer\.many: want a list"),
        (6, [["x", math.nan]], r"Outer\.many: Inner\.score: want a finite number"),
        (6, [["x", math.inf]], r"Outer\.many: Inner\.score: want a finite number"),
        (6, [["x", "1"]], r"Outer\.many: Inner\.score: want a finite number"),
        (8, [], r"Outer\.by_name: want a map"),
        (8, {1: 2}, r"Outer\.by_name: want a map"),
        (8, {"k": None}, r"Outer\.by_name: Inner: want a list of 2"),
        (10, [1, 2, 3], r"Outer\.inner: Inner: want a list of 2"),
    ],
)
def test_a_field_of_another_type_is_refused_by_name(
    index: int, value: object, message: str
) -> None:
    data = to_wire(OUTER)
    data[index] = value
    with pytest.raises(CodecError, match=message):
        from_wire(Outer, data)


def test_integers_are_read_as_floats_where_floats_are_expected() -> None:
    score = from_wire(Inner, ["x", 2]).score
    assert score == 2.0
    assert isinstance(score, float)


@dataclass(frozen=True, slots=True)
class Words:
    words: tuple[str, ...]


def test_sequences_of_plain_values_are_checked_one_by_one_if_one_is_wrong() -> None:
    assert from_wire(Words, unpack(pack([["a", "b"]]), typed=True)) == Words(("a", "b"))
    assert from_wire(Words, [("a",)]) == Words(("a",))
    with pytest.raises(CodecError, match=r"Words\.words: want str, got 1"):
        from_wire(Words, [["a", 1]])
    with pytest.raises(CodecError, match=r"Words\.words: want a list"):
        from_wire(Words, ["ab"])


@dataclass(frozen=True, slots=True)
class Rows:
    rows: tuple[tuple[str, int], ...]


@given(st.lists(st.tuples(st.text(max_size=2), st.integers(0, 9)), max_size=4))
def test_rows_of_plain_values_are_decoded_as_rows(rows: list[tuple[str, int]]) -> None:
    known = Rows(tuple(rows))
    assert from_wire(Rows, unpack(pack(to_wire(known)))) == known


@pytest.mark.parametrize("wrong", [["a"], ["a", 1, 2], ["a", True], [1, 1], "ab", None])
def test_one_wrong_row_among_others_is_refused(wrong: object) -> None:
    with pytest.raises(CodecError, match=r"Rows\.rows"):
        from_wire(Rows, [[["a", 1], wrong, ["b", 2]]])


def test_values_decoded_into_types_are_checked_by_the_types_alone() -> None:
    stamp = b"\x91\x91\xd6\xff\x00\x00\x00\x00"
    with pytest.raises(CodecError, match=r"Words\.words: want str"):
        from_wire(Words, unpack(stamp, typed=True))


def test_nan_is_refused_at_encoding_too() -> None:
    with pytest.raises(CodecError, match="finite"):
        to_wire(Inner("x", math.nan))


def test_facts_decoded_as_another_type_are_refused() -> None:
    with pytest.raises(CodecError, match="PodIdentity"):
        from_wire(PodIdentity, to_wire(NodeFacts("n")))


def test_a_class_with_a_type_that_can_not_be_encoded_is_an_error_in_the_class() -> None:
    with pytest.raises(TypeError, match="complex"):
        from_wire(Strange, [1])
