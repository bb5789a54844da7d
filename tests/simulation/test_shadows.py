"""The shadows of binder and journal detect bugs that heal, or that no result shows."""

import random
from unittest.mock import patch

import pytest

from roadstead.binder.batch_start import BatchStart
from roadstead.binder.binder_journal import BinderJournal
from roadstead.binder.core import BinderCore
from roadstead.binder.rows import RowVersions
from roadstead.binder.tokens import TokenMemory
from roadstead.journal.files import FileJournal
from roadstead.journal.segments import Reader
from tests.journal.simulated_disk import SimulatedDisk
from tests.simulation import older, senseless
from tests.simulation.damage import judged, read
from tests.simulation.plain_journal import PlainJournal, plain
from tests.simulation.real_disk import differences
from tests.simulation.simulation import KINDS, simulate


def _nothing(self, *what, **how):
    return None


def _first_wins(self, owner, epoch):
    self._epochs.setdefault(owner, epoch)


def _keeps_one_more(self):
    results = self._results
    for _ in range(len(self._requests) - self._max_tokens - 1):
        oldest = next(iter(self._requests))
        if oldest not in results:
            break
        del self._requests[oldest], results[oldest]


def _always_changed(self, node_name, version, owner=""):
    self._rows[node_name] = version, owner, version


def _unsynced(self):
    self.durable_lsn = self.last_lsn


def _never_full(self, records):
    size_bytes = self._file.size_bytes
    self._file.append_records(records)
    self.grown_bytes += self._file.size_bytes - size_bytes
    self.last_lsn = records[-1].lsn


def problems(among, seed):
    """Return what a run's shadows find."""
    return "\n".join(simulate(seed, KINDS, among=among, rambles=False).problems)


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "among", "seeds", "text"),
    [
        (BinderCore, "advance_epoch", _first_wins, "plain", range(6), "epochs are"),
        (BinderCore, "_note_void", _nothing, "wide", (2, 5), "void tokens are"),
        (TokenMemory, "forget_oldest", _keeps_one_more, "quiet", (0, 1), "tokens are"),
        (RowVersions, "changed", _always_changed, "modes", range(4), "rows are"),
        (BatchStart, "drop_entries", _nothing, "quiet", (0, 1), "a bind whose filter raised"),
        (BinderJournal, "_note_revisions", _nothing, "plain", range(8), "revisions of"),
        (FileJournal, "_sync", _unsynced, "quiet", (0,), "no frame records the flush"),
        (FileJournal, "_write", _never_full, "wide", range(8), "the segment is"),
        (FileJournal, "_remove_old", _nothing, "wide", range(8), "files is"),
    ],
)
def test_a_shadow_detects_a_bug_that_heals_or_has_no_visible_result(
    owner, name, wrong, among, seeds, text
):
    with patch.object(owner, name, wrong):
        assert any(text in problems(among, seed) for seed in seeds)


@pytest.fixture(scope="module")
def disk():
    """The disk that a run has left."""
    disks = []

    class Kept(SimulatedDisk):
        def __init__(self, *what, **how):
            super().__init__(*what, **how)
            disks.append(self)

    with patch("tests.simulation.simulation.SimulatedDisk", Kept):
        assert problems("quiet", 1) == ""
    return disks[0]


def test_a_plain_reader_and_the_products_reader_return_the_same(disk):
    memo = {}
    records = [plain(each, memo) for each in Reader(disk).records()]

    found = PlainJournal(disk.contents)

    assert found.problems == []
    assert found.records == records
    assert found.closed is not None
    wanted = records, None, found.closed
    assert judged(disk.contents) == read(disk.contents, memo) == wanted


def test_a_plain_reader_refuses_a_missing_frame(disk):
    contents = dict(disk.contents)
    name = max(name for name in contents if name.endswith(".segment"))
    frame = PlainJournal(contents).segments[-1].frames[3]
    contents[name] = contents[name][: frame.offset] + contents[name][frame.end :]

    assert judged(contents) is None


def test_records_are_the_same_on_real_disks_and_in_files_of_other_releases(disk):
    assert list(differences(disk.contents)) == []
    records = list(Reader(disk).records())
    assert list(older.problems_of(records, 0)) == []
    assert list(senseless.problems_of(records, random.Random(0))) == []
