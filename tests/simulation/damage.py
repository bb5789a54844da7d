"""Damage to a journal at rest: whatever happens to durable bytes is noticed, and said.

A copy of the disk is damaged in some way and read again, by the product and by `plain_journal`. A
file that something vouches for is refused; an end that nothing vouches for is left out, and said;
else every record is what it was.
"""

import random
import struct
import zlib
from itertools import pairwise

from roadstead.journal import JournalError
from roadstead.journal.segments import Reader
from tests.journal.simulated_disk import SimulatedDisk
from tests.simulation.plain_journal import FRAME_BYTES, HEADER_BYTES, PlainFile, PlainJournal, plain
from tests.simulation.rewritten import rewritten

TIMES = 6
OLD_HEADER_BYTES = 36
"""Of format 1. A file of less than that says nothing of its format."""


def _flip(draw, contents):
    """One bit of a file is another one."""
    name = _some(draw, contents)
    data, place = bytearray(contents[name]), draw.randrange(len(contents[name]))
    data[place] ^= 1 << draw.randrange(8)
    contents[name] = bytes(data)


def _zero(draw, contents):
    """A range of a file was never written: a lost write."""
    name = _some(draw, contents)
    start, end = _range(draw, contents[name])
    contents[name] = contents[name][:start] + bytes(end - start) + contents[name][end:]


def _misdirect(draw, contents):
    """A range of one file was written over a range of another one, or of the same."""
    source, target = _some(draw, contents), _some(draw, contents)
    start, end = _range(draw, contents[source])
    data = contents[source][start:end]
    place = draw.randrange(len(contents[target]))
    old = contents[target]
    contents[target] = (old[:place] + data + old[place + len(data) :])[: len(old)]


def _drop(draw, contents):
    """A range of a file is missing: a short write."""
    name = _some(draw, contents)
    start, end = _range(draw, contents[name])
    contents[name] = contents[name][:start] + contents[name][end:]


def _remove(draw, contents):
    """A whole file is gone; not the only one, which is a journal that was never begun."""
    if len(contents) > 1:
        del contents[_some(draw, contents)]


def _drop_frame(draw, contents):
    """A whole frame is missing, as if it had never been written."""
    name, (frame, *_) = _frames(draw, contents)
    contents[name] = contents[name][: frame.offset] + contents[name][frame.end :]


def _repeat_frame(draw, contents):
    """A frame was written twice."""
    name, (frame, *_) = _frames(draw, contents)
    data = contents[name]
    contents[name] = data[: frame.end] + data[frame.offset : frame.end] + data[frame.end :]


def _swap_frames(draw, contents):
    """Two frames were written in another order."""
    name, (one, *others) = _frames(draw, contents)
    data = contents[name]
    for other in others[:1]:
        middle = data[other.offset : other.end] + data[one.offset : one.end]
        contents[name] = data[: one.offset] + middle + data[other.end :]


def _cut(draw, contents):
    """A file ends with a frame, or in the midst of one."""
    name, (frame, *_) = _frames(draw, contents)
    places = (frame.offset, frame.offset + 1, frame.offset + FRAME_BYTES, frame.end - 1, frame.end)
    contents[name] = contents[name][: draw.choice(places)]


def _cut_header(draw, contents):
    """A file ends in the midst of its header."""
    name = _some(draw, contents)
    contents[name] = contents[name][: draw.choice((8, 35, 36, 37, 55))]


def _flip_head(draw, contents):
    """A bit of a file's header, or of what says what a frame is, is another one."""
    name, (frame, *_) = _frames(draw, contents)
    start, end = draw.choice(((0, HEADER_BYTES), (frame.offset, frame.offset + FRAME_BYTES)))
    data, place = bytearray(contents[name]), draw.randrange(start, end)
    data[place] ^= 1 << draw.randrange(8)
    contents[name] = bytes(data)


def _replace(draw, contents):
    """A file holds what belongs to another one."""
    target = _some(draw, contents)
    contents[target] = contents[_some(draw, contents)]


def _displace(draw, contents):
    """A file is that of another place in the journal, or of another journal."""
    name, _ = _frames(draw, contents)
    file = PlainFile(name).read(contents[name])
    others = (
        {"number": file.number + draw.choice((-1, 1, 2))},
        {"before": file.before ^ 1},
        {"number": file.number + 1, "before": file.before ^ 1},
        {"first_lsn": file.first_lsn + draw.choice((-1, 1))},
    )
    header = draw.choice(others)
    contents[name] = rewritten(contents[name], {key: max(0, n) for key, n in header.items()})


def _contradict(draw, contents):
    """A frame is whole, and does not say the records that it has, or those before it."""
    name, _ = _frames(draw, contents)
    frames = PlainFile(name).read(contents[name]).frames
    place, what = draw.randrange(len(frames)), draw.choice(("first_lsn", "count"))
    instead = max(0, getattr(frames[place], what) + draw.choice((-1, 1)))
    contents[name] = rewritten(contents[name], frame=(place, {what: instead}))


