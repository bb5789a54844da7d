"""The binder's side alone: its states, what must be confirmed, and how files are caught up."""

import copy as copying

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.journal.headers import NEW_SEGMENT, segment_name
from roadstead.journal_copy import (
    CopyBegin,
    CopyFencedError,
    CopyFile,
    CopySender,
    CopyState,
    CopyWrite,
    Step,
    StepKind,
)
from roadstead.journal_copy.folder import copied_files, digest_of
from roadstead.journal_copy.receiver import ReceiverState
from roadstead.journal_copy.sender import TABLE, SenderState
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal_copy.pair import Pair, contents, last_lsn

UNPAIRED, CATCHING_UP, COPYING, FENCED = SenderState
ONE, TWO, THREE = segment_name(1), segment_name(2), segment_name(3)


def append(data, name=ONE, offset=0):
    return Step(StepKind.APPEND, name, offset=offset, data=data)


def disk_of(**files):
    """Return a disk with segments: one=b"…", two=b"…"."""
    disk = SimulatedDisk(short_writes=0.0)
    for name, data in files.items():
        disk.create({"one": ONE, "two": TWO, "three": THREE}[name]).write(data)
    return disk


def sender_of(disk=None, **sizes):
    return CopySender(disk or disk_of(), 1, lambda: 40, **sizes)


def pair(sender, files=(), copy=1):
    """Let a copy with these files answer the message that asks it to pair."""
    begin = sender.next_message()
    assert isinstance(begin, CopyBegin)
    sender.answered(CopyState(*begin.pairing, copy, 0, tuple(files)))


def confirm(sender):
    """Let the copy answer the next message; return it, None if none is due."""
    message = sender.next_message()
    if message is not None:
        sender.answered(CopyState(*message.pairing, message.copy, message.number))
        sender.validate()
    return message


def confirm_all(sender):
    return list(iter(lambda: confirm(sender), None))


def sender_in(state):
    """Return a sender with an unanswered message, except if it is fenced."""
    sender = sender_of(disk_of(one=b"abcdef"), chunk_bytes=2)
    if state is not UNPAIRED:
        pair(sender)
    if state is CATCHING_UP:
        confirm(sender)
    elif state is COPYING:
        confirm_all(sender)
        sender.record(append(b"g", offset=6))
        sender.record(Step(StepKind.SYNC, ONE))
    elif state is FENCED:
        sender.fence()
    if state is not FENCED:
        sender.next_message()
    assert sender.state is state
    return sender


def to_the_message(sender):
    message = sender.next_message()
    number = getattr(message, "number", 0)
    sender.answered(CopyState(*message.pairing, 1, number))


def to_an_earlier_message(sender):
    message = sender.next_message()
    sender.answered(CopyState(*message.pairing, 1, message.number - 1))


def to_a_later_message(sender):
    message = sender.next_message()
    sender.answered(CopyState(*message.pairing, 1, message.number + 1))


def of_another_process(sender):
    message = sender.next_message()
    sender.answered(CopyState(*message.pairing, 2, message.number))


def of_an_earlier_pairing(sender):
    sender.answered(CopyState(1, 0, 1, 1))


def of_no_pairing(sender):
    sender.answered(CopyState())


def of_a_later_binder(sender):
    sender.answered(CopyState(2, 1, 1, 1))


EVENTS = {
    UNPAIRED: {
        to_the_message: CATCHING_UP,
        of_an_earlier_pairing: UNPAIRED,
        of_no_pairing: UNPAIRED,
        of_a_later_binder: FENCED,
        CopySender.pair_again: UNPAIRED,
        CopySender.fence: FENCED,
    },
    CATCHING_UP: {
        to_the_message: CATCHING_UP,
        confirm_all: COPYING,
        to_an_earlier_message: UNPAIRED,
        to_a_later_message: CATCHING_UP,
        of_another_process: UNPAIRED,
        of_an_earlier_pairing: UNPAIRED,
        of_no_pairing: UNPAIRED,
        of_a_later_binder: FENCED,
        CopySender.pair_again: UNPAIRED,
        CopySender.fence: FENCED,
    },
    COPYING: {
        to_the_message: COPYING,
        to_an_earlier_message: UNPAIRED,
        to_a_later_message: COPYING,
        of_another_process: UNPAIRED,
        of_an_earlier_pairing: UNPAIRED,
        of_no_pairing: UNPAIRED,
        of_a_later_binder: FENCED,
        CopySender.pair_again: UNPAIRED,
        CopySender.fence: FENCED,
    },
    FENCED: {
        of_an_earlier_pairing: FENCED,
        of_no_pairing: FENCED,
        of_a_later_binder: FENCED,
        CopySender.pair_again: FENCED,
        CopySender.fence: FENCED,
    },
}
"""By state and event, mostly an answer of the copy: the state after it."""


