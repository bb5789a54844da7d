"""Disk faults during a run, drawn from its seed.

sync: one sync fails; its data is not durable, and no later sync makes it durable. short: one write
writes fewer bytes than it reports. nothing: one write writes no byte and reports that. stops: all
calls fail after some call. rot: durable bytes that a later durable frame confirms change: a write
that was lost or misdirected, and detected late.

Acknowledged records exist afterwards, or the product reports that they do not.
"""

import random
from dataclasses import dataclass

from tests.simulation.plain_journal import FLUSHED, HEADER_BYTES, PlainJournal

SHARE = 0.2
CALLS = 120
"""The failing call is one of the first so many calls of a disk; a run has some hundreds."""


@dataclass(frozen=True, slots=True)
class DiskFault:
    """kind: as above. at: the number of the failing call. at_s: of rot, in virtual time."""

    kind: str
    at: int
    at_s: float


def fault_of(seed, kinds):
    """Return the fault of a seed if `disk` is wanted; most seeds have none."""
    draw = random.Random(f"disk {seed}")
    if "disk" not in kinds or draw.random() >= SHARE:
        return None
    kind = draw.choice(("sync", "short", "stops", "rot"))
    at, at_s = draw.randint(3, CALLS), draw.uniform(0.1, 8.0)
    if kind == "short" and draw.random() < 0.3:
        kind = "nothing"
    return DiskFault(kind, at, at_s)


def _vouches(frame, durable_bytes):
    """Whether a frame permanently confirms that the bytes before it are durable. The newest mark
    may be torn when the machine stops: rot before it then looks like bytes that were never written.
    """
    return frame.kind == FLUSHED and frame.end <= durable_bytes


def rot(disk, seed):
    """Change some confirmed bytes; return whether there were any."""
    draw = random.Random(f"rot {seed}")
    files = PlainJournal(disk.contents).files
    ends = {
        each.name: each.frames[-1].end
        if not each.is_segment
        else max((f.offset for f in each.frames if _vouches(f, disk.durable[each.name])), default=0)
        for each in files
    }
    names = sorted(name for name, end in ends.items() if end > HEADER_BYTES)
    if not names:
        return False
    name = draw.choice(names)
    data = disk.contents[name]
    start = draw.randrange(HEADER_BYTES, ends[name])
    end = min(ends[name], start + draw.choice((1, 16, 512)))
    other = draw.choice((bytes(end - start), data[: end - start]))
    if other == data[start:end]:
        other = bytes(each ^ 1 for each in other)
    disk.contents[name] = data[:start] + other + data[end:]
    disk.lied = True
    return True
