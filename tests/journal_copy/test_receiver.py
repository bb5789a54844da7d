"""The copy's side alone: its states, its steps on files, and messages that change nothing."""

import copy as copying
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.journal import JournalError
from roadstead.journal.headers import NEW_SEGMENT, OUTCOME, segment_name
from roadstead.journal_copy import (
    CopyBegin,
    CopyFencedError,
    CopyReceiver,
    CopyWrite,
    Step,
    StepKind,
)
from roadstead.journal_copy.receiver import TABLE, ReceiverState
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal_copy.pair import contents, is_marked

INCOMPLETE, COMPLETE, PROMOTED, FAILED = ReceiverState
ONE, TWO = segment_name(1), segment_name(9)
NAMES = (ONE, TWO, NEW_SEGMENT, OUTCOME)
ASIDE = Step(StepKind.ASIDE)


def create(name=ONE):
    return Step(StepKind.CREATE, name)


def append(data, name=ONE, offset=0):
    return Step(StepKind.APPEND, name, offset=offset, data=data)


class Copy:
    """A receiver, paired with the binder of epoch 1. asides: disks that it has set aside."""

    def __init__(self):
        self.disk, self.asides, self.copies, self.attempt = SimulatedDisk(), [], 0, 0
        self.start()

    def start(self):
        """Start a process on the disk, and pair with it."""
        self.copies += 1
        self.attempt += 1
        self.receiver = CopyReceiver(self.disk, self._set_aside, self.copies)
        self.number = 0
        return self.receiver.begin(CopyBegin(1, self.attempt))

    def _set_aside(self):
        self.asides.append(self.disk)
        self.disk = SimulatedDisk(len(self.asides))
        self.disk.lock()
        return self.disk

    def message(self, *steps, lsn=0, is_complete=True):
        """Return the next message."""
        self.number += 1
        return CopyWrite(1, self.attempt, self.copies, self.number, steps, lsn, is_complete)

    def write(self, *steps, **how):
        return self.receiver.write(self.message(*steps, **how))

    def crash(self):
        """Stop the machine, and start a process on what its disk has kept."""
        self.disk.crash()
        return self.start()


def copy_in(state):
    copy = Copy()
    copy.write(create(), append(b"abc"), is_complete=state is not INCOMPLETE)
    if state is PROMOTED:
        copy.receiver.promote(2)
    elif state is FAILED:
        with pytest.raises(JournalError):
            copy.write(append(b"d", offset=99))
    assert copy.receiver.state is state
    return copy


def begin_again(copy):
    copy.receiver.begin(CopyBegin(1, copy.attempt + 1))


def begin_later(copy):
    copy.receiver.begin(CopyBegin(3, 1))


def begin_earlier(copy):
    copy.receiver.begin(CopyBegin(0, 9))


def write_part(copy):
    copy.write(append(b"d", offset=3), is_complete=False)


def write_all(copy):
    copy.write(append(b"d", offset=3))


def write_wrong(copy):
    copy.write(append(b"d", offset=99))


def promote(copy):
    if why := copy.receiver.promote(2).why:
        raise JournalError(why)


DEAD = dict.fromkeys((begin_again, begin_later, begin_earlier, promote), JournalError)
EFFECTS = {
    INCOMPLETE: {
        begin_again: INCOMPLETE,
        begin_later: INCOMPLETE,
        begin_earlier: CopyFencedError,
        write_part: INCOMPLETE,
        write_all: COMPLETE,
        write_wrong: FAILED,
        promote: JournalError,
    },
    COMPLETE: {
        begin_again: COMPLETE,
        begin_later: COMPLETE,
        begin_earlier: CopyFencedError,
        write_part: INCOMPLETE,
        write_all: COMPLETE,
        write_wrong: FAILED,
        promote: PROMOTED,
    },
    PROMOTED: {
        begin_again: CopyFencedError,
        begin_later: CopyFencedError,
        begin_earlier: CopyFencedError,
        write_part: CopyFencedError,
        write_all: CopyFencedError,
        write_wrong: CopyFencedError,
        promote: PROMOTED,
    },
    FAILED: DEAD | dict.fromkeys((write_part, write_all, write_wrong), JournalError),
}
"""By state and call: the state after the call, or the error that leaves state and files alone."""


