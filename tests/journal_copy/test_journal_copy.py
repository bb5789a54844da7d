"""The copy of a journal: what is sent, confirmed, caught up, promoted and fenced."""

import pytest

from roadstead.journal import JournalError
from roadstead.journal.headers import segment_name
from roadstead.journal_copy import (
    CopyBegin,
    CopyFencedError,
    CopyReceiver,
    CopyState,
    CopyWrite,
    Step,
    StepKind,
)
from roadstead.journal_copy.receiver import ReceiverState
from roadstead.journal_copy.sender import SenderState
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal_copy.pair import SMALL_BYTES, Pair, contents, is_marked, last_lsn


def test_a_copy_has_the_same_files_with_the_same_bytes():
    pair = Pair()
    for _ in range(30):
        pair.write(2)
        pair.exchange_all()
        assert pair.acked == pair.journal.last_lsn
        assert last_lsn(pair.copy_disk) == pair.acked
    assert len(contents(pair.disk)) > 1, "several segments"

    pair.journal.snapshot([])
    pair.write()
    pair.journal.end()
    pair.exchange_all()

    assert contents(pair.copy_disk) == contents(pair.disk)
    assert len(contents(pair.disk)) == 2, "a snapshot and the segment after it"


def test_nothing_is_acknowledged_before_the_copy_has_it():
    pair = Pair()
    pair.write()
    pair.sender.next_message()
    assert not pair.sender.is_confirmed
    assert pair.acked == 0

    pair.exchange_all()

    assert pair.sender.is_confirmed
    assert pair.acked == 1


def test_the_mark_of_a_flush_is_sent_with_the_next_records():
    """Otherwise each batch would take two messages and two syncs."""
    pair = Pair(chunk_bytes=1 << 20)
    pair.write()
    pair.exchange_all()

    for _ in range(5):
        pair.write()
        assert pair.exchange_all() == 1


def test_groups_that_wait_for_an_answer_are_sent_together():
    pair = Pair(chunk_bytes=1 << 20)
    pair.exchange_all()
    for _ in range(5):
        pair.write()

    assert pair.exchange_all() == 1
    assert pair.acked == 5


def test_a_message_is_repeated_until_it_is_answered_and_a_second_copy_changes_nothing():
    pair = Pair()
    pair.write(3)
    while (message := pair.sender.next_message()) is not None:
        assert pair.sender.next_message() is message
        first = pair.receive(message)
        before = contents(pair.copy_disk)
        second = pair.receive(message)
        if isinstance(message, CopyBegin):
            assert second == first
        assert second.number == first.number
        assert contents(pair.copy_disk) == before
        pair.sender.answered(first)
        pair.sender.answered(first)
        pair.acknowledge()

    assert pair.acked == 3


def test_an_old_message_that_arrives_late_changes_nothing():
    pair = Pair()
    pair.write()
    begin = pair.exchange()
    write = pair.exchange()
    pair.write()
    pair.exchange_all()
    before = contents(pair.copy_disk)

    assert pair.receive(begin).number == pair.receive(write).number > 1

    assert contents(pair.copy_disk) == before


def test_old_messages_that_reach_a_new_process_of_the_copy_change_nothing():
    """Their steps continue files that this one may not have."""
    pair = Pair()
    pair.write()
    begin, write = pair.exchange(), pair.exchange()
    pair.next_copy(SimulatedDisk(7))

    pair.receive(begin)
    pair.receive(write)

    assert contents(pair.copy_disk) == {}
    pair.exchange_all()
    pair.sender.pair_again()
    pair.exchange_all()
    assert contents(pair.copy_disk).keys() == contents(pair.disk).keys()


def test_a_new_process_of_the_copy_is_sent_only_missing_records():
    pair = Pair(chunk_bytes=1 << 20)
    pair.write(20)
    pair.exchange_all()
    pair.next_copy()
    pair.write()

    sent = []
    while (message := pair.exchange()) is not None:
        sent.append(message)

    refused, begun, write = sent
    assert isinstance(refused, CopyWrite), "the copy knows nothing of this pairing"
    assert isinstance(begun, CopyBegin)
    assert [step.kind for step in write.steps] == [StepKind.APPEND]
    assert len(write.steps[0].data) < len(contents(pair.disk)[segment_name(1)]) / 2
    assert contents(pair.copy_disk) == contents(pair.disk)


