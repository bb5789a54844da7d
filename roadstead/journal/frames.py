"""Frames: a group of records as bytes, and how frames are found again in what a file holds.

    mark │ length u32 │ crc32 u32 │ first lsn u64 │ records u32 │ durable lsn u64 │ body

The checksum covers all that follows it. A group is written and found whole or not at all, which is
how it is acknowledged. `durable lsn` is what had been flushed when the frame was written: a broken
frame with a whole one behind it was lost unflushed, unless the one behind says that it was durable;
then the file is damaged.

The body holds columns, so that a million records are read in seconds: kinds as bytes, names as
lists, owners once, and facts once per segment (`FactsTable`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.rules import Rules
from roadstead.facts.run_mark import RunMark
from roadstead.journal.columns import RecordColumns
from roadstead.journal.records import JournalRecord, RecordKind
from roadstead.protocol.codec import Limits, from_wire, pack, to_wire, unpack
from roadstead.protocol.errors import RoadsteadError

MARK = b"\xf1RJ\n"
_CHECKED = struct.Struct("<QIQ")
_HEAD = struct.Struct("<4sII")
HEAD_BYTES = _HEAD.size + _CHECKED.size
MAX_FRAME_BYTES = 64 * 1024 * 1024
MAX_FRAME_RECORDS = 65_536

_KINDS = tuple(RecordKind)
_LIMITS = Limits(max_bytes=MAX_FRAME_BYTES, max_items=32 * MAX_FRAME_RECORDS, max_depth=8)
NO_FACTS = -1


class FrameError(RoadsteadError):
    """Bytes are no frame, or a frame whose body makes no sense."""


Facts = PodFacts | NodeFacts | ClusterFacts | Rules | RunMark | BoundClaims
_FACT_KINDS: tuple[type[Facts], ...] = (
    PodFacts,
    NodeFacts,
    ClusterFacts,
    Rules,
    RunMark,
    BoundClaims,
)


@dataclass(slots=True)
class FactsTable:
    """Facts by number, in the order in which a segment first names them.

    known: facts that other segments named, so that those that are equal are one object.
    """

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
            news.append((_FACT_KINDS.index(type(facts)), pack(to_wire(facts))))
        return found

    def learn(self, kind: int, data: bytes) -> None:
        """Facts that a frame defines. FrameError, or the codec's error, where they are none."""
        if not 0 <= kind < len(_FACT_KINDS):
            raise FrameError("a frame defines facts of no known kind")
        facts = from_wire(_FACT_KINDS[kind], unpack(data, _LIMITS, typed=True))
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
class Frame:
    """A frame as it stands in a file. end: the offset behind it."""

    offset: int
    end: int
    first_lsn: int
    count: int
    durable_lsn: int
    body: memoryview

    @property
    def last_lsn(self) -> int:
        return self.first_lsn + self.count - 1


def encode(records: Sequence[JournalRecord], durable_lsn: int, table: FactsTable) -> bytes:
    """The frame of some records; new facts enter the table."""
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
    data = pack(to_wire(body))
    checked = _CHECKED.pack(first, len(records), durable_lsn) + data
    return _HEAD.pack(MARK, len(data), zlib.crc32(checked)) + checked


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
    first_lsn, count, durable_lsn = _CHECKED.unpack_from(data, offset + _HEAD.size)
    return Frame(offset, end, first_lsn, count, durable_lsn, data[start:end])


def next_frame(data: memoryview, offset: int) -> Frame | None:
    """The first whole frame at or behind `offset`, past whatever stands before it."""
    raw = bytes(data[offset:])
    at = raw.find(MARK)
    while at >= 0:
        frame = frame_at(data, offset + at)
        if frame is not None:
            return frame
        at = raw.find(MARK, at + 1)
    return None


def decode(frame: Frame, table: FactsTable) -> RecordColumns:
    """The records of a frame, which must be read in the order of its file.

    Raises FrameError, or the codec's error, where the body makes no sense.
    """
    body = from_wire(_Body, unpack(bytes(frame.body), _LIMITS, typed=True))
    for kind, data in body.new_facts:
        table.learn(kind, data)
    lsns = body.lsns or range(frame.first_lsn, frame.first_lsn + frame.count)
    columns = (lsns, body.uids, body.keys, body.nodes, body.tokens, body.owner, body.facts)
    if any(len(column) != frame.count for column in (body.kinds, *columns)):
        raise FrameError(f"a frame of {frame.count} records has columns of other lengths")
    if not _all_in(body.owner, 0, len(body.owners)):
        raise FrameError("a frame names an owner that it does not list")
    if not _all_in(body.facts, NO_FACTS, len(table.facts)):
        raise FrameError("a frame names facts that its segment has not defined")
    if not _all_in(body.kinds, 0, len(_KINDS)):
        raise FrameError("a frame holds a record of no known kind")
    known = {number: table.facts[number] for number in set(body.facts) if number != NO_FACTS}
    pods = {number: each for number, each in known.items() if isinstance(each, PodFacts)}
    others = {number: each for number, each in known.items() if not isinstance(each, PodFacts)}
    return RecordColumns(
        lsns,
        [_KINDS[kind] for kind in body.kinds],
        [uid or key for uid, key in zip(body.uids, body.keys, strict=True)],
        *(body.keys, body.nodes, body.tokens),
        [body.owners[by][0] for by in body.owner],
        [body.owners[by][1] for by in body.owner],
        list(map(pods.get, body.facts)),
        list(map(others.get, body.facts)) if others else [None] * frame.count,
    )


def _all_in(numbers: Sequence[int], low: int, end: int) -> bool:
    return not numbers or (min(numbers) >= low and max(numbers) < end)