@pytest.mark.parametrize(
    ("state", "call", "effect"),
    [(state, call, effect) for state, row in EFFECTS.items() for call, effect in row.items()],
)
def test_each_call_has_its_effect_in_each_state(state, call, effect):
    copy = copy_in(state)
    before = contents(copy.disk)

    if effect is FAILED:
        with pytest.raises(JournalError, match="has 3 bytes, and the journal goes on at 99"):
            call(copy)
        assert copy.receiver.state is FAILED
    elif isinstance(effect, ReceiverState):
        call(copy)
        assert copy.receiver.state is effect
    else:
        with pytest.raises(effect):
            call(copy)
        assert (copy.receiver.state, contents(copy.disk)) == (state, before)
    copy.receiver.validate()


def test_the_effects_use_every_transition_of_the_table():
    reached = {(state, effect) for state, row in EFFECTS.items() for effect in row.values()}

    for state, event, target in TABLE:
        assert (state, target) in reached, f"no call above is a {event.value} in {state.value}"


@pytest.mark.parametrize(
    "other",
    [
        {"attempt": 2},
        {"attempt": 0},
        {"copy": 2},
        {"number": 0},
        {"number": 1},
        {"number": 3},
    ],
)
def test_a_message_out_of_turn_changes_nothing(other):
    copy = copy_in(COMPLETE)
    header = {"epoch": 1, "attempt": 1, "copy": 1, "number": 2} | other

    answer = copy.receiver.write(CopyWrite(**header, steps=(append(b"d", offset=3),), lsn=9))

    assert (answer.pairing, answer.copy, answer.number) == ((1, 1), 1, 1)
    assert contents(copy.disk) == {ONE: b"abc"}
    assert copy.receiver.lsn == 0


def test_a_begin_reports_the_files_until_the_first_message_of_its_pairing():
    copy = copy_in(COMPLETE)
    again = CopyBegin(1, 2)
    first = copy.receiver.begin(again)

    assert [(each.name, each.size_bytes) for each in first.files] == [(ONE, 3)]
    assert copy.receiver.begin(again) == first
    copy.attempt, copy.number = 2, 0
    copy.write(append(b"d", offset=3))
    assert copy.receiver.begin(again).files == (), "the sender knows the files from here on"


def test_a_later_pairing_starts_the_numbers_again():
    copy = copy_in(COMPLETE)
    copy.receiver.begin(CopyBegin(2, 1))

    answer = copy.receiver.write(CopyWrite(2, 1, 1, 1, (append(b"d", offset=3),)))

    assert (answer.pairing, answer.number) == ((2, 1), 1)
    assert contents(copy.disk) == {ONE: b"abcd"}
    with pytest.raises(CopyFencedError, match="belongs to the binder of epoch 2"):
        write_all(copy)


def test_the_last_record_is_that_of_complete_messages_and_never_decreases():
    copy = Copy()
    numbers = []
    for lsn, is_complete in ((5, False), (7, True), (3, True), (9, False), (8, True)):
        copy.write(lsn=lsn, is_complete=is_complete)
        numbers.append(copy.receiver.lsn)

    assert numbers == [0, 7, 7, 7, 8]


def test_a_promotion_reports_the_last_record_and_refuses_binders_up_to_its_own():
    copy = Copy()
    copy.write(create(), lsn=4)

    assert copy.receiver.promote(0).why == "it is of the binder of epoch 1"
    assert copy.receiver.promote(5).lsn == 4
    assert not copy.disk.locked, "the new binder locks the folder"
    for epoch in (1, 5, 6):
        with pytest.raises(CopyFencedError, match="epoch 5"):
            copy.receiver.begin(CopyBegin(epoch, 1))
    assert copy.receiver.promote(7).why == "", "the binder of epoch 5 ended before it began"
    with pytest.raises(CopyFencedError, match="epoch 7"):
        copy.receiver.begin(CopyBegin(7, 1))


def test_a_refused_message_carries_out_no_step():
    copy = copy_in(COMPLETE)

    with pytest.raises(JournalError, match="no files of a journal"):
        copy.write(append(b"d", offset=3), create("notes.txt"))

    assert contents(copy.disk) == {ONE: b"abc"}
    assert copy.receiver.state is COMPLETE


@pytest.mark.parametrize("at", range(1, 12))
def test_a_message_that_fails_on_its_way_leaves_no_unmarked_part_of_it(at):
    copy = Copy()
    disk = copy.disk
    disk.short_writes, disk.steps = 0.0, 0
    disk.fault = SimpleNamespace(at=at, kind="stops")
    steps = create(), append(b"abc"), create(TWO), append(b"def", TWO), Step(StepKind.REMOVE, ONE)

    with pytest.raises(JournalError, match="cannot be written: Input/output error"):
        copy.write(*steps)

    copy.receiver.validate()
    assert "Input/output error" in copy.receiver.promote(2).why
    assert is_marked(disk) or not contents(disk), "its folder would be read as a journal"
    disk.fault = None
    copy.crash()
    assert copy.receiver.state is INCOMPLETE, "the next process starts with the sender's files"


