"""Frames: what the files of a journal consist of, and how frames are found again in them.

    mark │ length u32 │ crc32 u32 │ kind u8 │ segment u32 │ first lsn u64 │ records u32
         │ digest before u64 │ durable bytes u64 │ body

The checksum covers all that follows it. A group of records is one frame, written and found whole or
not at all, which is how it is acknowledged. The frames of a journal are a chain: each says which
digest the frames before it have, so that one that is missing, or was written elsewhere, is noticed.
`durable bytes` says how much of the file had been flushed when the frame was written. After each
flush a frame of its own says so: a broken frame that a later one vouches for is rotten, one behind
all that was vouched for may have been torn when the machine stopped.

    FIELDS      the first frame of a file: the shape of its records (fields.py)
    RECORDS     a group of records
    FLUSHED     all before it is durable
    CLOSED      the writer ended in order: so many records were written, with this digest
    CONTINUED   another segment follows, which is there: this one gets no more

The body of RECORDS holds columns, so that a million records are read in seconds: kinds as bytes,
names as lists, owners once, and facts once per file (`FactsTable`).
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeVar

from roadstead.facts.pod import PodFacts
from roadstead.journal.columns import RecordColumns
from roadstead.journal.fields import FACTS, Facts, FactsBuilder, builder_of, present_fields
from roadstead.journal.headers import Header
from roadstead.journal.records import JournalRecord, RecordKind
from roadstead.protocol.codec import Limits, from_wire, pack, to_wire, unpack
from roadstead.protocol.errors import RoadsteadError

MARK = b"\xf2RJ\n"
_CHECKED = struct.Struct("<BIQIQQ")
_HEAD = struct.Struct("<4sII")
_LINK = struct.Struct("<QI")
HEAD_BYTES = _HEAD.size + _CHECKED.size
MAX_FRAME_BYTES = 64 * 1024 * 1024
MAX_FRAME_RECORDS = 65_536

_KINDS = tuple(RecordKind)
_LIMITS = Limits(max_bytes=MAX_FRAME_BYTES, max_items=32 * MAX_FRAME_RECORDS, max_depth=8)
NO_FACTS = -1

Named = TypeVar("Named")


class FrameError(RoadsteadError):
    """Bytes are no frame, or a frame whose body makes no sense."""


class FrameKind(IntEnum):
    FIELDS = 1
    RECORDS = 2
    FLUSHED = 3
    CLOSED = 4
    CONTINUED = 5


_FRAME_KINDS = frozenset(FrameKind)


@dataclass(slots=True)
class FactsTable:
    """Facts by number, in the order in which a file first names them.

    builder: makes them from what the file holds. known: facts that other files named, so that those
    that are equal are one object.
    """

    builder: FactsBuilder = field(default_factory=lambda: builder_of(present_fields()))
    facts: list[Facts] = field(default_factory=list)
    numbers: dict[Facts, int] = field(default_factory=dict)
    known: dict[Facts, Facts] = field(default_factory=dict)

    def number(self, facts: Facts | None, news: list[tuple[int, bytes]]) -> int:
        """The number of facts; what is new goes to `news` with its kind."""
        if facts is None:
            return NO_FACTS
        found = self.numbers.get(facts)
        if found is None:
            found = self.numbers[facts] = len(self.facts)
            self.facts.append(facts)
            news.append((FACTS.index(type(facts)), pack(to_wire(facts))))
        return found

    def learn(self, kind: int, data: bytes) -> None:
        """Facts that a frame defines. FrameError, or the codec's error, where they are none."""
        if not 0 <= kind < len(self.builder):
            raise FrameError("a frame defines facts of no known kind")
        facts = self.builder.build(kind, unpack(data, _LIMITS, typed=True))
        self.number(self.known.setdefault(facts, facts), [])


@dataclass(frozen=True, slots=True)
class _Body:
    """The columns of a frame.

    lsns: empty where they follow one another. uids: "" where the uid is the key. owners: (owner,
    epoch).
    """

    lsns: tuple[int, ...]
    new_facts: tuple[tuple[int, bytes], ...]
    kinds: bytes
    uids: tuple[str, ...]
    keys: tuple[str, ...]
    nodes: tuple[str, ...]
    tokens: tuple[str, ...]
    owners: tuple[tuple[str, int], ...]
    owner: tuple[int, ...]
    facts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a journal a frame belongs. segment: see `Header`. before: the digest up to it."""

    segment: int
    before: int
    durable_bytes: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as it is in a file. end: the offset behind it; after: the digest with it.

    place: None in format 1, whose frames say in durable_lsn what was durable.
    """

    offset: int
    end: int
    kind: FrameKind
    first_lsn: int
    count: int
    body: memoryview
    place: Place | None = None
    after: int = 0
    durable_lsn: int = 0

    @property
    def last_lsn(self) -> int:
        return self.first_lsn + self.count - 1

    def vouches_for(self, offset: int, lsn: int, segment: int) -> bool:
        """Whether it says that what is at an offset of its file, or a record, was durable."""
        if self.place is None:
            return self.durable_lsn >= lsn
        return self.place.segment == segment and self.place.durable_bytes > offset


