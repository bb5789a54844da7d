"""The actor of a journal copy, the binder's link to it, and the checks of a journal elsewhere."""

import asyncio
from dataclasses import replace

import pytest

from roadstead.actors.binder import copy_link
from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.binder.copy_link import CopyLink
from roadstead.actors.interface import NOTHING, ActorLostError, DeadlineError, FencedError
from roadstead.actors.journal_copy.actor import JournalCopyActor
from roadstead.actors.messages.journal_copy import CopyBegin, CopyState, Promote
from roadstead.actors.names import JOURNAL_COPY
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.journal import JournalError
from roadstead.journal_copy import CopySender, Step, StepKind
from roadstead.protocol.errors import InputError
from roadstead.protocol.plain_data import CodecError
from tests.actors.world import NOBODY, Fake, Fakes, inputs_of, plan_of, pods_of, turns, until
from tests.builders import node
from tests.journal.simulated_disk import SimulatedDisk
from tests.journal_copy.pair import Pair, contents

SYNC = Step(StepKind.SYNC, "journal-00000000000000000001.segment")


class CopyOf(Fake):
    """A fake copy whose answers wait until the test allows them."""

    def __init__(self):
        super().__init__(JOURNAL_COPY, begin_copy=self.answer, write_copy=self.answer)
        self.allowed = asyncio.Event()
        self.failure = None

    def begin(self, method, message, *, timeout_s):
        return self.call(method, message, timeout_s=timeout_s)

    async def answer(self, message):
        await self.allowed.wait()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        return CopyState(message.epoch, message.attempt, 1, getattr(message, "number", 0))


@pytest.fixture
async def linked(monkeypatch):
    """A link to a fake copy: (the link, its sender, the copy, reasons to halt)."""
    monkeypatch.setattr(copy_link, "RESEND_PAUSE_S", 0.001)
    sender, copy, halted = CopySender(SimulatedDisk(), 1), CopyOf(), []
    link = CopyLink(sender, lambda: copy, halted.append, confirm_s=5.0)
    yield link, sender, copy, halted
    link.close()


async def test_a_reply_waits_for_the_copy_and_the_loop_does_not(linked):
    link, sender, copy, _ = linked
    sender.record(SYNC)
    waiting = asyncio.create_task(link.wait_confirmed())
    await turns()
    assert not waiting.done()

    copy.allowed.set()
    await waiting

    assert sender.is_confirmed


async def test_a_reply_waits_only_for_records_synced_before_it(linked):
    link, sender, copy, _ = linked
    copy.allowed.set()
    await link.wait_confirmed()
    await turns()
    copy.allowed.clear()
    replies = []
    for _ in range(2):
        sender.record(SYNC)
        replies.append(asyncio.create_task(link.wait_confirmed()))
        await turns()
    first, second = replies

    # Let the copy answer only the message that waits at this moment.
    copy.allowed.set()
    copy.allowed.clear()
    await first

    assert not second.done(), "the copy has not confirmed what was synced after the first reply"
    copy.allowed.set()
    await second
    assert sender.is_confirmed


@pytest.mark.parametrize(
    "failure", [DeadlineError("late"), ActorLostError("gone"), CodecError("not a reply")]
)
async def test_a_message_is_sent_again_after_an_error(linked, failure):
    link, sender, copy, halted = linked
    copy.failure = failure
    copy.allowed.set()
    sender.record(SYNC)

    await link.wait_confirmed()

    assert copy.received("begin_copy") == [CopyBegin(1, 1)] * 2
    assert halted == []


async def test_a_fenced_binder_halts_and_replies_nothing(linked):
    link, sender, copy, halted = linked
    copy.failure = FencedError("the copy belongs to the binder of epoch 2")
    copy.allowed.set()
    sender.record(SYNC)

    for _ in range(2):
        with pytest.raises(ActorLostError, match="belongs to the binder of epoch 2"):
            await link.wait_confirmed()

    assert halted == ["copy of the journal: the copy belongs to the binder of epoch 2"]
    assert len(copy.calls) == 1, "nothing more is sent"