@pytest.mark.parametrize(
    ("state", "event", "target"),
    [(state, event, target) for state, row in EVENTS.items() for event, target in row.items()],
)
def test_each_answer_has_its_effect_in_each_state(state, event, target):
    sender = sender_in(state)
    confirmed = sender.confirmed

    event(sender)

    assert sender.state is target
    sender.validate()
    if event not in (to_the_message, confirm_all):
        assert sender.confirmed == confirmed, "an answer to another message confirms a step"
    if target is UNPAIRED:
        attempt = 1 if state is UNPAIRED and event is to_the_message else 2
        assert sender.next_message() == CopyBegin(1, attempt)
    elif target is FENCED:
        with pytest.raises(CopyFencedError, match="another binder has taken over"):
            sender.next_message()


def test_the_events_use_every_transition_of_the_table():
    reached = {(state, target) for state, row in EVENTS.items() for target in row.values()}

    for state, event, target in TABLE:
        assert (state, target) in reached, f"no event above is a {event.value} in {state.value}"


@pytest.mark.parametrize("state", [UNPAIRED, CATCHING_UP, COPYING])
def test_an_answer_counts_once(state):
    sender = sender_in(state)
    message = sender.next_message()
    answer = CopyState(*message.pairing, 1, getattr(message, "number", 0))
    sender.answered(answer)
    after = sender.state, sender.confirmed

    sender.answered(answer)

    assert (sender.state, sender.confirmed) == after


def test_an_answer_before_any_message_is_ignored():
    sender = sender_of()

    sender.answered(CopyState(9, 9, 9, 9))

    assert sender.state is UNPAIRED


@pytest.mark.parametrize("kind", [kind for kind in StepKind if kind is not StepKind.ASIDE])
def test_what_is_not_undone_must_be_durable_before_a_reply(kind):
    sender = sender_of(disk_of(one=b"abc"))
    pair(sender)
    confirm_all(sender)

    sender.record(Step(kind, ONE, TWO if kind is StepKind.RENAME else "", 3, b""))

    waits = kind in (StepKind.SYNC, StepKind.CUT, StepKind.RENAME, StepKind.REMOVE)
    assert sender.is_confirmed is not waits
    assert (sender.next_message() is not None) is waits
    confirm_all(sender)
    assert sender.is_confirmed


def test_steps_of_which_no_reply_depends_are_sent_with_the_next_that_one_does():
    sender = sender_of(disk_of(one=b"abc"))
    pair(sender)
    confirm_all(sender)
    first, second = append(b"d", offset=3), append(b"e", offset=4)
    sender.record(first)
    assert confirm(sender) is None
    sender.record(second)
    sender.record(Step(StepKind.SYNC, ONE))

    assert confirm(sender).steps == (first, second, Step(StepKind.SYNC, ONE))
    assert sender.confirmed == sender.position == 3


def test_steps_recorded_without_a_copy_are_confirmed_by_the_files():
    sender = sender_of(disk_of(one=b"abc"))
    for step in (Step(StepKind.CREATE, ONE), append(b"abc"), Step(StepKind.SYNC, ONE)):
        sender.record(step)
    assert not sender.is_confirmed

    pair(sender)
    (write,) = confirm_all(sender)

    assert write.steps == (Step(StepKind.CREATE, ONE), append(b"abc"))
    assert (write.is_complete, write.lsn) == (True, 40)
    assert sender.confirmed == 3


@pytest.mark.parametrize(
    ("copied", "steps"),
    [
        ({}, [Step(StepKind.CREATE, ONE), append(b"abcd"), Step(StepKind.CREATE, TWO)]),
        ({"one": b"ab"}, [append(b"cd", offset=2), Step(StepKind.CREATE, TWO)]),
        ({"one": b""}, [append(b"abcd"), Step(StepKind.CREATE, TWO)]),
        ({"one": b"abcd"}, [Step(StepKind.CREATE, TWO)]),
        ({"one": b"abcd", "two": b""}, []),
        ({"two": b""}, [Step(StepKind.CREATE, ONE), append(b"abcd")]),
    ],
)
def test_a_copy_of_the_beginning_gets_the_rest(copied, steps):
    sender = sender_of(disk_of(one=b"abcd", two=b""))

    pair(sender, copied_files(disk_of(**copied)))

    (write,) = confirm_all(sender)
    assert list(write.steps) == steps
    assert write.is_complete


