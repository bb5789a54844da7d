"""A second reader of a journal, written from the description of its format alone (decision 27).

It shares no code with `roadstead.journal`: it reads frames, digests, links between files and the
columns of records again, as plainly as possible. Facts stay the bytes that they are in the file,
and are compared with those that `plain` makes of the facts of a record.
"""

import dataclasses
import hashlib
import re
import struct
import zlib
from enum import Enum

import msgpack

FIELDS, RECORDS, FLUSHED, CLOSED, CONTINUED = 1, 2, 3, 4, 5
HEADER_BYTES = 56
FRAME_BYTES = 45
SEGMENT = re.compile(r"journal-(\d{20})\.segment")
SNAPSHOT = re.compile(r"snapshot-(\d{20})\.snapshot")


def chained(digest, checksum):
    """The digest after another digest and the checksum of a frame."""
    link = struct.pack("<QI", digest, checksum)
    return int.from_bytes(hashlib.blake2b(link, digest_size=8).digest(), "little")


def plain(record, memo):
    """A record of the product in this reader's form. memo: earlier results by facts."""
    facts = record.facts or record.subject
    if record.facts is not None and record.subject is not None:
        facts = "both of a pod and of something else"
    what = record.lsn, record.kind.value, record.uid, record.key, record.node_name
    by = record.token, record.owner, record.epoch
    return (*what, *by, None if facts is None else raw(facts, memo))


def raw(facts, memo):
    """(class, bytes) of facts, as in a file."""
    if facts not in memo:
        memo[facts] = type(facts).__name__, msgpack.packb(_flat(facts), use_bin_type=True)
    return memo[facts]


CLASSES = {}
"""The fields of all classes that were made plain."""


def _flat(value):
    names = CLASSES.get(type(value).__name__)
    if names is None and dataclasses.is_dataclass(value):
        # Facts whose classes have a float contain a float already.
        names = [each.name for each in dataclasses.fields(value)]
        CLASSES[type(value).__name__] = names
    if names is not None:
        return [_flat(getattr(value, name)) for name in names]
    if isinstance(value, list | tuple):
        return [each if type(each) in (str, int) else _flat(each) for each in value]
    return value.value if isinstance(value, Enum) else value


@dataclasses.dataclass
class Frame:
    """A frame that follows from the frames before it. grown: bytes after the FIELDS before it."""

    kind: int
    offset: int
    end: int
    first_lsn: int
    count: int
    durable_bytes: int


class PlainFile:
    """A segment or snapshot, as far as its frames follow one another; `read` continues from there.

    records: in order. problems: contents that no writer should write.
    """

    def __init__(self, name):
        self.name, self.problems = name, []
        self.is_segment = SEGMENT.fullmatch(name) is not None
        self.frames, self.records = [], []
        self.offset = self.began_bytes = self.digest = 0
        self.segment = self.number = self.before = self.epoch = self.first_lsn = self.next_lsn = 0
        self._facts, self._kinds, self._classes = [], [], []

    @property
    def is_begun(self):
        """Whether it has a header."""
        return self.offset > 0

    @property
    def last(self):
        return self.frames[-1].kind if self.frames else None

    def read(self, data):
        """Read the rest of the file's present contents."""
        if not self.offset:
            self._header(data)
        while self.offset and (frame := self._frame(data)):
            self.frames.append(frame)
            if self.is_segment and frame.first_lsn != self.next_lsn:
                self.problems.append(f"{self.name}: {frame.first_lsn} follows {self.next_lsn - 1}")
            body = bytes(data[frame.offset + FRAME_BYTES : frame.end])
            if frame.kind == FIELDS:
                self._fields(body)
            elif frame.kind == RECORDS:
                self._take_all(frame, body)
            elif body:
                self.problems.append(f"{self.name}: a mark with a body")
            self.offset = frame.end
        return self

    def _header(self, data):
        if len(data) < HEADER_BYTES:
            return
        magic, version, epoch, first_lsn, fields = struct.unpack_from("<8sIQQI", data)
        (first_sum,) = struct.unpack_from("<I", data, 32)
        number, before, second_sum = struct.unpack_from("<QQI", data, 36)
        sums = zlib.crc32(data[:32]), zlib.crc32(data[:52])
        if (magic, version) != (b"RSJOURN1", 2) or (first_sum, second_sum) != sums:
            return
        self.epoch, self.first_lsn, self.number, self.before = epoch, first_lsn, number, before
        self._fields_sum, self.segment = fields, zlib.crc32(data[:HEADER_BYTES])
        self.offset, self.next_lsn = HEADER_BYTES, first_lsn
        self.digest = chained(before, self.segment)

    def _frame(self, data):
        start = self.offset + FRAME_BYTES
        if start > len(data):
            return None
        mark, length, checksum = struct.unpack_from("<4sII", data, self.offset)
        rest = data[self.offset + 12 : start + length]
        if mark != b"\xf2RJ\n" or start + length > len(data) or zlib.crc32(rest) != checksum:
            return None
        kind, *at = struct.unpack_from("<BIQIQQ", rest)
        segment, first_lsn, count, before, durable_bytes = at
        if (segment, before) != (self.segment, self.digest):
            return None
        if kind != CONTINUED:
            self.digest = chained(before, checksum)
        return Frame(kind, self.offset, start + length, first_lsn, count, durable_bytes)

    def _fields(self, body):
        if zlib.crc32(body) != self._fields_sum or len(self.frames) > 1:
            self.problems.append(f"{self.name}: fields that its header does not announce")
        self._kinds, self._classes, names = msgpack.unpackb(body)
        self.fields = dict(names)
        self.began_bytes = self.frames[-1].end

    def _take_all(self, frame, body):
        known, is_whole = len(self.records), True
        try:
            self._take(frame, body)
        except ValueError:
            # Its columns differ in length.
            is_whole = False
        if not is_whole or len(self.records) != known + frame.count:
            self.problems.append(f"{self.name}: a frame does not hold its {frame.count} records")

    def _take(self, frame, body):
        columns = msgpack.unpackb(body)
        lsns, new_facts, kinds, uids, keys, nodes, tokens, owners, owner, facts = columns
        self._facts += [(self._classes[number], data) for number, data in new_facts]
        lsns = lsns or range(frame.first_lsn, frame.first_lsn + frame.count)
        rows = zip(lsns, kinds, uids, keys, nodes, tokens, owner, facts, strict=True)
        for lsn, kind, uid, key, node, token, by, number in rows:
            about = None if number < 0 else self._facts[number]
            what = lsn, self._kinds[kind], uid or key, key, node
            self.records.append((*what, token, *owners[by], about))
        self.next_lsn = frame.first_lsn + frame.count


