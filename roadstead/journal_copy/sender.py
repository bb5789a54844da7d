"""CopySender: sends the journal's steps to its copy, and tracks what the copy has confirmed.

States and events, as `scripts/diagrams.py` draws them from `journal_copy.sender.TABLE`:

    UNPAIRED    ── pair ──► CATCHING_UP   ── fence ──► FENCED   ↺ lose
    CATCHING_UP ── lose ──► UNPAIRED   ── catch_up ──► COPYING   ── fence ──► FENCED   ↺ confirm
    COPYING     ── lose ──► UNPAIRED   ── fence ──► FENCED   ↺ confirm
    FENCED      ↺ fence

- UNPAIRED: the next message is a `CopyBegin`, which asks the copy to pair. Steps are counted
  (`position`) and not stored: after the next pairing, their results are read from the journal's
  files.
- CATCHING_UP: the copy has reported its files. If each of them is the beginning of the journal's
  file of that name, the missing bytes are sent; otherwise the whole journal, after the copy has set
  its files aside. Files are read in parts, each when it is sent; steps that are recorded meanwhile
  wait.
- COPYING: recorded steps are sent in order, in messages of bounded size.
- FENCED: another binder uses the copy. Final.

One message is sent at a time, and repeated until it is answered. The event `lose` ends a pairing
and begins the next attempt to pair. Its causes: the copy does not know the pairing, too many bytes
wait, or a file was changed before it was sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum

from roadstead.journal.disk import Disk
from roadstead.journal_copy.folder import copied_names, digest_of
from roadstead.journal_copy.messages import (
    CHUNK_BYTES,
    MAX_WAITING_BYTES,
    CopyBegin,
    CopyFencedError,
    CopyFile,
    CopyState,
    CopyWrite,
    Pairing,
    Step,
    StepKind,
)
from roadstead.transitions import History, TransitionTable


class SenderState(StrEnum):
    UNPAIRED = "unpaired"
    CATCHING_UP = "catching up"
    COPYING = "copying"
    FENCED = "fenced"


class SenderEvent(StrEnum):
    PAIR = "pair"
    CONFIRM = "confirm"
    CATCH_UP = "catch_up"
    LOSE = "lose"
    FENCE = "fence"


_S, _E = SenderState, SenderEvent

TABLE: TransitionTable[SenderState, SenderEvent] = TransitionTable(
    "journal copy, sender",
    {
        (_S.UNPAIRED, _E.PAIR): _S.CATCHING_UP,
        (_S.UNPAIRED, _E.LOSE): _S.UNPAIRED,
        (_S.UNPAIRED, _E.FENCE): _S.FENCED,
        (_S.CATCHING_UP, _E.CONFIRM): _S.CATCHING_UP,
        (_S.CATCHING_UP, _E.CATCH_UP): _S.COPYING,
        (_S.CATCHING_UP, _E.LOSE): _S.UNPAIRED,
        (_S.CATCHING_UP, _E.FENCE): _S.FENCED,
        (_S.COPYING, _E.CONFIRM): _S.COPYING,
        (_S.COPYING, _E.LOSE): _S.UNPAIRED,
        (_S.COPYING, _E.FENCE): _S.FENCED,
        (_S.FENCED, _E.FENCE): _S.FENCED,
    },
)

DESTRUCTIVE = frozenset({StepKind.CUT, StepKind.RENAME, StepKind.REMOVE})
"""Steps that change or remove bytes of a file: a part of it that is not sent yet is lost."""

DURABLE = DESTRUCTIVE | {StepKind.SYNC}
"""Steps whose results must be durable before the binder acknowledges anything after them."""


class CopySender:
    """The sender of one binder. Steps are recorded in any state, also before there is a copy.

    position: number of recorded steps. required: number of the first steps that must be durable on
    both disks before the binder may send a reply. confirmed: number of the first steps that are
    durable on the copy.
    """

    def __init__(
        self,
        disk: Disk,
        epoch: int,
        lsn: Callable[[], int] = lambda: 0,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        """disk: of the binder's journal, for reading. lsn: returns its last record's number."""
        self.state = SenderState.UNPAIRED
        self.position = self.required = self.confirmed = 0
        self.lsn = lsn
        self._disk = disk
        self._chunk_bytes, self._max_waiting_bytes = chunk_bytes, max_waiting_bytes
        self._pairing: Pairing = (epoch, 1)
        self._history: History = ()
        # The incarnation of the copy, and the number of the last message to it.
        self._copy = self._number = 0
        self._sent: CopyBegin | CopyWrite | None = None
        # What the copy has when it confirms the message: so many of the first steps, and the
        # records up to an lsn.
        self._sent_position = self._sent_lsn = 0
        # Parts of files that the copy lacks, not yet sent: (name, offset, end); the name "" stands
        # for a step ASIDE, the offset -1 for a step CREATE.
        self._parts: deque[tuple[str, int, int]] = deque()
        # Recorded steps that wait until all parts are sent.
        self._queue: deque[Step] = deque()
        self._waiting_bytes = 0
        # (position, last record of the journal at that position), for positions after a SYNC, or at
        # which catching up began, that are not sent yet.
        self._lsns: deque[tuple[int, int]] = deque()

    @property
    def is_confirmed(self) -> bool:
        """Whether the copy has everything that must be durable before the binder may reply."""
        return self.confirmed >= self.required

    def record(self, step: Step) -> None:
        """Record a step that the binder's own disk has carried out, or is about to."""
        self.position += 1
        if step.kind in DURABLE:
            self.required = self.position
        if self.state not in (SenderState.CATCHING_UP, SenderState.COPYING):
            return
        unsent = {name for name, _, _ in self._parts}
        if step.kind in DESTRUCTIVE and unsent & {step.name, step.to}:
            self._restart_pairing()
            return
        self._queue.append(step)
        if step.kind is StepKind.SYNC:
            self._lsns.append((self.position, self.lsn()))
        self._waiting_bytes += len(step.data)
        if self._waiting_bytes > self._max_waiting_bytes:
            self._restart_pairing()

    def next_message(self) -> CopyBegin | CopyWrite | None:
        """Return the message to send now: the unanswered one, else the next; None if none is due.

        CopyFencedError if this binder is fenced.
        """
        if self.state is SenderState.FENCED:
            raise CopyFencedError("another binder has taken over the copy of the journal")
        if self._sent is None and self.state is SenderState.UNPAIRED:
            self._sent = CopyBegin(*self._pairing)
        elif self._sent is None and self._is_due():
            self._sent = self._next_write()
        return self._sent

    def _is_due(self) -> bool:
        # If the copy has everything that must be durable, no reply waits for the other steps (the
        # FLUSHED frame that the journal appends after a flush): they are sent with later ones.
        return self.state is SenderState.CATCHING_UP or not self.is_confirmed

    def _next_write(self) -> CopyWrite:
        steps, room_bytes = [], self._chunk_bytes
        while room_bytes > 0 and self._parts:
            step = self._next_part(room_bytes)
            room_bytes -= len(step.data)
            steps.append(step)
        position = self.position - len(self._queue)
        while room_bytes > 0 and self._queue and not self._parts:
            step = self._next_queued(room_bytes)
            room_bytes -= len(step.data)
            steps.append(step)
            position = self.position - len(self._queue)
        is_complete = not self._parts
        if is_complete:
            self._sent_position = position
            while self._lsns and self._lsns[0][0] <= position:
                _, self._sent_lsn = self._lsns.popleft()
        self._number += 1
        return CopyWrite(
            *self._pairing, self._copy, self._number, tuple(steps), self._sent_lsn, is_complete
        )

    def _next_part(self, room_bytes: int) -> Step:
        """Return the next step of catching up: ASIDE, CREATE, or an APPEND of a part of a file."""
        name, offset, end = self._parts.popleft()
        if not name:
            return Step(StepKind.ASIDE)
        if offset < 0:
            return Step(StepKind.CREATE, name)
        stop = min(end, offset + room_bytes)
        data = self._disk.read_part(name, offset, stop - offset)
        assert len(data) == stop - offset, f"{name} is shorter than it was"
        if stop < end:
            self._parts.appendleft((name, stop, end))
        return Step(StepKind.APPEND, name, offset=offset, data=data)

    def _next_queued(self, room_bytes: int) -> Step:
        """Remove and return the next recorded step, or the first part of its bytes."""
        step = self._queue[0]
        if len(step.data) <= room_bytes:
            self._waiting_bytes -= len(step.data)
            return self._queue.popleft()
        sent, remaining = step.data[:room_bytes], step.data[room_bytes:]
        self._waiting_bytes -= len(sent)
        self._queue[0] = Step(step.kind, step.name, offset=step.offset + len(sent), data=remaining)
        return Step(step.kind, step.name, offset=step.offset, data=sent)

    def answered(self, answer: CopyState) -> None:
        """Apply the copy's answer to the unanswered message; ignore it if there is none."""
        if self.state is SenderState.FENCED or self._sent is None:
            return
        if answer.epoch > self._pairing[0]:
            self.fence()
        elif answer.pairing != self._pairing:
            # A new process of the copy, which does not know the pairing.
            self._restart_pairing()
        elif isinstance(self._sent, CopyBegin):
            self._apply(SenderEvent.PAIR)
            self._sent, self._copy = None, answer.copy
            self._plan(answer.files)
        elif answer.copy != self._copy or answer.number < self._sent.number:
            self._restart_pairing()
        elif answer.number == self._sent.number:
            self._confirm(self._sent)

    def _confirm(self, sent: CopyWrite) -> None:
        is_caught_up = sent.is_complete and self.state is SenderState.CATCHING_UP
        self._apply(SenderEvent.CATCH_UP if is_caught_up else SenderEvent.CONFIRM)
        self._sent = None
        self.confirmed = max(self.confirmed, self._sent_position)

    def _plan(self, files: Iterable[CopyFile]) -> None:
        """Plan which parts of files the copy lacks (`_parts`). files: those that it has."""
        self._sent_position = self.confirmed
        self._lsns.append((self.position, self.lsn()))
        sizes = {name: self._disk.size(name) for name in copied_names(self._disk)}
        on_copy = {each.name: each for each in files}
        continues_files = all(
            each.size_bytes <= sizes.get(each.name, -1)
            and each.digest == digest_of(self._disk, each.name, each.size_bytes)
            for each in on_copy.values()
        )
        if not continues_files:
            on_copy = {}
            self._parts.append(("", 0, 0))
        for name, size_bytes in sizes.items():
            copied = on_copy.get(name)
            offset = 0 if copied is None else copied.size_bytes
            if copied is None:
                self._parts.append((name, -1, size_bytes))
            if offset < size_bytes:
                self._parts.append((name, offset, size_bytes))

    def pair_again(self) -> None:
        """Begin the next attempt to pair, with a new process of the copy; not if fenced."""
        if self.state is not SenderState.FENCED:
            self._restart_pairing()

    def fence(self) -> None:
        """Record that a newer binder uses the copy."""
        self._apply(SenderEvent.FENCE)
        self._drop_unsent()

    def _restart_pairing(self) -> None:
        self._apply(SenderEvent.LOSE)
        self._drop_unsent()
        epoch, attempt = self._pairing
        self._pairing = epoch, attempt + 1
        self._number = 0

    def _drop_unsent(self) -> None:
        """Drop the unanswered message and everything that waits to be sent."""
        self._sent = None
        self._parts.clear()
        self._queue.clear()
        self._lsns.clear()
        self._waiting_bytes = 0

    def _apply(self, event: SenderEvent) -> None:
        arrow = TABLE.follow("pairing", self.state, event, self._history)
        self.state, self._history = arrow.target, arrow.extend(self._history)

    def validate(self) -> None:
        """Check every invariant; raises AssertionError."""
        assert self.confirmed <= self.position, "more is confirmed than was recorded"
        assert self.required <= self.position, "a later position is required than was recorded"
        waiting_bytes = sum(len(step.data) for step in self._queue)
        assert waiting_bytes == self._waiting_bytes <= self._max_waiting_bytes, "waiting bytes"
        if self.state in (SenderState.UNPAIRED, SenderState.FENCED):
            assert not self._queue, f"steps wait {self.state}"
            assert not self._parts, f"files are to be caught up {self.state}"
        if self.state is SenderState.COPYING:
            assert not self._parts, "files are to be caught up after it"
            sent = self._sent_position if self._sent is not None else self.confirmed
            assert sent + len(self._queue) == self.position, "a step is neither sent nor waits"
        if self._sent is not None:
            assert self._sent.pairing == self._pairing, "a message of another pairing is sent"