@pytest.mark.parametrize(
    "copied",
    [
        pytest.param({"one": b"abX"}, id="other bytes"),
        pytest.param({"one": b"abcde"}, id="more bytes"),
        pytest.param({"one": b"abcd", "two": b"x"}, id="one of two files is longer"),
        pytest.param({"one": b"abcd", "three": b""}, id="a file that the journal lacks"),
    ],
)
def test_a_copy_of_anything_else_is_set_aside_and_sent_as_a_whole(copied):
    sender = sender_of(disk_of(one=b"abcd", two=b""))

    pair(sender, copied_files(disk_of(**copied)))

    (write,) = confirm_all(sender)
    aside, *rest = write.steps
    assert aside == Step(StepKind.ASIDE)
    assert rest == [Step(StepKind.CREATE, ONE), append(b"abcd"), Step(StepKind.CREATE, TWO)]


def test_a_copy_is_complete_only_with_the_last_part_of_the_last_file():
    sender = sender_of(disk_of(one=b"abcdef", two=b"gh"), chunk_bytes=3)
    pair(sender)

    messages = confirm_all(sender)

    assert [each.is_complete for each in messages] == [False] * (len(messages) - 1) + [True]
    assert [each.lsn for each in messages[:-1]] == [0] * (len(messages) - 1)
    sent = [step for each in messages for step in each.steps if step.kind is StepKind.APPEND]
    assert b"".join(step.data for step in sent if step.name == ONE) == b"abcdef"
    assert [step.offset for step in sent if step.name == ONE] == [0, 3]
    assert max(sum(len(step.data) for step in each.steps) for each in messages) == 3


def test_a_large_step_is_sent_in_parts_at_consecutive_offsets():
    sender = sender_of(chunk_bytes=4)
    pair(sender)
    confirm_all(sender)
    sender.record(append(b"0123456789", offset=7))
    sender.record(Step(StepKind.SYNC, ONE))

    messages = confirm_all(sender)

    parts = [step for each in messages for step in each.steps if step.data]
    offsets = [(step.offset, step.data) for step in parts]
    assert offsets == [(7, b"0123"), (11, b"4567"), (15, b"89")]
    assert [each.number for each in messages] == [2, 3, 4]
    assert sender.is_confirmed


def test_parts_of_a_step_confirm_nothing_before_its_last_one():
    sender = sender_of(chunk_bytes=4)
    pair(sender)
    confirm_all(sender)
    sender.record(append(b"0123456789"))
    sender.record(Step(StepKind.SYNC, ONE))

    confirmed = [sender.confirmed for _ in iter(lambda: confirm(sender), None)]

    assert confirmed == [0, 0, 2]


@pytest.mark.parametrize(("size_bytes", "state"), [(10, COPYING), (11, UNPAIRED)])
def test_as_many_bytes_wait_as_are_allowed(size_bytes, state):
    sender = sender_of(max_waiting_bytes=10)
    pair(sender)
    confirm_all(sender)

    sender.record(append(b"x" * 6))
    sender.record(append(b"x" * (size_bytes - 6), offset=6))

    assert sender.state is state
    sender.validate()


@pytest.mark.parametrize(
    ("step", "state"),
    [
        (Step(StepKind.REMOVE, TWO), UNPAIRED),
        (Step(StepKind.CUT, TWO, offset=1), UNPAIRED),
        (Step(StepKind.RENAME, NEW_SEGMENT, TWO), UNPAIRED),
        (Step(StepKind.RENAME, TWO, THREE), UNPAIRED),
        (Step(StepKind.REMOVE, ONE), CATCHING_UP),
        (Step(StepKind.RENAME, NEW_SEGMENT, ONE), CATCHING_UP),
        (append(b"i", TWO, 2), CATCHING_UP),
        (Step(StepKind.SYNC, TWO), CATCHING_UP),
    ],
)
def test_only_a_change_of_a_file_that_is_not_sent_yet_starts_the_pairing_again(step, state):
    sender = sender_of(disk_of(one=b"abcd", two=b"gh"), chunk_bytes=4)
    pair(sender)
    first = confirm(sender)
    assert {each.name for each in first.steps} == {ONE}, "the second file is not sent yet"

    sender.record(step)

    assert sender.state is state
    sender.validate()


