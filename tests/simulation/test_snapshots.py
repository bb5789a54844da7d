"""State that a snapshot omits is detected."""

import pytest

from roadstead.facts.run_mark import EPOCH, VOID, RunMark
from roadstead.journal import JournalRecord, RecordKind
from tests.builders import node, pod
from tests.simulation.snapshots import Kept

BEFORE = (
    JournalRecord(1, RecordKind.NODE, "n1", "n1", "n1", subject=node("n1")),
    JournalRecord(2, RecordKind.ADD, "a", "a", "", facts=pod()),
    JournalRecord(3, RecordKind.BIND, "a", "a", "n1", "t", "s", 2, facts=pod()),
    JournalRecord(4, RecordKind.RUN, "", "", "", "void", subject=RunMark(VOID)),
    JournalRecord(5, RecordKind.ADD, "b", "b", "", facts=pod()),
    JournalRecord(6, RecordKind.DELETE, "c", "c", ""),
)
AFTER = (
    BEFORE[0]._replace(lsn=0),
    JournalRecord(0, RecordKind.RUN, "", "", "", owner="s", epoch=2, subject=RunMark(EPOCH)),
    BEFORE[3]._replace(lsn=0),
    BEFORE[2]._replace(kind=RecordKind.LOAD),
    BEFORE[4]._replace(lsn=0),
    BEFORE[5]._replace(lsn=0),
)


def lost(records):
    return list(Kept.of(BEFORE).lost(Kept.of(records)))


def test_a_complete_snapshot_loses_nothing():
    assert lost(AFTER) == []


@pytest.mark.parametrize(
    ("left_out", "text"),
    [
        (0, "I4: a snapshot changes nodes ['n1']"),
        (2, "I6: a snapshot forgets void tokens ['void']"),
        (4, "I4: a snapshot changes pods ['b']"),
        (5, "I4: a snapshot changes pods ['c']"),
    ],
)
def test_omitted_state_is_named(left_out, text):
    assert lost([each for each in AFTER if each is not AFTER[left_out]]) == [text]


def test_an_omitted_epoch_is_named():
    fenced = JournalRecord(
        7, RecordKind.RUN, "", "", "", owner="s", epoch=3, subject=RunMark(EPOCH)
    )
    before = Kept.of((*BEFORE, fenced))

    assert list(before.lost(Kept.of(AFTER))) == ["I8: a snapshot forgets epochs of ['s']"]


def test_a_bind_kept_without_its_token_is_named():
    changed = [
        each._replace(token="", owner="", epoch=0) if each.token == "t" else each for each in AFTER
    ]

    assert lost(changed) == ["I4: a snapshot changes pods ['a']"]
