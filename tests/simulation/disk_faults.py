"""What goes wrong with a disk in the course of a run, drawn from its seed.

sync: one sync fails; what it was for is not durable, and no later sync makes it so. short: one
write takes less than it says. nothing: one write takes no byte, and says so. stops: from some call
on all fail. rot: bytes that were durable, and that a later durable frame vouches for, are others: a
write that was lost or went elsewhere, found late.

What was acknowledged is there afterwards, or the product says that it is not.
"""

import random
from dataclasses import dataclass

from tests.simulation.plain_journal import FLUSHED, HEADER_BYTES, PlainJournal

SHARE = 0.2
CALLS = 120
"""Of a disk, among which the one is that fails; a run has some hundreds."""


@dataclass(frozen=True, slots=True)
class DiskFault:
    """kind: as above. at: the number of the call that fails. at_s: of rot, in virtual time."""

    kind: str
    at: int
    at_s: float


def fault_of(seed, kinds):
    """The fault of a seed, where `disk` is wanted; most have none."""
    draw = random.Random(f"disk {seed}")
    if "disk" not in kinds or draw.random() >= SHARE:
        return None
    kind = draw.choice(("sync", "short", "stops", "rot"))
    at, at_s = draw.randint(3, CALLS), draw.uniform(0.1, 8.0)
    if kind == "short" and draw.random() < 0.3:
        kind = "nothing"
    return DiskFault(kind, at, at_s)


def _vouches(frame, durable_bytes):
    """Whether a frame says for good that what is before it is durable. The newest mark may be torn
    with the machine: what is rotten in front of it is then no other than what never came.
    """
    return frame.kind == FLUSHED and frame.end <= durable_bytes


def rot(disk, seed):
    """Other bytes in the place of some that are vouched for; whether there were any."""
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
