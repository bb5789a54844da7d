"""Any order of writes, lost and repeated messages, crashes, new copies and new binders."""

from hypothesis import given
from hypothesis import strategies as st

from roadstead.journal import JournalError
from roadstead.journal_copy import CopyFencedError
from roadstead.journal_copy.receiver import ReceiverState
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal.test_files import records
from tests.journal_copy.pair import SMALL_BYTES, Pair, contents, is_marked, last_lsn

ACTIONS = (
    *("write", "write many", "exchange", "exchange", "exchange all", "lose answer", "repeat"),
    *("snapshot", "binder dies", "copy dies", "copy's machine stops", "copy elsewhere", "promote"),
)


class World:
    """A pair of disks of which each may be lost, and messages of the past."""

    def __init__(self, chunk_bytes):
        self.pair, self.past, self.disks = Pair(chunk_bytes=chunk_bytes), [], 10
        self.old = []

    def act(self, action):
        pair = self.pair
        if action == "write":
            pair.write()
        elif action == "write many":
            pair.write(40)
        elif action == "snapshot":
            # What a snapshot has instead of its records is of no interest here.
            pair.journal.snapshot(records(1, pair.journal.last_lsn))
            pair.flushed.append((pair.sender.required, pair.journal.last_lsn))
        elif action == "exchange":
            self.note(pair.exchange())
        elif action == "exchange all":
            pair.exchange_all()
        elif action == "lose answer":
            message = pair.sender.next_message()
            if message is not None:
                pair.receive(message)
        elif action == "repeat":
            for message in self.past[-3:]:
                self.receive_old(message)
        elif action == "binder dies":
            self.bury()
            pair.next_binder()
        elif action in ("copy dies", "copy's machine stops"):
            if action == "copy's machine stops":
                pair.copy_disk.crash()
            pair.next_copy()
        elif action == "copy elsewhere":
            self.disks += 1
            pair.next_copy(SimulatedDisk(self.disks))
        else:
            self.promote()

    def note(self, message):
        if message is not None:
            self.past.append(message)

    def receive_old(self, message):
        try:
            self.pair.receive(message)
        except CopyFencedError:
            assert message.epoch < self.pair.epoch

    def bury(self):
        """Keep a binder that ended: it may be a paused one, which returns."""
        self.old.append(self.pair.sender)

    def promote(self):
        """Lose the binder's disk; go on with the copy, if it is complete."""
        pair = self.pair
        was_complete = pair.receiver.state is ReceiverState.COMPLETE
        promoted = pair.receiver.promote(pair.epoch + 1)
        assert was_complete == (promoted.why == "")
        if not was_complete:
            return
        self.bury()
        for sender in self.old:
            before = sender.confirmed
            try:
                if (message := sender.next_message()) is not None:
                    sender.answered(pair.receive(message))
            except (CopyFencedError, JournalError, OSError):
                # Its files may be gone, too: a later binder used its disk.
                pass
            assert sender.confirmed == before, "an old binder was confirmed"
        pair.next_binder(pair.copy_disk)
        assert pair.journal.last_lsn >= max(pair.acked, promoted.lsn)
        self.disks += 1
        pair.next_copy(SimulatedDisk(self.disks))

    def check(self):
        pair = self.pair
        pair.sender.validate()
        pair.receiver.validate()
        if pair.receiver.state is ReceiverState.COMPLETE:
            assert last_lsn(pair.copy_disk) >= max(pair.acked, pair.receiver.lsn)
        elif pair.receiver.lsn == 0 and not is_marked(pair.copy_disk):
            # A process that has received nothing yet: what an earlier one left is a journal.
            last_lsn(pair.copy_disk)


@given(st.sampled_from((SMALL_BYTES, 1 << 20)), st.lists(st.sampled_from(ACTIONS), max_size=60))
def test_a_complete_copy_has_all_acknowledged_records(chunk_bytes, actions):
    world = World(chunk_bytes)
    for action in actions:
        world.act(action)
        world.check()

    # As the supervisor makes a binder do whose copy was replaced.
    world.pair.sender.pair_again()
    world.pair.exchange_all()

    assert world.pair.acked == world.pair.journal.last_lsn or not world.pair.flushed
    assert world.pair.receiver.state is ReceiverState.COMPLETE
    sizes = {name: len(data) for name, data in contents(world.pair.disk).items()}
    for name, data in contents(world.pair.copy_disk).items():
        # All but the mark of the last flush, which is sent with the next records.
        assert contents(world.pair.disk)[name].startswith(data)
        assert len(data) >= sizes[name] - 200
