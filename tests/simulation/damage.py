"""Damage to a journal at rest: whatever happens to durable bytes is noticed, and said.

A copy of the disk is damaged in some way and read again. Either the reader refuses the journal or
says what it left out, or every record is what it was.
"""

import random

from roadstead.journal import JournalError
from roadstead.journal.segments import Reader
from tests.journal.simulated_disk import SimulatedDisk

TIMES = 6


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


DAMAGES = (_flip, _flip, _zero, _misdirect, _drop, _remove)


def _some(draw, contents):
    return draw.choice(sorted(contents))


def _range(draw, data):
    start = draw.randrange(len(data))
    return start, min(len(data), start + draw.choice((1, 4, 16, 64, 512)))


def unnoticed(disk, records, seed):
    """One line for each damage after which other records were read, and nothing was said."""
    draw = random.Random(f"damage {seed}")
    found = []
    for _ in range(TIMES):
        damage = draw.choice(DAMAGES)
        contents = {name: data for name, data in disk.contents.items() if data}
        before = dict(contents)
        if not contents:
            continue
        damage(draw, contents)
        other = SimulatedDisk()
        other.contents = contents
        other.durable = {name: len(data) for name, data in contents.items()}
        reader = Reader(other)
        try:
            read = list(reader.records())
        except JournalError:
            continue
        if reader.tail is None and read != records and contents != before:
            what = damage.__name__.strip("_")
            found.append(
                f"I9: {len(records)} records are {len(read)} after {what}, nothing is said"
            )
    return found
