"""A disk that loses data: a crash may drop, tear or zero bytes that were not synced.

A write may accept only the beginning of its data, as the system's own may.
"""

import errno
import random
from collections import Counter

from roadstead.journal import JournalError


class SimulatedFile:
    """An open file: it stays the same when it gets another name, or none."""

    def __init__(self, disk, name):
        self.disk, self.name = disk, name
        disk.opened.append(self)

    def write(self, data):
        taken = len(data)
        if self.disk.fails("short") and taken > 1:
            kept = bytes(data[: self.disk.random.randrange(1, taken)])
            self.disk.contents[self.name] += kept
            self.disk.shortened = True
            return taken
        if self.disk.fails("nothing"):
            return 0
        if taken > 1 and self.disk.random.random() < self.disk.short_writes:
            taken = self.disk.random.randrange(1, taken)
        room = self.disk.room_bytes
        if room is not None:
            taken = min(taken, room)
            if not taken:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.disk.room_bytes = room - taken
        if self.name is not None:
            self.disk.contents[self.name] += bytes(data[:taken])
        return taken

    def sync(self):
        self.disk.asked["bytes"] += 1
        if self.disk.fails_to_sync:
            raise OSError(errno.EIO, "Input/output error")
        if self.disk.fails("sync"):
            # The system treats the lost bytes as written, and reports the error to nobody else.
            self.disk.unsafe.add(self.name)
            raise OSError(errno.EIO, "Input/output error")
        if self.name is not None and self.name not in self.disk.unsafe:
            self.disk.durable[self.name] = len(self.disk.contents[self.name])

    def size(self):
        return len(self.disk.contents[self.name])

    def close(self):
        if self in self.disk.opened:
            self.disk.opened.remove(self)


class SimulatedDisk:
    """contents: the files that the system shows. durable: number of bytes that certainly survive a
    crash.

    short_writes: the share of writes that accept less than their data. removing: called with a file
    before its removal; renaming: with the new name of a file. asked: number of syncs by kind.
    fault: see `simulation/disk_faults.py`; met: whether it has happened. lied: durable bytes were
    lost. unsafe: files of which a sync failed. shortened: whether a write accepted less than it
    reported.
    """

    path = "simulated"

    def __init__(self, seed=0, room_bytes=None, short_writes=0.1):
        self.random = random.Random(seed)
        self.contents, self.durable, self.lasting = {}, {}, set()
        self.room_bytes, self.fails_to_sync = room_bytes, False
        self.short_writes, self.opened = short_writes, []
        self.locked = self.lied = False
        self.removing = lambda name: None
        self.renaming = lambda to: None
        self.asked, self.steps = Counter(), 0
        self.fault, self.met, self.unsafe = None, False, set()
        self.shortened = False

    def fails(self, what):
        """Whether this call is the one that fails in this way; OSError where every call fails."""
        fault = self.fault
        self.steps += 1
        if fault is None or self.steps < fault.at or fault.kind not in (what, "stops"):
            return False
        self.met = True
        if fault.kind == "stops":
            raise OSError(errno.EIO, "Input/output error")
        self.fault = None
        return True

    def lose_writes(self):
        """Lose pending writes: the system shows the bytes and treats them as written.

        Their writer has ended, and gets no error.
        """
        for name, data in self.contents.items():
            if self.durable[name] < len(data) and self.random.random() < 0.5:
                self.unsafe.add(name)

    def names(self):
        return sorted(self.contents)

    def read(self, name):
        return bytes(self.contents[name])

    def read_part(self, name, offset, size_bytes):
        if name not in self.contents:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return self.read(name)[offset : offset + size_bytes]

    def size(self, name):
        return len(self.contents[name])

    def create(self, name):
        self.fails("create")
        if name in self.contents:
            raise FileExistsError(name)
        self.contents[name], self.durable[name] = b"", 0
        return SimulatedFile(self, name)

    def extend(self, name):
        assert name in self.contents
        return SimulatedFile(self, name)

    def cut(self, name, size_bytes):
        self.fails("cut")
        self.asked["bytes"] += 1
        self.contents[name] = self.contents[name][:size_bytes]
        self.durable[name] = size_bytes

    def rewrite(self, name, offset):
        self.fails("rewrite")
        assert offset <= self.durable[name], "bytes marked as durable are durable"
        self.unsafe.discard(name)

    def rename(self, name, to):
        self.fails("rename")
        self.renaming(to)
        self._lose(to)
        self.contents[to] = self.contents.pop(name)
        self.durable[to] = self.durable.pop(name)
        self.unsafe = {to if each == name else each for each in self.unsafe - {to}}
        for file in self.opened:
            file.name = to if file.name == name else file.name
        self.sync_names()

    def remove(self, name):
        self.fails("remove")
        self.removing(name)
        self._lose(name)
        del self.contents[name]
        self.unsafe.discard(name)

    def _lose(self, name):
        """Writers that have the file open write to a file without a name."""
        for file in self.opened:
            file.name = None if file.name == name else file.name

    def sync_names(self):
        self.asked["names"] += 1
        self.fails("sync_names")
        self.lasting = set(self.contents)
        self.durable = {name: size for name, size in self.durable.items() if name in self.lasting}

    def lock(self):
        if self.locked:
            raise JournalError("journal simulated: in use by another process (pid 1)")
        self.locked = True

    def unlock(self):
        self.locked = False

    def crash(self):
        """Stop the machine: unsynced bytes survive up to some offset, or with a hole of zeros."""
        self.locked, self.fails_to_sync, self.room_bytes = False, False, None
        for file in self.opened:
            file.name = None
        self.opened, self.unsafe = [], set()
        for name, data in list(self.contents.items()):
            if name not in self.lasting and self.random.random() < 0.5:
                del self.contents[name], self.durable[name]
                continue
            safe = self.durable[name]
            end = self.random.randint(safe, len(data))
            kept = bytearray(data[:end])
            if end > safe and self.random.random() < 0.5:
                start = self.random.randint(safe, end - 1)
                stop = self.random.randint(start, end)
                kept[start:stop] = bytes(stop - start)
            self.contents[name], self.durable[name] = bytes(kept), len(kept)
        self.lasting = set(self.contents)
