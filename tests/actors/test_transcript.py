"""Transcripts: the messages that an actor handled before an error that only a bug explains."""

import logging
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.actors.interface import (
    NOTHING,
    TRANSCRIPT,
    ActorError,
    FencedError,
    Stamp,
    decode_reply,
    encode_failure,
)
from roadstead.actors.logs import close_logs, open_log
from roadstead.actors.messages import (
    BOUND,
    QUEUE_STATE,
    STATUS,
    ActorStatus,
    BoundPage,
    PageRequest,
)
from roadstead.actors.messages.process import FENCE, Fences
from roadstead.actors.runtime import transcript
from roadstead.actors.runtime.dispatch import Dispatcher
from roadstead.actors.runtime.transcript import (
    EXCERPT_MAX_LINES,
    MAX_KEPT,
    MAX_KEPT_BYTES,
    MAX_NOTED,
    SUFFIX,
    read_transcript,
)
from roadstead.journal import JournalError
from roadstead.protocol.codec import Envelope
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.plain_data import CodecError, DecodeLimits, pack

LIMITS = DecodeLimits()
ILLEGAL = IllegalTransitionError("queue: u1: lease is not allowed in state done")


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Set the clock of transcripts: each reading is half a second later."""
    readings = iter(range(1_000_000))
    monkeypatch.setattr(transcript, "clock_s", lambda: next(readings) / 2)


@pytest.fixture
def log_dir(tmp_path):
    root = logging.getLogger("roadstead")
    before = (root.level, root.propagate)
    open_log(str(tmp_path), "driver")
    yield tmp_path
    close_logs()
    root.setLevel(before[0])
    root.propagate = before[1]


class Actor:
    """An actor that answers pages until a test makes it fail; its status names a failed task."""

    def __init__(self):
        self.fails = None
        self.failed = None

    async def bound(self, ask):
        if self.fails is not None:
            raise self.fails
        return BoundPage((), (), ask.count)

    async def queue_state(self, _):
        return NOTHING

    async def status(self, _):
        out = encode_failure(self.failed)
        return ActorStatus("did much", out.text, out.kind)


class World:
    """An actor behind its dispatcher."""

    def __init__(self):
        self.actor = Actor()
        self.dispatcher = Dispatcher("actor-1", self.actor, LIMITS)

    async def send(self, method, message, *, sender="", epoch=0):
        data = Stamp(sender, epoch).envelope(method.name, message)
        return decode_reply("actor-1", method, await self.dispatcher.receive(data), LIMITS)

    async def page(self, **sender):
        return await self.send(BOUND, PageRequest(0, 1), **sender)

    async def error(self, failure, **sender):
        """Return the error sent to the caller whose message makes the handler raise."""
        self.actor.fails = failure
        with pytest.raises(ActorError) as raised:
            await self.page(**sender)
        self.actor.fails = None
        return str(raised.value)

    async def status(self, failure):
        """Return the status' text about a failed task."""
        self.actor.failed = failure
        return (await self.send(STATUS, NOTHING)).error


@pytest.mark.parametrize("failure", [ILLEGAL, AssertionError("in two places"), KeyError("n1")])
async def test_an_error_from_a_bug_lists_the_messages_of_its_actor_oldest_first(failure):
    world = World()
    await world.page()
    for _ in range(3):
        await world.page(sender="scheduler-0", epoch=2)

    text, *lines = (await world.error(failure, sender="scheduler-1", epoch=1)).splitlines()

    size = len(Stamp("scheduler-0", 2).envelope(BOUND.name, PageRequest(0, 1)))
    assert str(failure) in text
    assert lines == [
        "The last messages of actor-1, 5 of 5, oldest first:",
        f"  bound from the driver, {size - len('scheduler-0')} bytes, 2.500 s before",
        f"  bound x 3 from scheduler-0 (epoch 2), {3 * size} bytes, 1.000 s before",
        f"  bound from scheduler-1 (epoch 1), {size} bytes, 0.500 s before",
    ]


async def test_an_operational_error_is_its_text_alone():
    world = World()
    await world.page()

    text = await world.error(JournalError("journal: no space left on device"))

    assert text == "actor-1: journal: no space left on device"


async def test_the_status_of_an_actor_whose_task_met_a_bug_lists_its_messages():
    world = World()
    await world.page(sender="scheduler-0", epoch=1)

    error = await world.status(ILLEGAL)

    assert error.startswith(f"{ILLEGAL}{TRANSCRIPT}actor-1, 1 of 1, oldest first:\n  bound from ")
    assert await world.status(JournalError("no space")) == "no space"


async def test_an_error_answered_by_another_actor_lists_only_that_actors_messages():
    other, world = World(), World()
    await world.page()
    await other.page()
    other.dispatcher = Dispatcher("actor-2", other.actor, LIMITS)
    theirs = await other.error(ILLEGAL)

    assert await world.status(ActorError(theirs)) == theirs
    assert await world.error(ActorError(theirs)) == f"actor-1: {theirs}"


async def test_an_error_before_any_message_lists_none():
    assert await World().status(ILLEGAL) == str(ILLEGAL)


async def test_frequent_status_questions_take_no_slot_of_a_message():
    world = World()
    await world.page()
    for _ in range(MAX_NOTED):
        await world.status(JournalError("no space"))
        await world.dispatcher.receive(Stamp().envelope(QUEUE_STATE.name, NOTHING))

    assert "1 of 1, oldest first" in await world.status(ILLEGAL)