async def test_a_reply_that_waits_too_long_ends_with_an_error():
    sender, copy = CopySender(SimulatedDisk(), 1), CopyOf()
    link = CopyLink(sender, lambda: copy, lambda why: None, confirm_s=0.05)
    sender.record(SYNC)

    with pytest.raises(DeadlineError, match=r"did not confirm within 0\.05 s"):
        await link.wait_confirmed()
    link.close()


async def test_a_new_copy_is_paired_with_although_the_old_one_never_answers(linked):
    link, sender, copy, _ = linked
    sender.record(SYNC)
    waiting = asyncio.create_task(link.wait_confirmed())
    await until(lambda: copy.calls)

    link.pair_again()
    await turns()
    copy.allowed.set()
    await waiting

    assert copy.received("begin_copy")[-1] == CopyBegin(1, 2)


def copy_actor(disk, **options):
    plan = plan_of(journal="journal", journal_copy="copy")
    return JournalCopyActor(plan, NOBODY, open_disk=lambda is_aside: disk, **options)


async def test_the_actor_copies_promotes_and_reports():
    pair = Pair()
    pair.copy_disk.unlock()
    actor = copy_actor(pair.copy_disk)
    pair.write(3)
    while (message := pair.sender.next_message()) is not None:
        is_begin = isinstance(message, CopyBegin)
        handler = actor.begin_copy if is_begin else actor.write_copy
        pair.sender.answered(await handler(message))
    assert contents(pair.copy_disk).keys() == contents(pair.disk).keys()
    assert "had a complete copy of the journal" in (await actor.status(NOTHING)).text

    assert (await actor.promote(Promote(2))).why == ""

    pair.write()
    for handler, message in (
        (actor.begin_copy, CopyBegin(1, 5)),
        (actor.write_copy, pair.sender.next_message()),
    ):
        with pytest.raises(FencedError):
            await handler(message)
    assert (await actor.status(NOTHING)).error == ""


async def test_a_full_disk_is_reported_in_the_status():
    pair = Pair()
    pair.copy_disk.unlock()
    actor = copy_actor(pair.copy_disk)
    await actor.begin_copy(pair.sender.next_message())
    pair.sender.answered(CopyState(1, 1, 1))
    pair.copy_disk.room_bytes = 10

    with pytest.raises(JournalError):
        await actor.write_copy(pair.sender.next_message())

    assert "No space left on device" in (await actor.status(NOTHING)).error
    actor.release()
    pair.copy_disk.lock()


def copied_plan(tmp_path, **how):
    plan = plan_of(journal=tmp_path / "journal", journal_copy=tmp_path / "copy")
    return replace(plan, digest="this run", **how)


def binder(plan, **options):
    return BinderActor(plan, Fakes(CopyOf()), **options)


def test_the_binder_of_a_new_run_moves_a_run_that_ended_aside(tmp_path):
    inputs = inputs_of([node("n1")], pods_of("a"))
    ended = plan_of(journal=tmp_path / "journal")
    ActorLauncher().run(inputs, ended, lambda progress: None)

    binder(copied_plan(tmp_path)).release()

    assert {path.name for path in tmp_path.iterdir()} == {"journal", "journal.1"}


def test_the_binder_of_a_new_run_refuses_a_run_that_did_not_end(tmp_path):
    binder(copied_plan(tmp_path)).release()

    with pytest.raises(InputError, match="holds a run that did not end, on the node of the binder"):
        binder(copied_plan(tmp_path))


def test_a_new_binder_refuses_the_journal_of_another_run(tmp_path):
    binder(copied_plan(tmp_path)).release()

    other = replace(copied_plan(tmp_path), digest="another run")
    for _ in range(2):
        with pytest.raises(JournalError, match="is the journal of another run"):
            binder(other, epoch=2)


def test_a_new_binder_refuses_a_journal_without_acknowledged_records(tmp_path):
    first = binder(copied_plan(tmp_path))
    last_lsn = first.core.last_lsn
    first.release()

    with pytest.raises(JournalError, match=f"and record {last_lsn + 1} was acknowledged"):
        binder(copied_plan(tmp_path), epoch=2, least_lsn=last_lsn + 1)
    binder(copied_plan(tmp_path), epoch=2, least_lsn=last_lsn).release()
