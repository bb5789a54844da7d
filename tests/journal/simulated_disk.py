"""A disk that forgets: what was not synced may be lost, torn or turned to zeros by a crash."""

import errno
import random

from roadstead.journal import JournalError


class SimulatedFile:
    def __init__(self, disk, name):
        self.disk, self.name = disk, name

    def write(self, data):
        room = self.disk.room_bytes
        if room is not None and len(data) > room:
            self.disk.contents[self.name] += data[:room]
            self.disk.room_bytes = 0
            raise OSError(errno.ENOSPC, "No space left on device")
        if room is not None:
            self.disk.room_bytes = room - len(data)
        self.disk.contents[self.name] += data

    def sync(self):
        if self.disk.fails_to_sync:
            raise OSError(errno.EIO, "Input/output error")
        self.disk.durable[self.name] = len(self.disk.contents[self.name])

    def close(self):
        pass


class SimulatedDisk:
    """contents: what the system shows. durable: how much of it survives a crash for certain."""

    place = "simulated"

    def __init__(self, seed=0, room_bytes=None):
        self.random = random.Random(seed)
        self.contents, self.durable, self.lasting = {}, {}, set()
        self.room_bytes, self.fails_to_sync = room_bytes, False
        self.locked = False

    def names(self):
        return sorted(self.contents)

    def read(self, name):
        return bytes(self.contents[name])

    def create(self, name):
        if name in self.contents:
            raise FileExistsError(name)
        self.contents[name], self.durable[name] = b"", 0
        return SimulatedFile(self, name)

    def cut(self, name, size_bytes):
        self.contents[name] = self.contents[name][:size_bytes]
        self.durable[name] = size_bytes

    def rename(self, name, to):
        self.contents[to] = self.contents.pop(name)
        self.durable[to] = self.durable.pop(name)
        self.sync_names()

    def remove(self, name):
        del self.contents[name]

    def sync_names(self):
        self.lasting = set(self.contents)
        self.durable = {name: size for name, size in self.durable.items() if name in self.lasting}

    def lock(self):
        if self.locked:
            raise JournalError("journal simulated: in use by another process (pid 1)")
        self.locked = True

    def unlock(self):
        self.locked = False

    def crash(self):
        """The machine stops: unsynced bytes survive up to some place, or with a hole of zeros."""
        self.locked, self.fails_to_sync, self.room_bytes = False, False, None
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
