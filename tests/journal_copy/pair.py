"""A journal with its copy, on simulated disks, and messages that a test sends one by one."""

from roadstead.journal.files import FileJournal
from roadstead.journal.segments import Reader
from roadstead.journal_copy import CopyBegin, CopyReceiver, CopySender, RecordedDisk
from roadstead.journal_copy.folder import INCOMPLETE, copied_names
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal.test_files import records

SMALL_BYTES = 200
"""Size of a message: many frames are sent in parts."""


class Pair:
    """asides: disks that a copy has set aside. acked: the last record that was acknowledged."""

    def __init__(self, *, chunk_bytes=SMALL_BYTES, segment_bytes=3_000, max_waiting_bytes=20_000):
        self.sizes = {"chunk_bytes": chunk_bytes, "max_waiting_bytes": max_waiting_bytes}
        self.segment_bytes = segment_bytes
        self.disk, self.copy_disk, self.asides = SimulatedDisk(), SimulatedDisk(1), []
        self.epoch = self.copies = 0
        self.acked, self.flushed = 0, []
        self.next_binder()
        self.next_copy()

    def next_binder(self, disk=None, epoch=None):
        """Start a binder on a disk, the present one by default, and the records that it has."""
        if disk is not None:
            self.disk = disk
        self.disk.unlock()
        self.epoch = epoch or self.epoch + 1
        self.sender = CopySender(self.disk, self.epoch, lambda: self.journal.last_lsn, **self.sizes)
        recorded = RecordedDisk(self.disk, self.sender)
        self.journal = FileJournal(recorded, segment_bytes=self.segment_bytes)
        self.found = list(self.journal.recovered())
        self.flushed = []

    def next_copy(self, disk=None):
        """Start the process of a copy on a disk, the present one by default."""
        if disk is not None:
            self.copy_disk = disk
        self.copy_disk.unlock()
        self.copies += 1
        self.receiver = CopyReceiver(self.copy_disk, self._set_aside, self.copies)

    def _set_aside(self):
        self.asides.append(self.copy_disk)
        self.copy_disk = SimulatedDisk(len(self.asides) + 1)
        self.copy_disk.lock()
        return self.copy_disk

    def write(self, count=1):
        """Append records and flush; they are acknowledged when the copy has them, too."""
        first = self.journal.last_lsn + 1
        self.journal.append(records(first, first + count - 1))
        self.journal.flush()
        self.flushed.append((self.sender.required, self.journal.last_lsn))

    def receive(self, message):
        """Let the copy handle a message and return its answer."""
        is_begin = isinstance(message, CopyBegin)
        return (self.receiver.begin if is_begin else self.receiver.write)(message)

    def exchange(self):
        """Send the next message and its answer; return the message, None if none is due."""
        message = self.sender.next_message()
        if message is not None:
            self.sender.answered(self.receive(message))
            self.acknowledge()
        return message

    def acknowledge(self):
        while self.flushed and self.flushed[0][0] <= self.sender.confirmed:
            self.acked = self.flushed.pop(0)[1]

    def exchange_all(self):
        """Send messages until none is due; return how many."""
        count = 0
        while self.exchange() is not None:
            count += 1
        return count


def contents(disk):
    """Return the files of a disk that a copy has, too."""
    return {name: disk.contents[name] for name in copied_names(disk)}


def last_lsn(disk):
    """Return the last record of the journal on a disk. JournalError if it is damaged."""
    reader = Reader(disk)
    for _ in reader.groups():
        pass
    return reader.last_lsn


def is_marked(disk):
    return INCOMPLETE in disk.names()