DAMAGES = (
    *(_flip, _flip, _zero, _misdirect, _drop, _remove),
    *(_drop_frame, _repeat_frame, _swap_frames, _cut, _cut, _cut_header, _replace),
    *(_flip_head, _flip_head, _flip_head, _displace, _displace, _contradict),
)


def _some(draw, contents):
    return draw.choice(sorted(contents))


def _range(draw, data):
    start = draw.randrange(len(data))
    return start, min(len(data), start + draw.choice((1, 4, 16, 64, 512)))


def _frames(draw, contents):
    """A file, and its frames from some one on; rather the last ones, where words differ."""
    files = {name: PlainFile(name).read(data).frames for name, data in contents.items()}
    name = draw.choice(sorted(name for name, frames in files.items() if frames))
    frames = files[name]
    return name, frames[draw.choice((draw.randrange(len(frames)), max(0, len(frames) - 3))) :]


def _vouched(journal, contents):
    """Whether a whole frame behind the tail says that what was there had been durable."""
    name, offset, _ = journal.tail
    data, segment = contents[name], journal.segments[-1].segment
    place = data.find(b"\xf2RJ\n", offset)
    while place >= 0:
        end = place + FRAME_BYTES
        if end <= len(data):
            _, length, checksum = struct.unpack_from("<4sII", data, place)
            kind, of, _, _, _, durable = struct.unpack_from("<BIQIQQ", data, place + 12)
            is_whole = end + length <= len(data) and 1 <= kind <= 5
            if is_whole and zlib.crc32(data[place + 12 : end + length]) == checksum:
                if of == segment and durable > offset:
                    return True
                place = end + length - 1
        place = data.find(b"\xf2RJ\n", place + 1)
    return False


def judged(contents):
    """What a reader should say: (records, tail, closed), or None where it must refuse.

    tail: (file, offset, bytes, first record, whether something vouches for what was there). closed:
    (records, digest) of a writer that ended in order.
    """
    journal = PlainJournal(contents)
    only = journal.segments[-1] if len(journal.segments) == 1 else None
    if only is not None and not only.is_begun and len(contents[only.name]) <= OLD_HEADER_BYTES:
        # It looks like a file of format 1 whose header was torn: nothing was in it.
        journal = PlainJournal({n: d for n, d in contents.items() if n != only.name})
        is_next = int(only.name.removesuffix(".segment").rpartition("-")[2]) == journal.last_lsn + 1
        if not journal.problems and is_next:
            tail = only.name, 0, len(contents[only.name])
            return journal.records, (*tail, journal.last_lsn + 1, False), journal.closed
        return None
    if journal.problems or (journal.tail and _vouched(journal, contents)):
        return None
    tail = journal.tail and (*journal.tail, journal.last_lsn + 1, False)
    return journal.records, tail, journal.closed


def unnoticed(disk, seed):
    """One line for each damage that the product's reader judges otherwise than a plain one."""
    draw, memo = random.Random(f"damage {seed}"), {}
    for _ in range(TIMES):
        damage = draw.choice(DAMAGES)
        contents = {name: data for name, data in disk.contents.items() if data}
        if not any(PlainFile(name).read(data).frames for name, data in contents.items()):
            continue
        damage(draw, contents)
        wanted, found = judged(contents), read(contents, memo)
        if found != wanted:
            what = damage.__name__.strip("_")
            yield f"I9: after {what} a reader says {_told(found)}, should say {_told(wanted)}"


def read(contents, memo):
    """What the product's reader says, in the same words as `judged`."""
    other = SimulatedDisk()
    other.contents = contents
    other.durable = {name: len(data) for name, data in contents.items()}
    reader = Reader(other)
    try:
        records = [plain(each, memo) for each in reader.records()]
    except JournalError:
        return None if _is_read_so_far(other) else "nothing at all"
    tail = reader.tail
    told = tail and (tail.name, tail.offset, tail.size_bytes, tail.lsn, tail.was_durable)
    closed = reader.closed and (reader.closed.records, reader.closed.digest)
    return records, told, closed


def _is_read_so_far(disk):
    """Whether who only looks is shown what is before the damage, and where that is."""
    reader = Reader(disk, stops_at_damage=True)
    numbers = [each.lsn for each in reader.records() if each.lsn]
    if reader.damage is None or numbers != sorted(numbers):
        return False
    return reader.damage.name not in _behind_others(disk.contents)


def _behind_others(contents):
    """Segments that do not follow since the one before them cannot be read to its end: the damage
    is in that one."""
    segments = PlainJournal(contents).segments
    for former, each in pairwise(segments):
        is_whole = former.offset == len(contents[former.name])
        if former.is_begun and each.is_begun and not is_whole and each.before != former.digest:
            yield each.name


def _told(said):
    if isinstance(said, str):
        return said
    if said is None:
        return "that it is damaged"
    return f"{len(said[0])} records, cut and end: {said[1:]}"
