"""The interface of the journal: order without gaps, and the records that a flush covers."""

import pytest

from roadstead.journal import JournalError, JournalRecord, NullJournal, RecordKind
from tests.journal.memory_journal import MemoryJournal


def record(lsn: int) -> JournalRecord:
    return JournalRecord(lsn, RecordKind.DELETE, f"u{lsn}", f"default/{lsn}", "")


@pytest.mark.parametrize("journal", [NullJournal(), MemoryJournal()])
def test_append_returns_the_last_number(journal):
    assert journal.append([]) == 0
    assert journal.append([record(1), record(2)]) == 2
    assert journal.append([record(3)]) == 3
    journal.flush()


@pytest.mark.parametrize("lsn", [0, 2, 7])
def test_a_gap_in_the_numbers_is_an_error(lsn):
    with pytest.raises(JournalError, match=f"record {lsn} does not follow record 0"):
        MemoryJournal().append([record(lsn)])


def test_only_flushed_records_are_durable():
    journal = MemoryJournal()
    journal.append([record(1), record(2)])
    assert journal.durable == []
    journal.flush()
    journal.append([record(3)])
    assert [one.lsn for one in journal.durable] == [1, 2]
    assert [one.lsn for one in journal.records] == [1, 2, 3]
