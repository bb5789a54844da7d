"""The script that shows what an actor handled before a bug, and sends it to a new actor."""

import logging

import pytest

from roadstead.actors.interface import ERROR, Failure, Stamp
from roadstead.actors.logs import close_logs, open_log
from roadstead.actors.messages import LEASE, REPORT, SUBMIT, LeaseReport, LeaseRequest
from roadstead.actors.queue.actor import QueueActor
from roadstead.actors.runtime.dispatch import Dispatcher
from roadstead.actors.runtime.transcript import read_transcript
from roadstead.actors.runtime.virtual_time import run_virtual
from roadstead.protocol.codec import Envelope, from_wire
from roadstead.protocol.plain_data import DecodeLimits
from tests.actors.world import NOBODY, batch_of, plan_of


@pytest.fixture
def script(scripts):
    return scripts("transcript")


def queue():
    return Dispatcher("queue", QueueActor(plan_of(), NOBODY), DecodeLimits())


def messages():
    """Return messages in which two pods are submitted, one leased, and the other one reported."""
    scheduler = Stamp("scheduler-0", 1)
    return [
        Stamp().envelope(SUBMIT.name, batch_of("a", "b")),
        scheduler.envelope(LEASE.name, LeaseRequest("scheduler-0", 1, 1, 0.0)),
        scheduler.envelope(REPORT.name, LeaseReport(1, ("uid-b",), (), ())),
    ]


def error_in(reply):
    envelope = Envelope.decode(reply)
    assert envelope.kind == ERROR
    return from_wire(Failure, envelope.body).text.splitlines()[0]


@pytest.fixture
def path(tmp_path):
    """Write the transcript of a queue that received an impossible report; return its path."""
    root = logging.getLogger("roadstead")
    before = (root.level, root.propagate)
    open_log(str(tmp_path), "driver")

    async def run():
        dispatcher = queue()
        for data in messages():
            await dispatcher.receive(data)

    run_virtual(run)
    close_logs()
    root.setLevel(before[0])
    root.propagate = before[1]
    return tmp_path / "queue.transcript"


def test_a_new_actor_raises_the_same_error_for_a_whole_transcript(script, path):
    saved = read_transcript(path)
    assert saved.is_complete

    *_, last = run_virtual(lambda: script.replay(saved, queue().receive))

    assert error_in(last) == saved.error
    assert "uid-b" in saved.error
    assert "not in lease 1 of scheduler-0" in saved.error


def test_a_transcript_is_printed_with_the_content_of_each_message(script, path, capsys):
    assert script.main([str(path)]) == 0

    error, count, submit, lease, report = capsys.readouterr().out.splitlines()
    assert error.startswith("queue: queue: ")
    assert count == "3 messages"
    assert "submit from the driver: PodList(" in submit
    assert "lease from scheduler-0 (epoch 1): LeaseRequest(owner='scheduler-0', epoch=1" in lease
    assert "LeaseReport(lease_id=1, bound=('uid-b',)" in report


def test_missing_messages_are_counted_and_unreadable_ones_are_named(script):
    odd = script.SavedTranscript("queue", "odd", 3, (SavedBytes(b"garbage"),))

    assert list(script.lines_of(odd))[1:] == [
        "1 messages, 2 before them missing",
        '0.000000 7 bytes: not msgpack: "unpack(b) received extra data."',
    ]


class SavedBytes:
    """A message of bytes."""

    def __init__(self, data):
        self.at_s, self.data = 0.0, data


def test_an_invalid_transcript_is_an_error_with_its_name(script, tmp_path, capsys):
    (tmp_path / "x").write_text("{}")

    assert script.main([str(tmp_path / "x")]) == 1

    assert capsys.readouterr().err.endswith('x": not a transcript\n')
    assert script.main([str(tmp_path / "none")]) == 1
