"""Damage to a journal at rest: every change of durable bytes is detected and reported.

A copy of the disk is damaged in one way and read again by the product and by `plain_journal`.
Damage to bytes that a later frame confirms is refused; an unconfirmed end is cut and reported;
otherwise every record is unchanged.
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
"""Header bytes of format 1. A shorter file does not show its format."""


def _flip(draw, contents):
    """Flip one bit of a file."""
    name = _some(draw, contents)
    data, place = bytearray(contents[name]), draw.randrange(len(contents[name]))
    data[place] ^= 1 << draw.randrange(8)
    contents[name] = bytes(data)


def _zero(draw, contents):
    """Zero a range of a file, as a lost write does."""
    name = _some(draw, contents)
    start, end = _range(draw, contents[name])
    contents[name] = contents[name][:start] + bytes(end - start) + contents[name][end:]


def _misdirect(draw, contents):
    """Overwrite a range of one file with a range of another file or of the same one."""
    source, target = _some(draw, contents), _some(draw, contents)
    start, end = _range(draw, contents[source])
    data = contents[source][start:end]
    place = draw.randrange(len(contents[target]))
    old = contents[target]
    contents[target] = (old[:place] + data + old[place + len(data) :])[: len(old)]


def _drop(draw, contents):
    """Remove a range of a file, as a short write does."""
    name = _some(draw, contents)
    start, end = _range(draw, contents[name])
    contents[name] = contents[name][:start] + contents[name][end:]


def _remove(draw, contents):
    """Remove a whole file, but never the only one: without it the journal was never started."""
    if len(contents) > 1:
        del contents[_some(draw, contents)]


def _drop_frame(draw, contents):
    """Remove a whole frame, as if it had never been written."""
    name, (frame, *_) = _frames(draw, contents)
    contents[name] = contents[name][: frame.offset] + contents[name][frame.end :]


def _repeat_frame(draw, contents):
    """Write a frame twice."""
    name, (frame, *_) = _frames(draw, contents)
    data = contents[name]
    contents[name] = data[: frame.end] + data[frame.offset : frame.end] + data[frame.end :]


def _swap_frames(draw, contents):
    """Write two frames in the wrong order."""
    name, (one, *others) = _frames(draw, contents)
    data = contents[name]
    for other in others[:1]:
        middle = data[other.offset : other.end] + data[one.offset : one.end]
        contents[name] = data[: one.offset] + middle + data[other.end :]


def _cut(draw, contents):
    """Cut a file at the end of a frame or inside one."""
    name, (frame, *_) = _frames(draw, contents)
    places = (frame.offset, frame.offset + 1, frame.offset + FRAME_BYTES, frame.end - 1, frame.end)
    contents[name] = contents[name][: draw.choice(places)]


def _cut_header(draw, contents):
    """Cut a file inside its header."""
    name = _some(draw, contents)
    contents[name] = contents[name][: draw.choice((8, 35, 36, 37, 55))]


def _flip_head(draw, contents):
    """Flip a bit of a file's header or of a frame's header."""
    name, (frame, *_) = _frames(draw, contents)
    start, end = draw.choice(((0, HEADER_BYTES), (frame.offset, frame.offset + FRAME_BYTES)))
    data, place = bytearray(contents[name]), draw.randrange(start, end)
    data[place] ^= 1 << draw.randrange(8)
    contents[name] = bytes(data)


def _replace(draw, contents):
    """Replace the contents of a file by those of another file."""
    target = _some(draw, contents)
    contents[target] = contents[_some(draw, contents)]


def _displace(draw, contents):
    """Put a file from another position in the journal, or from another one, in a file's place."""
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
    """Make a valid frame that contradicts its own records or the records before it."""
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
    """Return a file and its frames from some frame on; mostly the last frames, where readers may
    differ.
    """
    files = {name: PlainFile(name).read(data).frames for name, data in contents.items()}
    name = draw.choice(sorted(name for name, frames in files.items() if frames))
    frames = files[name]
    return name, frames[draw.choice((draw.randrange(len(frames)), max(0, len(frames) - 3))) :]


def _vouched(journal, contents):
    """Whether a whole frame after the tail confirms that the tail was durable."""
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
    """Return what a reader should return: (records, tail, closed), or None where it must refuse.

    tail: (file, offset, bytes, first record, whether a later frame confirms these bytes). closed:
    (records, digest) of a writer that closed the journal properly.
    """
    journal = PlainJournal(contents)
    only = journal.segments[-1] if len(journal.segments) == 1 else None
    if only is not None and not only.is_begun and len(contents[only.name]) <= OLD_HEADER_BYTES:
        # It looks like a file of format 1 whose header was torn: the file was empty.
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
    """Return one line for each damage that the product's reader and the plain reader judge
    differently.
    """
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
            yield f"I9: after {what} a reader reports {_shown(found)}, not {_shown(wanted)}"


def read(contents, memo):
    """Return the result of the product's reader in the form of `judged`."""
    other = SimulatedDisk()
    other.contents = contents
    other.durable = {name: len(data) for name, data in contents.items()}
    reader = Reader(other)
    try:
        records = [plain(each, memo) for each in reader.records()]
    except JournalError:
        return None if _is_read_so_far(other) else "nothing at all"
    tail = reader.tail
    tail_facts = tail and (tail.name, tail.offset, tail.size_bytes, tail.lsn, tail.was_durable)
    closed = reader.closed and (reader.closed.records, reader.closed.digest)
    return records, tail_facts, closed


def _is_read_so_far(disk):
    """Whether a read-only reader returns the records before the damage, and the position of the
    damage.
    """
    reader = Reader(disk, stops_at_damage=True)
    numbers = [each.lsn for each in reader.records() if each.lsn]
    if reader.damage is None or numbers != sorted(numbers):
        return False
    return reader.damage.name not in _behind_others(disk.contents)


def _behind_others(contents):
    """Segments that do not follow because the segment before them cannot be read to its end: that
    segment is the damaged one.
    """
    segments = PlainJournal(contents).segments
    for former, each in pairwise(segments):
        is_whole = former.offset == len(contents[former.name])
        if former.is_begun and each.is_begun and not is_whole and each.before != former.digest:
            yield each.name


def _shown(tail):
    if isinstance(tail, str):
        return tail
    if tail is None:
        return "that it is damaged"
    return f"{len(tail[0])} records, cut and end: {tail[1:]}"
