"""Frames: the units of a journal file, how they are encoded and found in a file.

    mark │ length u32 │ crc32 u32 │ kind u8 │ file id u32 │ first lsn u64 │ records u32
         │ digest before u64 │ durable bytes u64 │ body

The checksum covers all bytes after it. `file id` is a checksum of the file's header. A group of
records, which is acknowledged as a whole, is one frame, so that it is also read as a whole or not
at all (a group of more than MAX_FRAME_RECORDS is several frames). The frames of a journal form a
chain: each has the digest of the frames before it, so that a frame that is missing, or was written
elsewhere, is detected. `durable bytes` is how much of the file had been flushed when the frame was
written. After each flush a FLUSHED frame records that. So a broken frame that a later one confirms
as durable is damage; a broken frame after all confirmed bytes may have been torn when the machine
stopped.

    FIELDS      the first frame of a file: the schema of its records (fields.py)
    RECORDS     a group of records
    FLUSHED     everything before it is durable
    CLOSED      the writer shut down cleanly; its last record was `first lsn` - 1; the digest covers
                all frames. At the end of a snapshot, `records` is the number of its records
    CONTINUED   the next segment exists: nothing more is written to this one

The body of RECORDS holds columns, so that a million records are read in seconds: kinds as bytes,
names as lists, owners once, and facts once per file (`FactsTable`).
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeVar

from roadstead.facts.pod import PodFacts
from roadstead.journal.columns import RecordColumns
from roadstead.journal.fields import FACTS, Facts, FactsBuilder, builder_of, present_fields
from roadstead.journal.headers import Header
from roadstead.journal.records import JournalRecord, RecordKind
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.errors import RoadsteadError
from roadstead.protocol.plain_data import DecodeLimits, pack, unpack

MARK = b"\xf2RJ\n"
"""The first bytes of each frame, by which frames are found after broken bytes."""

# The layout above: mark, length and checksum, then what the checksum covers before the body.
_HEAD = struct.Struct("<4sII")
_CHECKED = struct.Struct("<BIQIQQ")
HEAD_BYTES = _HEAD.size + _CHECKED.size
_DIGESTED = struct.Struct("<QI")
"""What a digest is computed from: the digest before, and the frame's checksum."""

MAX_FRAME_BYTES = 64 * 1024 * 1024
"""Longer frames are neither written nor read."""

MAX_FRAME_RECORDS = 65_536
"""Records in one frame; a larger group becomes several frames."""

_KINDS = tuple(RecordKind)
_LIMITS = DecodeLimits(max_bytes=MAX_FRAME_BYTES, max_items=32 * MAX_FRAME_RECORDS, max_depth=8)
NO_FACTS = -1
"""The number, in a column of facts, of a record without facts."""

ValueT = TypeVar("ValueT")


class FrameError(RoadsteadError):
    """A frame's body cannot be decoded."""


class FrameKind(IntEnum):
    FIELDS = 1
    RECORDS = 2
    FLUSHED = 3
    CLOSED = 4
    CONTINUED = 5


_FRAME_KINDS = frozenset(FrameKind)


@dataclass(slots=True)
class FactsTable:
    """The facts that one file defines: each is written once, and records refer to its number.

    builder: builds facts from the file's data. facts: by number. numbers: of these facts. known:
    facts of all files of the journal, each as key and value, so that equal facts are one object.
    """

    builder: FactsBuilder = field(default_factory=lambda: builder_of(present_fields()))
    facts: list[Facts] = field(default_factory=list)
    numbers: dict[Facts, int] = field(default_factory=dict)
    known: dict[Facts, Facts] = field(default_factory=dict)

    def number(self, facts: Facts | None, new_facts: list[tuple[int, bytes]]) -> int:
        """Return the number of facts; None for facts has NO_FACTS. Facts without a number get one.

        new_facts: facts that got one are appended to it as (index of their class in FACTS, bytes).
        """
        if facts is None:
            return NO_FACTS
        number = self.numbers.get(facts)
        if number is None:
            number = self.numbers[facts] = len(self.facts)
            self.facts.append(facts)
            new_facts.append((FACTS.index(type(facts)), pack(to_wire(facts))))
        return number

    def add(self, class_number: int, data: bytes) -> None:
        """Add facts that a frame defines. FrameError, or the codec's error, if they are invalid.

        class_number: index of their class in `Fields.facts` of the file.
        """
        if not 0 <= class_number < len(self.builder):
            raise FrameError("a frame defines facts of no known kind")
        facts = self.builder.build(class_number, unpack(data, _LIMITS, typed=True))
        self.number(self.known.setdefault(facts, facts), [])


@dataclass(frozen=True, slots=True)
class _Body:
    """The columns of a frame.

    lsns: empty if they are consecutive. new_facts: facts that the frame defines, (number of their
    class, bytes). kinds: index of the record's kind in `Fields.kinds`. uids: "" if the uid is the
    key. owners: (owner, epoch). owner, facts: numbers in `owners` and in the file's `FactsTable`.
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
class FramePosition:
    """A frame's position in a journal.

    file_id: see `Header.file_id`. digest_before: of the frames before it. durable_bytes: how much
    of the file had been flushed when it was written.
    """

    file_id: int
    digest_before: int
    durable_bytes: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as read from a file. offset, end: its first byte, and the first byte after it.

    digest_after: of all frames up to this one. position: None in format 1, whose frames have the
    last durable record in durable_lsn instead.
    """

    offset: int
    end: int
    kind: FrameKind
    first_lsn: int
    count: int
    body: memoryview
    position: FramePosition | None = None
    digest_after: int = 0
    durable_lsn: int = 0

    @property
    def last_lsn(self) -> int:
        return self.first_lsn + self.count - 1

    def confirms(self, offset: int, lsn: int, file_id: int) -> bool:
        """Whether it shows that the byte at `offset` (in format 1: record `lsn`) was durable.

        file_id: that of the file in which the frame was found.
        """
        if self.position is None:
            return self.durable_lsn >= lsn
        return self.position.file_id == file_id and self.position.durable_bytes > offset


