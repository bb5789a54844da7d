"""Groups of records as bytes: written groups are read back, and invalid ones are refused."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.run_mark import BEGUN, RunMark
from roadstead.journal import JournalRecord, RecordKind, format_1, frames
from roadstead.journal.frames import (
    HEAD_BYTES,
    MARK,
    FactsTable,
    FrameError,
    FrameKind,
    FramePosition,
    body_of,
    decode,
    frame,
    frame_at,
    later_frames,
)
from roadstead.protocol.plain_data import pack, unpack

PLACE = FramePosition(file_id=0x01020304, digest_before=13, durable_bytes=100)
COLUMNS = (
    *("lsns", "new_facts", "kinds", "uids", "keys"),
    *("nodes", "tokens", "owners", "owner", "facts"),
)
RECORDS = [
    JournalRecord(3, RecordKind.BIND, "u3", "d/a", "n1", "t3", "s0", 1, PodFacts("blue")),
    JournalRecord(4, RecordKind.DELETE, "u4", "d/b", "n2"),
    JournalRecord(6, RecordKind.BIND, "u6", "d/c", "n1", "t6", "s1", 2, PodFacts("red")),
]


def frame_of(body, count):
    """A frame of records as it is read."""
    data, _ = frame(FrameKind.RECORDS, 3, count, PLACE, body)
    return frame_at(memoryview(data), 0)


def decoded(records, table=None):
    body = body_of(records, FactsTable())
    read = frame(FrameKind.RECORDS, records[0].lsn, len(records), PLACE, body)[0]
    return list(decode(frame_at(memoryview(read), 0), table or FactsTable()))


def test_a_frame_has_the_same_bytes_as_in_earlier_releases():
    """Later releases read this journal: kinds keep their numbers, fields their positions."""
    written = {kind.name: frame(kind, 7, 2, PLACE, b"body") for kind in FrameKind}

    for number, (name, crc, digest) in enumerate(
        [
            ("FIELDS", "8467136e", 0x4ED37A774E224466),
            ("RECORDS", "e4587234", 0x7D7E91D4F1DD6C94),
            ("FLUSHED", "fb4f82b4", 0xDB08651D3AE02AD6),
            ("CLOSED", "2426b080", 0x37B6A4631B5C6442),
            ("CONTINUED", "3b314000", 0x9AECF78143B43E21),
        ],
        1,
    ):
        numbers = "0403020107000000000000000200000" + "00d00000000000000" + "6400000000000000"
        whole = f"f2524a0a04000000{crc}0{number}{numbers}626f6479"
        assert written[name] == (bytes.fromhex(whole), digest)
    kinds = unpack(
        body_of(
            [record._replace(kind=kind) for kind in RecordKind for record in RECORDS[1:2]],
            FactsTable(),
        )
    )[2]
    assert kinds == bytes(range(10))


subjects = st.sampled_from([None, NodeFacts("n1"), NodeFacts("n2"), RunMark(BEGUN, "digest")])
some_records = st.lists(
    st.builds(
        JournalRecord,
        lsn=st.integers(1, 9),
        kind=st.sampled_from(RecordKind),
        uid=st.sampled_from(["a", "b", "c"]),
        key=st.sampled_from(["a", "b", "c"]),
        node_name=st.sampled_from(["", "n1"]),
        token=st.sampled_from(["", "t1"]),
        owner=st.sampled_from(["", "s0", "s1"]),
        epoch=st.integers(0, 2),
        facts=st.none(),
        subject=st.none(),
    ).flatmap(
        lambda record: st.one_of(
            st.sampled_from([None, PodFacts(), PodFacts("blue")]).map(
                lambda facts: record._replace(facts=facts)
            ),
            subjects.map(lambda subject: record._replace(subject=subject)),
        )
    ),
    min_size=1,
    max_size=6,
)


@given(some_records, st.booleans())
def test_any_records_are_read_as_they_were_written(records, follow_one_another):
    if follow_one_another:
        records = [each._replace(lsn=lsn) for lsn, each in enumerate(records, records[0].lsn)]

    assert decoded(records) == records


def test_a_pod_without_a_uid_has_its_key_as_uid():
    record = RECORDS[1]._replace(uid="", key="d/b")

    assert decoded([record]) == [record._replace(uid="d/b")]


def test_facts_are_written_once_and_read_as_one_shared_object():
    table, news = FactsTable(), FactsTable()
    records = [each._replace(facts=PodFacts("blue")) for each in RECORDS]
    bodies = [body_of(records, news), body_of(records, news)]

    found = [each for body in bodies for each in decode(frame_of(body, 3), table)]

    assert [len(unpack(body)[1]) for body in bodies] == [1, 0]
    assert len({id(each.facts) for each in found}) == 1
    assert len(table.facts) == 1


def spoiled(column, change):
    """The body of the records with one column changed."""
    body = unpack(body_of(RECORDS, FactsTable()))
    place = COLUMNS.index(column)
    body[place] = change(body[place])
    return frame_of(pack(body), len(RECORDS))


@pytest.mark.parametrize(
    "column", ["lsns", "kinds", "uids", "keys", "nodes", "tokens", "owner", "facts"]
)
@pytest.mark.parametrize("change", [lambda c: c[:-1], lambda c: c + c[:1]])
def test_columns_of_different_lengths_are_refused(column, change):
    with pytest.raises(FrameError, match="3 records has columns of other lengths"):
        decode(spoiled(column, change), FactsTable())


@pytest.mark.parametrize(
    ("column", "numbers", "text"),
    [
        ("owner", [0, 1, 3], "an owner that it does not list"),
        ("owner", [0, 1, -1], "an owner that it does not list"),
        ("facts", [0, -1, 2], "facts that its segment has not defined"),
        ("facts", [0, -2, 1], "facts that its segment has not defined"),
        ("kinds", bytes([0, 1, 10]), "a record of no known kind"),
    ],
)
def test_numbers_without_a_target_are_refused(column, numbers, text):
    with pytest.raises(FrameError, match=text):
        decode(spoiled(column, lambda _: numbers), FactsTable())


def test_the_first_complete_frame_is_found_at_any_offset():
    data, _ = frame(FrameKind.FLUSHED, 7, 0, PLACE)
    torn = data[:-1]

    for before in (b"", b"x", b"garbage", MARK, MARK + MARK + b"x", torn, torn + b"rest"):
        whole = memoryview(before + data + torn)
        places = [(each.offset, each.end) for each in later_frames(whole, 0)]
        assert places == [(len(before), len(before) + len(data))]
        assert [each.offset for each in later_frames(whole, len(before))] == [len(before)]
        assert not list(later_frames(whole, len(before) + 1))


def test_all_later_frames_are_found_in_one_search():
    data, _ = frame(FrameKind.FLUSHED, 7, 0, PLACE)
    whole = memoryview(b"rest" + data + data + data[:-1] + data)
    size = len(data)

    found = [each.offset for each in later_frames(whole, 2)]

    assert found == [4, 4 + size, 4 + 3 * size - 1]


@pytest.mark.parametrize("offset", range(HEAD_BYTES + 4))
def test_a_frame_with_any_changed_byte_is_rejected(offset):
    data = bytearray(frame(FrameKind.RECORDS, 7, 2, PLACE, b"body")[0])
    assert frame_at(memoryview(data), 0) is not None

    data[offset] ^= 0xFF

    assert frame_at(memoryview(data), 0) is None
    assert frame_at(memoryview(data)[:offset], 0) is None


def frame_1(body):
    """A frame as earlier releases wrote it."""
    checked = struct.pack("<QIQ", 7, 2, 6) + body
    return struct.pack("<4sII", format_1.MARK, len(body), zlib.crc32(checked)) + checked


@pytest.mark.parametrize("body", [b"", b"body"])
def test_a_frame_of_format_1_is_found_completely_or_not_at_all(body):
    data = frame_1(body)

    for before in (b"", b"garbage"):
        found = format_1.frame_at(memoryview(before + data + b"rest"), len(before))
        assert format_1.frame_at(memoryview(before + data), len(before)) is not None
        assert (found.end, found.first_lsn, found.count) == (len(before + data), 7, 2)
        assert (found.kind, found.durable_lsn) == (FrameKind.RECORDS, 6)
        assert bytes(found.body) == body
        assert [found.confirms(0, lsn, 0) for lsn in (6, 7)] == [True, False]
    for offset in range(len(data)):
        changed = bytearray(data)
        changed[offset] ^= 0xFF
        assert format_1.frame_at(memoryview(changed), 0) is None
        assert format_1.frame_at(memoryview(data)[:offset], 0) is None


@pytest.mark.parametrize("layout", [frames, format_1])
def test_an_oversized_frame_is_rejected(layout, monkeypatch):
    data = {frames: frame(FrameKind.RECORDS, 7, 2, PLACE, b"body")[0], format_1: frame_1(b"body")}

    for most, is_found in ((4, True), (3, False)):
        monkeypatch.setattr(layout, "MAX_FRAME_BYTES", most)
        assert (layout.frame_at(memoryview(data[layout]), 0) is not None) is is_found


def test_a_frame_without_a_body_is_found_at_the_end_of_a_file():
    data, _ = frame(FrameKind.FLUSHED, 7, 0, PLACE)

    assert frame_at(memoryview(data), 0).end == HEAD_BYTES == len(data)


def test_a_frame_of_an_unknown_kind_is_rejected():
    data, _ = frame(9, 7, 2, PLACE)

    assert frame_at(memoryview(data), 0) is None


@pytest.mark.parametrize(
    ("segment", "offset", "vouches"),
    [(PLACE.file_id, 99, True), (PLACE.file_id, 100, False), (7, 99, False), (7, 100, False)],
)
def test_a_frame_confirms_durable_bytes_of_its_own_file_only(segment, offset, vouches):
    read = frame_of(b"", 2)

    assert read.confirms(offset, 0, segment) is vouches
    assert (read.first_lsn, read.last_lsn) == (3, 4)