def test_a_folder_that_cannot_be_read_fails_the_copy():
    copy = copy_in(COMPLETE)

    def unreadable(name):
        raise OSError(5, "Input/output error")

    copy.disk.size = unreadable
    with pytest.raises(JournalError, match="Input/output error"):
        begin_again(copy)

    assert copy.receiver.state is FAILED


def test_an_empty_folder_is_not_set_aside():
    copy = Copy()

    copy.write(ASIDE, create(), append(b"x"))

    assert copy.asides == []
    assert contents(copy.disk) == {ONE: b"x"}


def test_files_set_aside_keep_what_earlier_messages_wrote():
    copy = copy_in(COMPLETE)

    copy.write(ASIDE, create(TWO), append(b"x", TWO), is_complete=False)

    (aside,) = copy.asides
    assert contents(aside) == {ONE: b"abc"}
    assert not is_marked(aside)
    assert not aside.locked
    assert contents(copy.disk) == {TWO: b"x"}
    assert is_marked(copy.disk)


def test_an_open_file_that_is_renamed_is_written_and_synced_under_its_new_name():
    copy = Copy()
    copy.write(create(NEW_SEGMENT), append(b"ab", NEW_SEGMENT), is_complete=False)

    copy.write(
        append(b"c", NEW_SEGMENT, 2),
        Step(StepKind.RENAME, NEW_SEGMENT, ONE),
        append(b"d", ONE, 3),
    )
    copy.crash()

    assert contents(copy.disk) == {ONE: b"abcd"}


def test_a_closed_copy_releases_its_folder():
    copy = copy_in(COMPLETE)

    copy.receiver.close()

    assert not copy.disk.locked
    assert copy.disk.opened == []


@st.composite
def steps_and_files(draw):
    """Draw valid steps, each with the files of a folder after it: (step, name → bytes)."""
    files, drawn = {}, []
    for _ in range(draw(st.integers(1, 25))):
        kind = draw(st.sampled_from([each for each in StepKind if each is not StepKind.ASIDE]))
        name = draw(st.sampled_from(NAMES))
        step = Step(kind, name)
        if kind in (StepKind.APPEND, StepKind.CUT, StepKind.RENAME) and name not in files:
            step = Step(StepKind.CREATE, name)
        if step.kind is StepKind.CREATE:
            files[name] = b""
        elif kind is StepKind.APPEND:
            data = draw(st.binary(min_size=1, max_size=9))
            step = append(data, name, len(files[name]))
            files[name] += data
        elif kind is StepKind.CUT:
            step = Step(kind, name, offset=draw(st.integers(0, len(files[name]))))
            files[name] = files[name][: step.offset]
        elif kind is StepKind.RENAME:
            to = draw(st.sampled_from([each for each in NAMES if each != name]))
            step = Step(kind, name, to)
            files[to] = files.pop(name)
        elif kind is StepKind.REMOVE:
            files.pop(name, None)
        elif draw(st.booleans()):
            step = Step(StepKind.SYNC)
        drawn.append((step, dict(files)))
    return drawn


@given(steps_and_files(), st.lists(st.integers(1, 6)), st.lists(st.booleans()))
def test_steps_are_durable_with_their_answer_in_messages_of_any_size(drawn, sizes, crashes):
    copy, at = Copy(), 0
    sizes, crashes = iter(sizes), iter(crashes)
    while at < len(drawn):
        part = drawn[at : at + next(sizes, 3)]
        at += len(part)
        message = copy.message(*(step for step, _ in part), is_complete=at == len(drawn))
        answer = copy.receiver.write(message)
        assert copy.receiver.write(message) == answer, "a repeated message has the same answer"
        copy.receiver.validate()

        assert contents(copy.disk) == part[-1][1]
        kept = copying.deepcopy(copy.disk)
        kept.crash()
        assert contents(kept) == part[-1][1], "an answered step is lost with the machine"
        if next(crashes, False):
            found = copy.crash().files
            assert {each.name: each.size_bytes for each in found} == {
                name: len(data) for name, data in part[-1][1].items()
            }
    assert not is_marked(copy.disk) or copy.receiver.state is INCOMPLETE
