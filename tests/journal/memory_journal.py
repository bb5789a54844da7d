"""A journal whose records stay in memory, for tests of its writers."""

from roadstead.journal import NullJournal


class MemoryJournal(NullJournal):
    """Keeps records in memory; `durable` are those that a flush covered."""

    def __init__(self):
        super().__init__()
        self.records = []
        self.flushed_lsn = 0

    def append(self, records):
        last_lsn = super().append(records)
        self.records.extend(records)
        return last_lsn

    def flush(self):
        self.flushed_lsn = self.last_lsn

    @property
    def durable(self):
        return self.records[: self.flushed_lsn]