def frame(
    kind: FrameKind, first_lsn: int, count: int, place: Place, body: bytes = b""
) -> tuple[bytes, int]:
    """A frame's bytes, and the digest with it."""
    at = (place.segment, first_lsn, count, place.before, place.durable_bytes)
    checked = _CHECKED.pack(kind, *at) + body
    crc = zlib.crc32(checked)
    return _HEAD.pack(MARK, len(body), crc) + checked, _digest(place.before, crc)


def _digest(before: int, crc: int) -> int:
    link = hashlib.blake2b(_LINK.pack(before, crc), digest_size=8)
    return int.from_bytes(link.digest(), "little")


def first_digest(header: Header) -> int:
    """The digest with which the frames of a file begin."""
    return _digest(header.before, header.segment)


def body_of(records: Sequence[JournalRecord], table: FactsTable) -> bytes:
    """The body of a frame of records; new facts enter the table."""
    news: list[tuple[int, bytes]] = []
    first = records[0].lsn
    lsns = tuple(each.lsn for each in records)
    owners: dict[tuple[str, int], int] = {}
    body = _Body(
        lsns=() if lsns == tuple(range(first, first + len(lsns))) else lsns,
        kinds=bytes(_KINDS.index(each.kind) for each in records),
        uids=tuple("" if each.uid == each.key else each.uid for each in records),
        keys=tuple(each.key for each in records),
        nodes=tuple(each.node_name for each in records),
        tokens=tuple(each.token for each in records),
        owner=tuple(owners.setdefault((r.owner, r.epoch), len(owners)) for r in records),
        facts=tuple(table.number(each.facts or each.subject, news) for each in records),
        owners=tuple(owners),
        new_facts=tuple(news),
    )
    return pack(to_wire(body))


def frame_at(data: memoryview, offset: int) -> Frame | None:
    """The whole frame that begins at `offset`; None if there is none."""
    start = offset + HEAD_BYTES
    if start > len(data):
        return None
    mark, length, crc = _HEAD.unpack_from(data, offset)
    end = start + length
    if mark != MARK or length > MAX_FRAME_BYTES or end > len(data):
        return None
    if zlib.crc32(data[offset + _HEAD.size : end]) != crc:
        return None
    kind, *at = _CHECKED.unpack_from(data, offset + _HEAD.size)
    segment, first_lsn, count, before, durable_bytes = at
    if kind not in _FRAME_KINDS:
        return None
    place, after = Place(segment, before, durable_bytes), _digest(before, crc)
    return Frame(offset, end, FrameKind(kind), first_lsn, count, data[start:end], place, after)


def next_frame(
    data: memoryview,
    offset: int,
    at: Callable[[memoryview, int], Frame | None] = frame_at,
    mark: bytes = MARK,
) -> Frame | None:
    """The first whole frame at or behind `offset`, past whatever is before it."""
    raw = bytes(data[offset:])
    place = raw.find(mark)
    while place >= 0:
        found = at(data, offset + place)
        if found is not None:
            return found
        place = raw.find(mark, place + 1)
    return None


def decode(frame: Frame, table: FactsTable) -> RecordColumns:
    """The records of a frame, which must be read in the order of its file.

    Raises FrameError, or the codec's error, where the body makes no sense.
    """
    body = from_wire(_Body, unpack(bytes(frame.body), _LIMITS, typed=True))
    for new in body.new_facts:
        table.learn(*new)
    lsns = body.lsns or range(frame.first_lsn, frame.first_lsn + frame.count)
    columns = (lsns, body.uids, body.keys, body.nodes, body.tokens, body.owner, body.facts)
    if any(len(column) != frame.count for column in (body.kinds, *columns)):
        raise FrameError(f"a frame of {frame.count} records has columns of other lengths")
    owner, kind, facts = set(body.owner), set(body.kinds), set(body.facts)
    if not _all_in(owner, 0, len(body.owners)):
        raise FrameError("a frame names an owner that it does not list")
    if not _all_in(facts, NO_FACTS, len(table.facts)):
        raise FrameError("a frame names facts that its segment has not defined")
    kinds = table.builder.kinds
    if not _all_in(kind, 0, len(kinds)):
        raise FrameError("a frame holds a record of no known kind")
    known = {number: table.facts[number] for number in facts if number != NO_FACTS}
    pods = {number: each for number, each in known.items() if isinstance(each, PodFacts)}
    others = {number: each for number, each in known.items() if not isinstance(each, PodFacts)}
    return RecordColumns(
        lsns,
        _named(body.kinds, {number: kinds[number] for number in kind}),
        [uid or key for uid, key in zip(body.uids, body.keys, strict=True)],
        *(body.keys, body.nodes, body.tokens),
        _named(body.owner, {number: body.owners[number][0] for number in owner}),
        _named(body.owner, {number: body.owners[number][1] for number in owner}),
        _named(body.facts, {number: pods.get(number) for number in facts}),
        _named(body.facts, {number: others.get(number) for number in facts}),
    )


def _all_in(numbers: set[int], low: int, end: int) -> bool:
    return not numbers or (min(numbers) >= low and max(numbers) < end)


def _named(numbers: Sequence[int], named: Mapping[int, Named]) -> list[Named]:
    """What each number names; most columns name one thing throughout."""
    things = list(named.values())
    if all(each is things[0] for each in things):
        return things[:1] * len(numbers)
    return [named[number] for number in numbers]
