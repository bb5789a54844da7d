"""Runs that lose the nodes of journal and copy with their disks, and nothing acknowledged."""

import logging

import pytest

from roadstead.actors.binder.copy_link import CopyLink
from roadstead.journal_copy import CopyReceiver
from roadstead.journal_copy.folder import INCOMPLETE
from tests.simulation.copied_runs import simulate

FIRST = 54_020_000
CHUNK = 3


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("start", range(FIRST, FIRST + 3 * CHUNK, CHUNK))
def test_lost_nodes_and_processes_lose_nothing(start):
    outcomes = [simulate(seed) for seed in range(start, start + CHUNK)]

    assert [(each.problems, each.failure) for each in outcomes] == [([], "")] * CHUNK


@pytest.mark.parametrize("seed", [54_020_715, 54_020_734, 54_020_775])
def test_the_error_of_a_binder_that_was_cut_off_does_not_end_the_run(seed):
    """Its refused messages to the copy once reached the callers as their own."""
    outcome = simulate(seed)

    assert (outcome.problems, outcome.failure) == ([], "")


@pytest.mark.parametrize("what", ["power", "cut off", "copy's power", "process", "copy's process"])
def test_each_loss_alone_loses_nothing(what):
    outcome = simulate(FIRST + 100, losses=[what])

    assert (outcome.problems, outcome.failure) == ([], "")
    assert outcome.happened[what] == 1
    assert outcome.placed > 20, "the run placed pods"


def test_one_seed_gives_one_run():
    assert simulate(FIRST + 200).trace == simulate(FIRST + 200).trace


def test_a_run_without_a_node_for_a_new_copy_ends_with_the_reason():
    outcome = simulate(FIRST + 300, nodes="wx", losses=["copy's power"])

    assert "No other node can run journal-copy: the copy of the journal needs" in outcome.failure
    assert "what the binder acknowledged is in unused on w" in outcome.failure
    assert outcome.problems == []


def test_a_journal_lost_together_with_its_copy_ends_the_run_with_the_reason():
    outcome = simulate(FIRST + 400, losses=["both"])

    assert "The journal is lost with its node (node w is gone)" in outcome.failure
    assert "its copy in copy cannot replace it: journal-copy is gone" in outcome.failure


async def _confirms_at_once(self):
    self.start()


def _writes_nothing(self, message):
    """Answer as if the steps were carried out."""
    self._apply("complete" if message.is_complete else "write")
    self.lsn = max(self.lsn, message.lsn)
    if INCOMPLETE in self._disk.names():
        self._disk.remove(INCOMPLETE)


def found(monkeypatch, where, name, mistake, losses):
    """Return the problems that four seeds report with a planted mistake."""
    monkeypatch.setattr(where, name, mistake)
    outcomes = [simulate(seed, losses=losses) for seed in range(FIRST + 600, FIRST + 604)]
    return [text for each in outcomes for text in (*each.problems, each.failure)]


def test_binds_acknowledged_before_the_copy_has_them_are_found(monkeypatch):
    texts = found(monkeypatch, CopyLink, "wait_confirmed", _confirms_at_once, ["cut off"])

    for what in ("acknowledged beyond record", "a binder without a copy acknowledged"):
        assert any(what in each for each in texts)


def test_a_copy_that_confirms_without_writing_is_found(monkeypatch):
    texts = found(monkeypatch, CopyReceiver, "_carry_out", _writes_nothing, ["power"])

    assert any("ends with record 0, and record" in each for each in texts)