async def test_an_error_lists_a_few_messages_however_many_there_were():
    world = World()
    for number in range(MAX_NOTED * 2):
        await world.page(sender=f"scheduler-{number}", epoch=1)

    lines = (await world.status(ILLEGAL)).splitlines()[1:]

    assert lines[0].endswith(f"{EXCERPT_MAX_LINES} of {MAX_NOTED * 2}, oldest first:")
    assert [line.split()[2] for line in lines[1:]] == [
        f"scheduler-{MAX_NOTED * 2 - left}" for left in range(EXCERPT_MAX_LINES, 0, -1)
    ]


async def test_names_of_a_broken_sender_are_cut_and_escaped():
    world = World()
    await world.dispatcher.receive(Stamp("a\nb" * 1000, 1).envelope("x\x1b[2J" * 1000, NOTHING))

    _, _, line = (await world.status(ILLEGAL)).splitlines()

    assert line.isprintable()
    assert len(line) < 300, "the name is cut"


async def test_a_fenced_message_is_not_listed_as_handled():
    world = World()
    await world.send(FENCE, Fences((("scheduler-0", 2),)))
    with pytest.raises(FencedError, match="epoch 1 is over"):
        await world.page(sender="scheduler-0", epoch=1)

    _, _, only = (await world.status(ILLEGAL)).splitlines()

    assert "fence" in only


async def test_the_messages_are_written_beside_the_logs_readable_for_the_owner_only(log_dir):
    world = World()
    asked = [Stamp("scheduler-0", epoch) for epoch in (1, 2)]
    for stamp in asked:
        await world.page(sender=stamp.sender, epoch=stamp.epoch)

    error = await world.status(ILLEGAL)

    path = log_dir / f"actor-1{SUFFIX}"
    assert error.splitlines()[-1] == f"  All that is kept of them: {path}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    saved = read_transcript(path)
    assert (saved.actor, saved.error, saved.handled) == ("actor-1", str(ILLEGAL), 2)
    assert saved.is_complete
    sent = [stamp.envelope(BOUND.name, PageRequest(0, 1)) for stamp in asked]
    assert [message.data for message in saved.messages] == sent
    assert [message.at_s for message in saved.messages] == [0.0, 0.5]


async def test_the_log_names_the_line_where_a_handler_met_a_bug(log_dir):
    await World().error(KeyError("n1"))

    assert "in bound" in (log_dir / "driver.jsonl").read_text()


async def test_only_the_first_error_of_an_actor_is_kept_and_later_ones_name_its_file(log_dir):
    world = World()
    await world.error(ILLEGAL)
    last = (await world.error(KeyError("n1"))).splitlines()[-1]

    saved = read_transcript(log_dir / f"actor-1{SUFFIX}")

    assert (saved.error, saved.handled) == (str(ILLEGAL), 1)
    assert last == f"  All that is kept of them: {log_dir / f'actor-1{SUFFIX}'}"


async def test_a_file_or_link_of_an_earlier_run_is_replaced_and_not_followed(log_dir):
    elsewhere, path = log_dir / "elsewhere", log_dir / f"actor-1{SUFFIX}"
    elsewhere.write_text("precious")
    path.symlink_to(elsewhere)

    await World().error(ILLEGAL)

    assert elsewhere.read_text() == "precious"
    assert not path.is_symlink()
    assert read_transcript(path).actor == "actor-1"


async def test_a_file_that_can_not_be_written_does_not_change_the_error(log_dir):
    (log_dir / f"actor-1{SUFFIX}").mkdir()

    lines = (await World().error(ILLEGAL)).splitlines()

    assert len(lines) == 3
    assert "the transcript cannot be written" in (log_dir / "driver.jsonl").read_text()


async def test_without_logs_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert "All that is kept" not in await World().error(ILLEGAL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [MAX_KEPT_BYTES // 3, MAX_KEPT_BYTES * 2])
async def test_the_kept_bytes_are_bounded_and_have_no_gaps(log_dir, size):
    world = World()
    for number in range(5):
        await world.dispatcher.receive(Envelope("x", 0, number, "", b"x" * size).encode())
    await world.error(ILLEGAL)

    saved = read_transcript(log_dir / f"actor-1{SUFFIX}")

    kept = [message.data for message in saved.messages]
    epochs = [Envelope.decode(data).epoch for data in kept[:-1]]
    assert sum(map(len, kept)) <= MAX_KEPT_BYTES
    assert epochs == ([3, 4] if size < MAX_KEPT_BYTES else [])
    assert (saved.handled, saved.is_complete) == (6, False)


async def test_the_number_of_kept_small_messages_is_bounded(log_dir):
    world = World()
    for _ in range(MAX_KEPT + 10):
        await world.page()
    await world.error(ILLEGAL)

    assert len(read_transcript(log_dir / f"actor-1{SUFFIX}").messages) == MAX_KEPT


@given(data=st.one_of(st.binary(max_size=100), st.binary(max_size=100).map(b"RSTRANS1".__add__)))
def test_a_file_that_is_not_a_transcript_is_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("files") / "any"
    path.write_bytes(data)

    with pytest.raises(CodecError):
        read_transcript(path)


def test_a_too_long_file_is_refused_before_it_is_read_completely(tmp_path):
    path = tmp_path / "long"
    path.write_bytes(b"RSTRANS1" + pack(["actor-1", "", 1, [[0.0, b"x" * MAX_KEPT_BYTES * 4]]]))

    with pytest.raises(CodecError, match="are more than"):
        read_transcript(path)