def test_steps_recorded_while_files_are_sent_follow_them():
    sender = sender_of(disk_of(one=b"abcd"), chunk_bytes=2)
    pair(sender)
    confirm(sender)
    sender.record(append(b"e", offset=4))
    sender.record(Step(StepKind.SYNC, ONE))

    messages = confirm_all(sender)

    steps = [step for each in messages for step in each.steps]
    assert steps == [append(b"cd", offset=2), append(b"e", offset=4), Step(StepKind.SYNC, ONE)]
    assert sender.is_confirmed


def test_a_fenced_sender_counts_steps_and_sends_none():
    sender = sender_in(FENCED)

    sender.record(append(b"x"))
    sender.record(Step(StepKind.SYNC, ONE))

    assert not sender.is_confirmed, "no reply may leave this binder"
    with pytest.raises(CopyFencedError):
        sender.next_message()


def test_a_digest_depends_on_each_byte_although_checksums_would_not():
    disk = disk_of(one=b"abcd")
    assert digest_of(disk, ONE, 2) == digest_of(disk_of(one=b"ab"), ONE, 2)
    assert digest_of(disk, ONE, 4) != digest_of(disk_of(one=b"abce"), ONE, 4)
    assert digest_of(disk, ONE, 0) == digest_of(disk_of(two=b""), TWO, 0)
    assert [*copied_files(disk)] == [CopyFile(ONE, 4, digest_of(disk, ONE, 4))]


class Network:
    """A network that delivers any message and answer late, in any order, and several times."""

    def __init__(self):
        self.pair = Pair(chunk_bytes=300, segment_bytes=1_500)
        self.messages, self.answers = [], []

    def act(self, action, number):
        pair = self.pair
        if action == "write":
            pair.write(1 + number % 4)
        elif action == "send":
            if (message := pair.sender.next_message()) is not None:
                self.messages.append(message)
        elif action == "deliver" and self.messages:
            # Mostly the newest ones, or hardly anything is confirmed.
            message = self.messages[-1 - number % min(3, len(self.messages))]
            self.answers.append(pair.receive(message))
        elif action == "answer" and self.answers:
            pair.sender.answered(self.answers[-1 - number % min(3, len(self.answers))])
            pair.acknowledge()
        elif action == "copy restarts":
            pair.next_copy()
        elif action == "copy's machine stops":
            pair.copy_disk.crash()
            pair.next_copy()

    def check(self):
        pair = self.pair
        pair.sender.validate()
        pair.receiver.validate()
        if pair.receiver.state is ReceiverState.COMPLETE:
            kept = copying.deepcopy(pair.copy_disk)
            kept.crash()
            assert last_lsn(kept) >= pair.acked, "an acknowledged record is not on the copy's disk"


ACTIONS = ("write", "send", "deliver", "answer", "send", "deliver", "answer")
RARE = ("copy restarts", "copy's machine stops")


@given(
    st.lists(
        st.tuples(st.sampled_from(ACTIONS * 3 + RARE), st.integers(0, 11)), min_size=10, max_size=80
    )
)
def test_late_and_repeated_messages_and_answers_confirm_only_what_the_copy_has(actions):
    network = Network()
    for action, number in actions:
        network.act(action, number)
        network.check()

    # As the supervisor does after a new process of the copy; then every message arrives.
    network.pair.sender.pair_again()
    network.pair.exchange_all()

    assert network.pair.sender.is_confirmed
    assert network.pair.receiver.state is ReceiverState.COMPLETE
    for name, data in contents(network.pair.copy_disk).items():
        assert contents(network.pair.disk)[name].startswith(data)


def test_writes_are_of_one_pairing_and_numbered_without_gaps():
    pair, sent = Pair(), []
    for number in range(40):
        pair.write(2)
        if number % 13 == 5:
            pair.next_copy()
        while (message := pair.exchange()) is not None:
            sent.append(message)

    by_pairing = {}
    for message in sent:
        if isinstance(message, CopyWrite):
            by_pairing.setdefault((message.pairing, message.copy), []).append(message.number)
    assert len(by_pairing) == 4, "the first process of the copy, and three new ones"
    for numbers in by_pairing.values():
        assert numbers == list(range(1, len(numbers) + 1))
