"""The journal of a run as other releases would have written it, read by this release.

An earlier release had fewer fields, in another order; format 1 had no chain. A later one has fields
that this release does not know and must report. Files are written here without the product's
writer.
"""

import dataclasses
import random
import struct
import zlib
from enum import Enum

import msgpack

from roadstead.journal import JournalError
from roadstead.journal.fields import FACTS
from roadstead.journal.files import FileJournal
from roadstead.journal.format_1 import _FIELDS
from roadstead.journal.records import RecordKind
from roadstead.journal.segments import Reader
from tests.journal.simulated_disk import SimulatedDisk
from tests.simulation.plain_journal import FIELDS, RECORDS, chained

NAME = "journal-00000000000000000001.segment"
_FORMER = dict(_FIELDS.classes)
FIELDS_OF_FORMAT_1 = 3723011536
"""Its checksum of the field names, the only information about them in its files."""

GROUP = 40
MOST = 80
"""Number of records that are written again: the first ones, without gaps."""


def problems_of(records, seed):
    """Return violations in journals of other releases with these records, without a snapshot."""
    draw = random.Random(f"older {seed}")
    records = records[:MOST]
    if not records:
        # Without records there is nothing to compare.
        return
    classes, used = classes_of(records)
    fewer = _earlier(draw, classes, used)
    kinds = [each.value for each in RecordKind]
    draw.shuffle(kinds)
    one = draw.choice([name for name in sorted(classes) if fewer[name] != classes[name]])
    fits_format_1 = not any(used[name].difference(_FORMER.get(name, ())) for name in used)
    for what, data in (
        ("an earlier release", format_2(records, kinds, fewer)),
        (f"a release with another {one}", format_2(records, kinds, classes | {one: fewer[one]})),
        *([("format 1", _format_1(records))] if fits_format_1 else ()),
    ):
        disk = disk_of(data)
        # A sync failed earlier: no later sync makes data durable that is not written again.
        disk.unsafe = {NAME}
        try:
            found = list(Reader(disk).records())
            journal = FileJournal(disk)
            recovered = list(journal.recovered())
            journal.end()
            disk.crash()
            again = list(Reader(disk).records())
        except JournalError as failure:
            yield f"a journal of {what}: {failure}"
            continue
        if not (found == recovered == again == records):
            yield f"a journal of {what} is read as other records"
    yield from _unknown(records, kinds, classes, draw)
    if fits_format_1:
        yield from _torn(records, draw)


def _unknown(records, kinds, classes, draw):
    """A later release: a field, a kind of record or a facts class that is unknown here."""
    name = draw.choice(sorted(classes))
    more = {**classes, name: (*classes[name], "future_field")}
    names = [each.__name__ for each in FACTS]
    for what, data in (
        ("a field", format_2(records, kinds, more)),
        ("a kind of records", format_2(records, [*kinds, "future"], classes)),
        ("a kind of facts", format_2(records, kinds, classes, [*names, "FutureFacts"])),
    ):
        try:
            list(Reader(disk_of(data)).records())
            yield f"a journal with {what} of a later release is read"
        except JournalError as refused:
            if "future" not in str(refused).lower() or "not known" not in str(refused):
                yield f"a journal with {what} of a later release: {refused}"


def _torn(records, draw):
    """Format 1: damage before a later durable mark is refused, a torn end is cut."""
    data = _format_1(records)
    # The last frame marks everything before it as durable.
    last = data.rindex(b"\xf1RJ\n")
    reader = Reader(disk_of(data[: draw.randrange(last + 1, len(data))]))
    found = list(reader.records())
    size_bytes = len(data) - last
    if found != records[: len(found)] or reader.tail is None or reader.tail.offset != last:
        yield f"a torn end of format 1, {size_bytes} bytes: {reader.tail}"
    yield from _torn_header(records, data, draw)
    yield from _begun(records, data)
    if last > OLD_HEADER_BYTES:
        place = draw.randrange(OLD_HEADER_BYTES, last)
        flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        try:
            list(Reader(disk_of(flipped)).records())
            yield f"format 1: a bit at {place} is another one, and nothing is reported"
        except JournalError:
            pass


def _torn_header(records, data, draw):
    """Format 1: the next file may be torn at its creation; after format 2 it is damaged."""
    name = f"journal-{records[-1].lsn + 1:020}.segment"
    torn = data[: draw.randrange(OLD_HEADER_BYTES)]
    kinds, (classes, _) = [each.value for each in RecordKind], classes_of(records)
    for what, first in (("1", data), ("2", format_2(records, kinds, classes))):
        disk = disk_of(first)
        disk.contents[name], disk.durable[name] = torn, 0
        disk.lasting.add(name)
        reader = Reader(disk)
        try:
            found = list(reader.records())
        except JournalError:
            found = None
        if found is not None and reader.tail.lsn != records[-1].lsn + 1:
            yield f"a torn header of format {what} is reported as {reader.tail}"
        if found != (records if what == "1" else None):
            yield f"format {what}, with a torn header behind it, is read as {found and len(found)}"


def _begun(records, data):
    """A next file with nothing but a header: of format 1, or of a later one."""
    lsn = records[-1].lsn + 1
    name = f"journal-{lsn:020}.segment"
    for version in (1, 3):
        disk = disk_of(data)
        disk.contents[name] = _header_1(lsn, version)
        reader = Reader(disk)
        try:
            is_read, tail = list(reader.records()) == records, reader.tail
        except JournalError as refused:
            is_read, tail = False, str(refused)
        is_right = is_read and tail is None if version == 1 else "newer release" in str(tail)
        if not is_right:
            yield f"a next file that has the header of format {version} alone: {tail}"


