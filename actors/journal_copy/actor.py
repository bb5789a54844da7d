"""JournalCopyActor: receives the messages for `CopyReceiver`, on another node than the binder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from roadstead.actors.interface import Directory, FencedError
from roadstead.actors.logs import log
from roadstead.actors.messages import ActorStatus
from roadstead.actors.messages.journal_copy import (
    CopyBegin,
    CopyState,
    CopyWrite,
    Promote,
    Promoted,
)
from roadstead.journal.disk import Disk, RealDisk
from roadstead.journal_copy import CopyFencedError, CopyReceiver
from roadstead.journal_copy.folder import free_name
from roadstead.run import RunPlan


class JournalCopyActor:
    """The copy of a run's journal, in the folder of the plan.

    open_disk: opens the folder; with True it moves the folder to another name and opens a new one.
    """

    def __init__(
        self,
        plan: RunPlan,
        directory: Directory,
        *,
        epoch: int = 1,
        open_disk: Callable[[bool], Disk] | None = None,
    ) -> None:
        folder = plan.settings.journal_copy
        if open_disk is None:
            assert folder is not None, "a copy of the journal without a folder"
            self._folder = folder
            open_disk = self._real_disk
        self._open_disk = open_disk
        self.receiver = CopyReceiver(open_disk(False), self._set_aside, epoch)
        self._messages = 0

    def _real_disk(self, sets_aside: bool) -> Disk:
        if sets_aside:
            moved_to: Path = free_name(self._folder)
            self._folder.rename(moved_to)
            log("journal-copy", "folder moved", moved_to=str(moved_to))
        return RealDisk(self._folder)

    def _set_aside(self) -> Disk:
        """Move the folder to another name; return the new, empty one, locked."""
        disk = self._open_disk(True)
        disk.lock()
        return disk

    async def begin_copy(self, message: CopyBegin) -> CopyState:
        """Pair with a binder: from now on carry out its steps only. Report the folder's files."""
        try:
            return self.receiver.begin(message)
        except CopyFencedError as fenced:
            raise FencedError(str(fenced)) from None

    async def write_copy(self, message: CopyWrite) -> CopyState:
        """Carry out steps (file operations of the journal); they are durable when this returns."""
        self._messages += 1
        try:
            return self.receiver.write(message)
        except CopyFencedError as fenced:
            raise FencedError(str(fenced)) from None

    async def promote(self, request: Promote) -> Promoted:
        """Become the journal of a new binder, and release the folder to it."""
        promoted = self.receiver.promote(request.epoch)
        log("journal-copy", "promoted", lsn=promoted.lsn, why_not=promoted.why)
        return promoted

    def release(self) -> None:
        """Release the folder for the next incarnation."""
        self.receiver.close()

    async def status(self, _: object) -> ActorStatus:
        receiver = self.receiver
        return ActorStatus(
            f"had a {receiver.state.value} copy of the journal in {receiver.path}, with at least "
            f"{receiver.lsn} records",
            error=receiver.failure,
            counts=(("messages", self._messages),),
        )