def test_a_copy_on_another_node_is_caught_up_in_messages_of_bounded_size():
    pair = Pair()
    pair.write(100)
    pair.exchange_all()
    pair.next_copy(SimulatedDisk(7))
    pair.write()

    sizes = []
    while (message := pair.exchange()) is not None:
        if isinstance(message, CopyWrite):
            sizes.append(sum(len(step.data) for step in message.steps))

    assert max(sizes) == pair.sizes["chunk_bytes"]
    assert len(sizes) > 20
    assert contents(pair.copy_disk) == contents(pair.disk)
    assert pair.acked == 101


def test_a_copy_is_marked_until_it_is_complete():
    pair = Pair()
    pair.write(100)
    pair.exchange()
    while pair.receiver.state is ReceiverState.INCOMPLETE:
        assert pair.exchange() is not None
        assert is_marked(pair.copy_disk) == (pair.receiver.state is ReceiverState.INCOMPLETE)


def test_a_folder_with_another_journal_is_set_aside_and_kept():
    other = Pair()
    other.write(5)
    other.exchange_all()
    before = contents(other.copy_disk)
    pair = Pair()
    pair.next_copy(other.copy_disk)
    pair.write(3)

    pair.exchange_all()

    assert contents(pair.copy_disk) == contents(pair.disk)
    (aside,) = pair.asides
    assert contents(aside) == before
    assert not is_marked(aside)


@pytest.mark.parametrize("chunk_bytes", [SMALL_BYTES, 1 << 20])
def test_a_segment_of_another_writer_is_set_aside_although_its_checksum_is_equal(chunk_bytes):
    """Data with its own CRC behind it has a CRC that does not depend on it, as a header has."""
    pair = Pair(chunk_bytes=chunk_bytes)
    pair.exchange_all()
    pair.next_binder()

    pair.exchange_all()

    assert len(pair.asides) == 1
    assert contents(pair.copy_disk).keys() == contents(pair.disk).keys()
    assert contents(pair.copy_disk) != contents(pair.asides[0])
    assert not is_marked(pair.asides[0])
    assert not is_marked(pair.copy_disk)
    pair.receiver.validate()


def test_an_incomplete_copy_that_is_set_aside_stays_marked():
    pair, other, name = Pair(), Pair(), segment_name(1)
    pair.write(100)
    other.write(2)
    # Both begin with the same bytes: the copy is not a part of the other journal once it is longer.
    while len(contents(pair.copy_disk).get(name, b"")) <= len(contents(other.disk)[name]):
        pair.exchange()
    assert is_marked(pair.copy_disk)
    other.next_copy(pair.copy_disk)

    other.exchange_all()

    (aside,) = other.asides
    assert is_marked(aside)
    assert not is_marked(other.copy_disk)


def test_steps_beyond_the_bound_are_dropped_and_caught_up_from_the_files():
    pair = Pair(max_waiting_bytes=2_000)
    pair.exchange_all()
    while pair.sender.state is SenderState.COPYING:
        pair.write(5)
        pair.sender.validate()

    pair.exchange_all()

    assert pair.acked == pair.journal.last_lsn
    assert contents(pair.copy_disk) == contents(pair.disk)


def test_a_snapshot_during_the_catching_up_begins_it_again():
    pair = Pair()
    pair.write(100)
    pair.exchange_all()
    pair.next_copy(SimulatedDisk(3))
    pair.write()
    while pair.sender.state is not SenderState.CATCHING_UP:
        pair.exchange()

    pair.journal.snapshot([])

    assert pair.sender.state is SenderState.UNPAIRED
    pair.exchange_all()
    assert contents(pair.copy_disk) == contents(pair.disk)