def classes_of(records):
    return _classes([each.facts or each.subject for each in records])


OLD_HEADER_BYTES = 36


def disk_of(data):
    disk = SimulatedDisk()
    # A process that was killed wrote it: none of it is certainly durable.
    disk.contents, disk.durable = {NAME: data}, {NAME: 0}
    disk.lasting = {NAME}
    return disk


def _classes(facts):
    """Class → its fields, of all classes in facts; class → fields with other values than their
    defaults.
    """
    found, used, todo = {}, {}, [*facts]
    while todo:
        each = todo.pop()
        if dataclasses.is_dataclass(each):
            fields, name = dataclasses.fields(each), type(each).__name__
            found[name] = tuple(field.name for field in fields)
            changed = used.setdefault(name, set())
            for field in fields:
                value = getattr(each, field.name)
                if field.default_factory is not dataclasses.MISSING:
                    default = field.default_factory()
                else:
                    default = field.default
                changed |= {field.name} if value != default else set()
                todo.append(value)
        elif isinstance(each, list | tuple):
            todo += each
    return found, used


def _earlier(draw, classes, used):
    """The same classes with their fields in another order, and without some that have defaults."""
    fewer = {}
    for name, fields in sorted(classes.items()):
        kept = [each for each in fields if each in used[name] or draw.random() < 0.7]
        fewer[name] = tuple(draw.sample(kept, len(kept)))
    return fewer


def _flat(value, classes):
    """A value as data: the fields of its class that `classes` has, in that order."""
    if dataclasses.is_dataclass(value):
        names = classes[type(value).__name__]
        return [_flat(getattr(value, name, None), classes) for name in names]
    if isinstance(value, list | tuple):
        return [_flat(each, classes) for each in value]
    return value.value if isinstance(value, Enum) else value


class _Writer:
    """Bodies of groups of records, with the new facts that they contain."""

    def __init__(self, kinds, names, classes, spoil=None):
        self._kinds, self._names, self._classes = kinds, names, classes
        self._numbers, self._spoil = {}, spoil

    def body(self, group):
        new, numbers, owners = [], [], {}
        for record in group:
            about = record.facts or record.subject
            if about is not None and about not in self._numbers:
                self._numbers[about] = len(self._numbers)
                data = msgpack.packb(_flat(about, self._classes))
                new.append((self._names.index(type(about).__name__), data))
            numbers.append(-1 if about is None else self._numbers[about])
            owners.setdefault((record.owner, record.epoch), len(owners))
        kinds = [self._kinds.index(each.kind.value) for each in group]
        by = [owners[each.owner, each.epoch] for each in group]
        columns = [
            [each.lsn for each in group],
            new,
            bytes(kinds),
            *([getattr(each, name) for each in group] for name in ("uid", "key", "node_name")),
            [each.token for each in group],
            [list(each) for each in owners],
            by,
            numbers,
        ]
        return msgpack.packb(columns if self._spoil is None else self._spoil(columns))


def _groups(records):
    return (records[start : start + GROUP] for start in range(0, len(records), GROUP))


def format_2(records, kinds, classes, names=None, spoil=None):
    """A segment of format 2. spoil: changes the columns of a frame."""
    names = names or [each.__name__ for each in FACTS]
    fields = msgpack.packb([kinds, names, [[name, list(of)] for name, of in classes.items()]])
    prefix = struct.pack("<8sIQQI", b"RSJOURN1", 2, 1, 1, zlib.crc32(fields))
    header = prefix + struct.pack("<I", zlib.crc32(prefix)) + struct.pack("<QQ", 1, 0)
    header += struct.pack("<I", zlib.crc32(header))
    segment = zlib.crc32(header)
    data, digest, writer = header, chained(0, segment), _Writer(kinds, names, classes, spoil)
    parts = [(FIELDS, 1, 0, fields)]
    parts += [(RECORDS, group[0].lsn, len(group), writer.body(group)) for group in _groups(records)]
    for kind, first_lsn, count, body in parts:
        checked = struct.pack("<BIQIQQ", kind, segment, first_lsn, count, digest, 0) + body
        checksum = zlib.crc32(checked)
        digest = chained(digest, checksum)
        data += struct.pack("<4sII", b"\xf2RJ\n", len(body), checksum) + checked
    return data


def _header_1(first_lsn, version=1):
    """A header of format 1; later formats begin with the same fields."""
    prefix = struct.pack("<8sIQQI", b"RSJOURN1", version, 1, first_lsn, FIELDS_OF_FORMAT_1)
    return prefix + struct.pack("<I", zlib.crc32(prefix))


def _format_1(records):
    classes = dict(_FIELDS.classes)
    data = _header_1(1)
    writer = _Writer(list(_FIELDS.kinds), list(_FIELDS.facts), classes)
    for group in _groups(records):
        first = group[0].lsn
        body = writer.body(group)
        checked = struct.pack("<QIQ", first, len(group), first - 1) + body
        data += struct.pack("<4sII", b"\xf1RJ\n", len(body), zlib.crc32(checked)) + checked
    return data
