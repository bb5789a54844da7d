"""RecordedDisk: what it records, in which order, and that the steps repeat its operations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.journal import JournalError
from roadstead.journal.headers import NEW_SEGMENT, segment_name
from roadstead.journal_copy import CopyBegin, CopyReceiver, CopyWrite, RecordedDisk, Step, StepKind
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal_copy.pair import contents

ONE, TWO = segment_name(1), segment_name(9)


class Steps(list):
    """The recorded steps."""

    record = list.append


class Recorded:
    """A recorded disk. sent: number of steps at each call of `send`."""

    def __init__(self, **disk):
        self.plain, self.steps, self.sent = SimulatedDisk(**disk), Steps(), []
        self.disk = RecordedDisk(self.plain, self.steps, lambda: self.sent.append(len(self.steps)))


def test_each_operation_on_files_is_one_step():
    world = Recorded(short_writes=0.0)
    disk = world.disk
    file = disk.create(NEW_SEGMENT)
    file.write(b"abc")
    file.sync()
    disk.rename(NEW_SEGMENT, ONE)
    disk.sync_names()
    file.close()
    disk.cut(ONE, 2)
    disk.remove(ONE)

    assert world.steps == [
        Step(StepKind.CREATE, NEW_SEGMENT),
        Step(StepKind.APPEND, NEW_SEGMENT, data=b"abc"),
        Step(StepKind.SYNC, NEW_SEGMENT),
        Step(StepKind.RENAME, NEW_SEGMENT, ONE),
        Step(StepKind.SYNC),
        Step(StepKind.CUT, ONE, offset=2),
        Step(StepKind.REMOVE, ONE),
    ]


def test_reads_locks_and_rewrites_are_no_steps():
    world = Recorded(short_writes=0.0)
    disk = world.disk
    disk.lock()
    file = disk.create(ONE)
    file.write(b"abc")
    file.sync()
    count = len(world.steps)

    disk.rewrite(ONE, 3)
    disk.unlock()

    assert (disk.names(), disk.read(ONE), disk.read_part(ONE, 1, 1)) == ([ONE], b"abc", b"b")
    assert (disk.size(ONE), file.size(), disk.path) == (3, 3, "simulated")
    assert len(world.steps) == count
    assert not world.plain.locked


def test_a_file_that_is_extended_is_recorded_from_its_end():
    world = Recorded(short_writes=0.0)
    first = world.disk.create(ONE)
    first.write(b"abc")
    first.close()

    second = world.disk.extend(ONE)
    second.write(b"de")
    second.write(b"f")

    assert world.steps[2:] == [
        Step(StepKind.APPEND, ONE, offset=3, data=b"de"),
        Step(StepKind.APPEND, ONE, offset=5, data=b"f"),
    ]


def test_of_a_short_write_only_the_written_bytes_are_recorded():
    world = Recorded(room_bytes=4, short_writes=0.0)
    file = world.disk.create(ONE)

    assert file.write(b"abcdef") == 4
    with pytest.raises(OSError, match="No space left"):
        file.write(b"ef")

    assert world.steps[1:] == [Step(StepKind.APPEND, ONE, data=b"abcd")]


def test_a_sync_is_sent_before_the_own_disk_does_it():
    """Both disks then work at the same time; if the own one fails, nothing is acknowledged."""
    world = Recorded()
    file = world.disk.create(ONE)
    world.plain.fails_to_sync = True

    with pytest.raises(OSError, match="Input/output error"):
        file.sync()

    assert world.steps[-1] == Step(StepKind.SYNC, ONE)
    assert world.sent == [2]


def test_an_operation_that_fails_is_not_recorded():
    world = Recorded()
    world.disk.create(ONE)
    count = len(world.steps)

    with pytest.raises(FileExistsError):
        world.disk.create(ONE)
    for act in (
        lambda disk: disk.cut(TWO, 1),
        lambda disk: disk.rename(TWO, NEW_SEGMENT),
        lambda disk: disk.remove(TWO),
    ):
        with pytest.raises(KeyError):
            act(world.disk)
    world.disk.lock()
    with pytest.raises(JournalError, match="in use"):
        world.disk.lock()

    assert len(world.steps) == count


def test_files_are_distinguished_though_a_closed_one_had_the_same_name():
    world = Recorded(short_writes=0.0)
    first = world.disk.create(NEW_SEGMENT)
    world.disk.rename(NEW_SEGMENT, ONE)
    second = world.disk.create(NEW_SEGMENT)
    second.write(b"two")
    first.write(b"one")
    second.close()
    first.write(b"!")

    assert [(each.name, each.data) for each in world.steps if each.data] == [
        (NEW_SEGMENT, b"two"),
        (ONE, b"one"),
        (ONE, b"!"),
    ]


OPERATIONS = ("create", "write", "write", "write", "sync", "rename", "cut", "remove", "extend")


@given(
    st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 9), st.binary(max_size=7))),
    st.integers(0, 9),
)
def test_the_steps_repeat_the_operations_on_another_disk(operations, seed):
    """Of files, at most one is open for writing, as in a journal."""
    world = Recorded(seed=seed, short_writes=0.4)
    disk, open_file, names = world.disk, None, (ONE, TWO, NEW_SEGMENT)
    for operation, number, data in operations:
        name = names[number % 3]
        exists = name in disk.names()
        if operation in ("create", "extend", "cut", "remove") and open_file is not None:
            open_file.close()
            open_file = None
        if operation == "create" and not exists:
            open_file = disk.create(name)
        elif operation == "extend" and exists:
            open_file = disk.extend(name)
        elif operation == "write" and open_file is not None and data:
            open_file.write(data)
        elif operation == "sync" and open_file is not None:
            open_file.sync()
        elif (
            operation == "rename"
            and exists
            and (to := names[(number + 1) % 3]) not in (*disk.names(),)
        ):
            disk.rename(name, to)
        elif operation == "cut" and exists:
            disk.cut(name, min(number, disk.size(name)))
        elif operation == "remove" and exists:
            disk.remove(name)

    other = SimulatedDisk(seed + 1)
    receiver = CopyReceiver(other, SimulatedDisk)
    receiver.begin(CopyBegin(1, 1))
    receiver.write(CopyWrite(1, 1, 1, 1, tuple(world.steps)))

    assert contents(other) == contents(world.plain)
