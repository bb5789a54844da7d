"""CopyReceiver: carries out a journal's steps on the disk of the copy, and becomes the journal.

States and events, as `scripts/diagrams.py` draws them from `journal_copy.receiver.TABLE`:

    INCOMPLETE ── complete ──► COMPLETE   ── fail ──► FAILED   ↺ write
    COMPLETE   ── write ──► INCOMPLETE   ── promote ──► PROMOTED   ── fail ──► FAILED   ↺ complete
    PROMOTED   ↺ promote
    FAILED     (no event is allowed)

The steps of a message are carried out, and durable, before the message is answered. The copy is
COMPLETE if it has everything that the binder ever acknowledged: only such a copy is promoted. The
folder of any other copy has a mark (the file `folder.INCOMPLETE`). Each attempt of a binder to pair
begins a *pairing*, (epoch of the binder, number of the attempt); a message of an earlier pairing
changes nothing. Messages of an earlier binder, or to a promoted copy, are refused: from the
promotion on, an old binder gets no confirmation, and so acknowledges nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from roadstead.journal.disk import Disk, DiskFile, append_all
from roadstead.journal.records import JournalError
from roadstead.journal_copy.folder import INCOMPLETE, copied_files, copied_names, is_copied
from roadstead.journal_copy.messages import (
    CopyBegin,
    CopyFencedError,
    CopyFile,
    CopyState,
    CopyWrite,
    Pairing,
    Promoted,
    Step,
    StepKind,
)
from roadstead.transitions import History, TransitionTable


class ReceiverState(StrEnum):
    INCOMPLETE = "incomplete"
    COMPLETE = "complete"
    PROMOTED = "promoted"
    FAILED = "failed"


class ReceiverEvent(StrEnum):
    """Events of the copy.

    WRITE: a message after which the copy is not complete yet. COMPLETE: any other message. FAIL:
    the disk failed.
    """

    WRITE = "write"
    COMPLETE = "complete"
    PROMOTE = "promote"
    FAIL = "fail"


_S, _E = ReceiverState, ReceiverEvent

TABLE: TransitionTable[ReceiverState, ReceiverEvent] = TransitionTable(
    "journal copy, receiver",
    {
        (_S.INCOMPLETE, _E.WRITE): _S.INCOMPLETE,
        (_S.INCOMPLETE, _E.COMPLETE): _S.COMPLETE,
        (_S.INCOMPLETE, _E.FAIL): _S.FAILED,
        (_S.COMPLETE, _E.WRITE): _S.INCOMPLETE,
        (_S.COMPLETE, _E.COMPLETE): _S.COMPLETE,
        (_S.COMPLETE, _E.PROMOTE): _S.PROMOTED,
        (_S.COMPLETE, _E.FAIL): _S.FAILED,
        (_S.PROMOTED, _E.PROMOTE): _S.PROMOTED,
    },
)


class CopyReceiver:
    """The copy in one folder, which it locks.

    incarnation: number of this process; a message that was meant for another process of the copy
    changes nothing. lsn: of the last record that the copy certainly has. failure: why the copy
    cannot continue, or "".
    """

    def __init__(self, disk: Disk, set_aside: Callable[[], Disk], incarnation: int = 1) -> None:
        """set_aside: moves the folder to another name and returns the new, empty one, locked."""
        self.state = ReceiverState.INCOMPLETE
        self.incarnation = incarnation
        self.lsn = 0
        self.failure = ""
        self._disk, self._set_aside = disk, set_aside
        self._pairing: Pairing = (0, 0)
        # Number of the last message of the pairing that was carried out; 0 for none yet.
        self._number = 0
        # The files when the present pairing began, with their digests. These are computed once:
        # that may take so long that the sender repeats its message meanwhile.
        self._files_at_pairing: tuple[CopyFile, ...] = ()
        self._history: History = ()
        # Open files, by name. _unsynced: names of those with bytes that are not durable.
        self._files: dict[str, DiskFile] = {}
        self._unsynced: set[str] = set()
        self._names_changed = False
        disk.lock()

    @property
    def path(self) -> str:
        return self._disk.path

    def begin(self, message: CopyBegin) -> CopyState:
        """Pair with a binder; return the copy's state.

        CopyFencedError if the message is of an earlier binder, or the copy is promoted.
        """
        self._check(message.epoch)
        if message.pairing > self._pairing:
            try:
                self._files_at_pairing = tuple(copied_files(self._disk))
            except OSError as failure:
                raise self._failed(failure) from failure
            self._pairing, self._number = message.pairing, 0
        files = () if self._number else self._files_at_pairing
        return CopyState(*self._pairing, self.incarnation, self._number, files)

    def write(self, message: CopyWrite) -> CopyState:
        """Carry out a message durably if it is the next one; return the copy's state.

        CopyFencedError as in `begin`. JournalError if the disk failed, or has other files than the
        steps expect; from then on nothing is written.
        """
        self._check(message.epoch)
        received = message.pairing, message.copy, message.number
        if received == (self._pairing, self.incarnation, self._number + 1):
            try:
                self._carry_out(message)
            except OSError as failure:
                raise self._failed(failure) from failure
            self._number = message.number
        return CopyState(*self._pairing, self.incarnation, self._number)

    def promote(self, epoch: int) -> Promoted:
        """Become the journal of the binder of an epoch, and release the folder.

        From then on earlier binders are refused. A second call changes nothing. A copy that is not
        complete is not promoted; the answer says why.
        """
        if self.state not in (ReceiverState.COMPLETE, ReceiverState.PROMOTED):
            why = self.failure or "the copy was not complete yet"
            return Promoted(self.lsn, why)
        if epoch <= self._pairing[0] and self.state is ReceiverState.COMPLETE:
            # The epoch is not a new one: the caller does not know the binder that uses this copy.
            return Promoted(self.lsn, f"it is of the binder of epoch {self._pairing[0]}")
        if self.state is ReceiverState.COMPLETE:
            # Not in state PROMOTED, in a repeated call: by then the new binder has the folder.
            self.close()
        self._apply(ReceiverEvent.PROMOTE)
        self._pairing = max(self._pairing, (epoch, 0))
        return Promoted(self.lsn)

    def close(self) -> None:
        """Close the files and release the folder."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._disk.unlock()

    def _check(self, epoch: int) -> None:
        if self.failure:
            raise JournalError(self.failure)
        if self.state is ReceiverState.PROMOTED or epoch < self._pairing[0]:
            raise CopyFencedError(
                f"the copy of the journal in {self._disk.path} belongs to the binder of epoch "
                f"{self._pairing[0]}, not to that of epoch {epoch}"
            )

    def _carry_out(self, message: CopyWrite) -> None:
        """Carry out the steps durably; the folder has the mark while the copy is not complete."""
        # Checked before the first step is carried out.
        names = {name for step in message.steps for name in (step.name, step.to)} - {""}
        if wrong_names := sorted(name for name in names if not is_copied(name)):
            raise JournalError(f"journal copy: {wrong_names} are no files of a journal")
        was_complete = self.state is ReceiverState.COMPLETE
        # A complete copy has no mark: its folder is not listed for each message.
        was_marked = not was_complete and INCOMPLETE in self._disk.names()
        # ASIDE replaces the folder by an empty one, which is not complete before the last step.
        sets_aside = any(step.kind is StepKind.ASIDE for step in message.steps)
        stays_complete = was_complete and message.is_complete and not sets_aside
        if not was_marked and not stays_complete:
            self._mark()
        self._apply(ReceiverEvent.COMPLETE if message.is_complete else ReceiverEvent.WRITE)
        for step in message.steps:
            self._carry_out_step(step, was_marked=was_marked)
        self._sync()
        # The journal appends to one file; other files are opened again when a step needs them.
        appended = {step.name for step in message.steps if step.kind is StepKind.APPEND}
        appended |= {step.to for step in message.steps}
        for name in self._files.keys() - appended:
            self._close(name)
        if message.is_complete:
            self.lsn = max(self.lsn, message.lsn)
            if not stays_complete:
                self._disk.remove(INCOMPLETE)
                self._disk.sync_names()

    def _mark(self) -> None:
        self._disk.create(INCOMPLETE).close()
        self._disk.sync_names()

    def _carry_out_step(self, step: Step, *, was_marked: bool) -> None:
        """Carry out a step. was_marked: the folder had the mark before the message of the step."""
        if step.kind is StepKind.ASIDE:
            self._set_files_aside(was_marked=was_marked)
        elif step.kind is StepKind.CREATE:
            if step.name in self._disk.names():
                self._remove(step.name)
            self._files[step.name] = self._disk.create(step.name)
            self._unsynced.add(step.name)
            self._names_changed = True
        elif step.kind is StepKind.APPEND:
            self._append(step)
        elif step.kind is StepKind.SYNC:
            self._sync_file(step.name)
        elif step.kind is StepKind.CUT:
            self._close(step.name)
            self._disk.cut(step.name, step.offset)
        elif step.kind is StepKind.RENAME:
            self._close(step.to)
            self._disk.rename(step.name, step.to)
            if step.name in self._files:
                self._files[step.to] = self._files.pop(step.name)
            if step.name in self._unsynced:
                self._unsynced = self._unsynced - {step.name} | {step.to}
        else:
            self._remove(step.name)

    def _append(self, step: Step) -> None:
        file = self._open(step.name)
        if file.size() != step.offset:
            raise OSError(
                f"{step.name} has {file.size()} bytes, and the journal goes on at {step.offset}"
            )
        for _ in append_all(file, step.data):
            pass
        self._unsynced.add(step.name)

    def _open(self, name: str) -> DiskFile:
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = self._disk.extend(name)
        return file

    def _sync_file(self, name: str) -> None:
        """Sync a file, or without a name the names of the folder."""
        if not name:
            self._disk.sync_names()
            self._names_changed = False
        elif name in self._unsynced:
            self._open(name).sync()
            self._unsynced.discard(name)

    def _sync(self) -> None:
        """Make everything durable, since the answer to a message confirms it."""
        for name in sorted(self._unsynced):
            self._sync_file(name)
        if self._names_changed:
            self._sync_file("")

    def _remove(self, name: str) -> None:
        self._close(name)
        if name in self._disk.names():
            self._disk.remove(name)
            self._names_changed = True

    def _close(self, name: str) -> None:
        self._unsynced.discard(name)
        file = self._files.pop(name, None)
        if file is not None:
            file.close()

    def _set_files_aside(self, *, was_marked: bool) -> None:
        """Replace the folder by an empty one, and mark that.

        The former folder stays as it was before the message: the mark that it got for the message
        is removed unless it `was_marked` already.
        """
        for name in list(self._files):
            self._close(name)
        if not copied_names(self._disk):
            return
        if not was_marked:
            self._disk.remove(INCOMPLETE)
        self._disk.unlock()
        self._disk = self._set_aside()
        self._mark()

    def _failed(self, failure: OSError) -> JournalError:
        self._apply(ReceiverEvent.FAIL)
        why = failure.strerror or str(failure)
        self.failure = f"journal copy {self._disk.path}: cannot be written: {why}"
        return JournalError(self.failure)

    def _apply(self, event: ReceiverEvent) -> None:
        arrow = TABLE.follow(self._disk.path, self.state, event, self._history)
        self.state, self._history = arrow.target, arrow.extend(self._history)

    def validate(self) -> None:
        """Check every invariant; raises AssertionError."""
        assert self._unsynced <= self._files.keys(), "a file is not synced and not open"
        if self.state is ReceiverState.COMPLETE:
            assert INCOMPLETE not in self._disk.names(), "a complete copy is marked as incomplete"
            assert not self._unsynced, "a complete copy is not durable"
        if self.state is ReceiverState.PROMOTED:
            assert not self._files, "a promoted copy has files open"
        assert bool(self.failure) == (self.state is ReceiverState.FAILED), "failure without reason"