class PlainJournal:
    """All files of a journal. contents: by name.

    records: the snapshot's, then the later ones that follow. tail: (name, offset, size in bytes) of
    the unconnected end of the last segment, or None. problems: contents that a correct writer
    cannot leave, except on a disk that lies.
    """

    def __init__(self, contents):
        self.problems, self.tail = [], None
        newest = max((int(m[1]) for m in map(SNAPSHOT.fullmatch, contents) if m), default=None)
        self.snapshot = None
        self.snapshot_lsn = self.last_lsn = newest or 0
        if newest is not None:
            self.snapshot = self._read(contents, f"snapshot-{newest:020}.snapshot")
        firsts = sorted(int(m[1]) for m in map(SEGMENT.fullmatch, contents) if m)
        covered = [first for first in firsts if first <= self.snapshot_lsn + 1]
        firsts = firsts[max(0, len(covered) - 1) :]
        self.segments = [self._read(contents, f"journal-{each:020}.segment") for each in firsts]
        self._check_snapshot(contents)
        self.records = list(self.snapshot.records) if self.snapshot else []
        for place, segment in enumerate(self.segments):
            self._follow(segment, self.segments[place - 1] if place else None)
        self._check_end(contents)

    def _read(self, contents, name):
        file = PlainFile(name).read(contents[name])
        self.problems += file.problems
        if not file.is_begun or f"{file.first_lsn:020}" not in name:
            self.problems.append(f"{name} has no header of its own")
        return file

    def _check_snapshot(self, contents):
        if (file := self.snapshot) is None:
            return
        last = file.frames[-1] if file.frames else None
        is_read = file.offset == len(contents[file.name])
        if not is_read or last is None or (last.kind, last.count) != (CLOSED, len(file.records)):
            self.problems.append(f"{file.name} is not whole")
        elif last.first_lsn != self.snapshot_lsn + 1:
            self.problems.append(f"{file.name} ends at record {last.first_lsn}")

    def _follow(self, segment, former):
        if not segment.is_begun:
            return
        here = segment.number, segment.before
        if former is not None:
            follows = here == (former.number + 1, former.digest)
        elif self.snapshot is None:
            follows = here == (1, 0)
        else:
            taken = self.snapshot.number, self.snapshot.before
            follows = segment.number == taken[0] or here == (taken[0] + 1, taken[1])
        if not follows or segment.first_lsn > self.last_lsn + 1:
            self.problems.append(f"{segment.name} does not follow from what is before it")
        for frame in segment.frames[:-1]:
            if frame.kind == CONTINUED:
                self.problems.append(f"{segment.name} continues after its end")
        self.records += [each for each in segment.records if each[0] > self.last_lsn]
        self.last_lsn = max(self.last_lsn, segment.next_lsn - 1)

    def _check_end(self, contents):
        if not self.segments:
            if self.snapshot is not None:
                self.problems.append("no segment follows the snapshot")
            return
        last = self.segments[-1]
        if last.last == CONTINUED:
            self.problems.append(f"what {last.name} goes on with is not there")
        size_bytes = len(contents[last.name])
        if last.offset < size_bytes:
            self.tail = last.name, last.offset, size_bytes - last.offset

    @property
    def files(self):
        return [*([self.snapshot] if self.snapshot else []), *self.segments]

    @property
    def epoch(self):
        """The newest epoch of a writer."""
        return max((each.epoch for each in self.files if each.is_begun), default=0)

    @property
    def closed(self):
        """(records, digest) of a writer that closed the journal properly, or None."""
        last = self.segments[-1] if self.segments else None
        return (self.last_lsn, last.digest) if last and last.last == CLOSED else None