def test_a_promoted_copy_is_a_journal_with_every_acknowledged_record():
    pair = Pair()
    for _ in range(10):
        pair.write(3)
        pair.exchange_all()
    pair.write()

    promoted = pair.receiver.promote(2)

    assert (promoted.why, promoted.lsn) == ("", 30)
    pair.next_binder(pair.copy_disk)
    assert len(pair.found) == 30
    assert pair.journal.epoch == 2, "the epoch of the writer"


def test_an_old_binder_gets_no_confirmation_from_a_promoted_copy():
    pair = Pair()
    pair.write()
    pair.exchange_all()
    pair.receiver.promote(2)
    pair.write()

    for _ in range(2):
        with pytest.raises(CopyFencedError, match="belongs to the binder of epoch 2"):
            pair.exchange()
    with pytest.raises(CopyFencedError):
        pair.receiver.begin(CopyBegin(1, 9))

    assert pair.acked == 1


def test_an_old_binder_gets_no_confirmation_from_the_copy_of_a_new_one():
    pair = Pair()
    pair.write()
    pair.exchange_all()
    old = pair.sender
    pair.write()
    pair.next_binder()
    pair.exchange_all()

    with pytest.raises(CopyFencedError):
        pair.receive(old.next_message())
    old.answered(CopyState(2, 1))

    assert old.state is SenderState.FENCED
    with pytest.raises(CopyFencedError, match="another binder"):
        old.next_message()


def test_a_second_promotion_changes_nothing():
    pair = Pair()
    pair.write()
    pair.exchange_all()
    first = pair.receiver.promote(2)
    pair.copy_disk.lock()

    assert pair.receiver.promote(2) == first

    with pytest.raises(JournalError, match="in use"):
        pair.copy_disk.lock()


def test_a_copy_that_is_not_complete_is_not_promoted():
    pair = Pair()
    assert "not complete" in pair.receiver.promote(2).why
    pair.write(100)
    pair.exchange()
    pair.exchange()

    assert "not complete" in pair.receiver.promote(2).why
    assert pair.receiver.state is ReceiverState.INCOMPLETE


def test_the_binder_that_writes_to_a_copy_cannot_take_it_over():
    pair = Pair()
    pair.write()
    pair.exchange_all()

    assert pair.receiver.promote(1).why == "it is of the binder of epoch 1"


def test_a_disk_that_fails_ends_the_copy_with_a_reason():
    pair = Pair()
    pair.write()
    pair.exchange_all()
    pair.copy_disk.room_bytes = 3
    pair.write()

    for _ in range(2):
        with pytest.raises(JournalError, match="cannot be written: No space left"):
            pair.exchange()

    assert pair.acked == 1
    pair.receiver.validate()
    assert "No space left" in pair.receiver.promote(2).why


def test_steps_that_do_not_fit_the_files_are_refused():
    receiver = CopyReceiver(SimulatedDisk(), SimulatedDisk)
    receiver.begin(CopyBegin(1, 1))
    name = segment_name(1)
    steps = Step(StepKind.CREATE, name), Step(StepKind.APPEND, name, offset=7, data=b"x")

    with pytest.raises(JournalError, match="has 0 bytes, and the journal goes on at 7"):
        receiver.write(CopyWrite(1, 1, 1, 1, steps))


@pytest.mark.parametrize("name", ["../journal", "lock", "copy-is-incomplete", "/etc/passwd"])
def test_only_files_of_a_journal_are_written(name):
    receiver = CopyReceiver(SimulatedDisk(), SimulatedDisk)
    receiver.begin(CopyBegin(1, 1))

    with pytest.raises(JournalError, match="no files of a journal"):
        receiver.write(CopyWrite(1, 1, 1, 1, (Step(StepKind.CREATE, name),)))
    with pytest.raises(JournalError, match="no files of a journal"):
        receiver.write(CopyWrite(1, 1, 1, 1, (Step(StepKind.RENAME, segment_name(1), name),)))

    assert receiver.promote(2).why, "nothing of it counts as complete"