def frame(
    kind: FrameKind, first_lsn: int, count: int, position: FramePosition, body: bytes = b""
) -> tuple[bytes, int]:
    """Return a frame's bytes, and the digest including it."""
    digest_before, durable_bytes = position.digest_before, position.durable_bytes
    checked = _CHECKED.pack(kind, position.file_id, first_lsn, count, digest_before, durable_bytes)
    checked += body
    crc = zlib.crc32(checked)
    return _HEAD.pack(MARK, len(body), crc) + checked, _digest_after(digest_before, crc)


def _digest_after(digest_before: int, crc: int) -> int:
    digest = hashlib.blake2b(_DIGESTED.pack(digest_before, crc), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def first_digest(header: Header) -> int:
    """Return the digest before the first frame of a file."""
    return _digest_after(header.digest_before, header.file_id)


def body_of(records: Sequence[JournalRecord], table: FactsTable) -> bytes:
    """Return the body of a frame of records; add new facts to the table."""
    new_facts: list[tuple[int, bytes]] = []
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
        facts=tuple(table.number(each.facts or each.subject, new_facts) for each in records),
        owners=tuple(owners),
        new_facts=tuple(new_facts),
    )
    return pack(to_wire(body))


def frame_at(data: memoryview, offset: int) -> Frame | None:
    """Return the whole frame that begins at `offset`; None if there is none."""
    start = offset + HEAD_BYTES
    if start > len(data):
        return None
    mark, length, crc = _HEAD.unpack_from(data, offset)
    end = start + length
    if mark != MARK or length > MAX_FRAME_BYTES or end > len(data):
        return None
    if zlib.crc32(data[offset + _HEAD.size : end]) != crc:
        return None
    checked = _CHECKED.unpack_from(data, offset + _HEAD.size)
    kind, file_id, first_lsn, count, digest_before, durable_bytes = checked
    if kind not in _FRAME_KINDS:
        return None
    return Frame(
        *(offset, end, FrameKind(kind), first_lsn, count, data[start:end]),
        FramePosition(file_id, digest_before, durable_bytes),
        _digest_after(digest_before, crc),
    )


def later_frames(
    data: memoryview,
    offset: int,
    read_frame: Callable[[memoryview, int], Frame | None] = frame_at,
    mark: bytes = MARK,
) -> Iterator[Frame]:
    """Yield the whole frames at or after `offset`, skipping any other bytes.

    read_frame, mark: of the file's format.
    """
    raw = bytes(data[offset:])
    start = raw.find(mark)
    while start >= 0:
        later = read_frame(data, offset + start)
        if later is not None:
            yield later
        start = raw.find(mark, start + 1 if later is None else later.end - offset)


def decode(frame: Frame, table: FactsTable) -> RecordColumns:
    """Return the records of a frame; frames must be decoded in the order of their file.

    Raises FrameError, or the codec's error, if the body is invalid.
    """
    body = from_wire(_Body, unpack(bytes(frame.body), _LIMITS, typed=True))
    for new in body.new_facts:
        table.add(*new)
    lsns = body.lsns or range(frame.first_lsn, frame.first_lsn + frame.count)
    columns = (lsns, body.uids, body.keys, body.nodes, body.tokens, body.owner, body.facts)
    if any(len(column) != frame.count for column in (body.kinds, *columns)):
        raise FrameError(f"a frame of {frame.count} records has columns of other lengths")
    # Each number once: a frame has few different ones.
    of_owners, of_kinds, of_facts = set(body.owner), set(body.kinds), set(body.facts)
    if not _all_in(of_owners, 0, len(body.owners)):
        raise FrameError("a frame names an owner that it does not list")
    if not _all_in(of_facts, NO_FACTS, len(table.facts)):
        raise FrameError("a frame names facts that its segment has not defined")
    kinds = table.builder.kinds
    if not _all_in(of_kinds, 0, len(kinds)):
        raise FrameError("a frame holds a record of no known kind")
    # The facts of a record are its `facts` if they are a pod's, else its `subject`.
    facts = {number: table.facts[number] for number in of_facts if number != NO_FACTS}
    pods = {number: each for number, each in facts.items() if isinstance(each, PodFacts)}
    subjects = {number: each for number, each in facts.items() if not isinstance(each, PodFacts)}
    return RecordColumns(
        lsns,
        _values_of(body.kinds, {number: kinds[number] for number in of_kinds}),
        [uid or key for uid, key in zip(body.uids, body.keys, strict=True)],
        *(body.keys, body.nodes, body.tokens),
        _values_of(body.owner, {number: body.owners[number][0] for number in of_owners}),
        _values_of(body.owner, {number: body.owners[number][1] for number in of_owners}),
        _values_of(body.facts, {number: pods.get(number) for number in of_facts}),
        _values_of(body.facts, {number: subjects.get(number) for number in of_facts}),
    )


def _all_in(numbers: set[int], low: int, end: int) -> bool:
    return not numbers or (min(numbers) >= low and max(numbers) < end)


def _values_of(numbers: Sequence[int], value_of: Mapping[int, ValueT]) -> list[ValueT]:
    """Return the value of each number; most columns have one value throughout."""
    values = list(value_of.values())
    if all(each is values[0] for each in values):
        return values[:1] * len(numbers)
    return [value_of[number] for number in numbers]
