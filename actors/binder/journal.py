"""The journal of a binder: none, a folder, or a folder with a copy on another node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from roadstead.actors.binder.copy_link import CopyLink
from roadstead.actors.interface import Directory
from roadstead.actors.names import JOURNAL_COPY
from roadstead.facts.run_mark import BEGUN, RunMark
from roadstead.journal import (
    Journal,
    JournalError,
    NullJournal,
    RecordColumns,
    RecordKind,
    Records,
)
from roadstead.journal.contents import read_journal
from roadstead.journal.disk import Disk, RealDisk
from roadstead.journal.files import FileJournal
from roadstead.journal_copy import CopySender, RecordedDisk
from roadstead.journal_copy.folder import free_name
from roadstead.protocol.errors import InputError, cut_short
from roadstead.run import RunPlan


def open_journal(plan: RunPlan) -> Journal:
    """Open the journal of a run, new or from an earlier process. JournalError if it is in use."""
    folder = plan.settings.journal
    if folder is None:
        return NullJournal()
    return FileJournal(RealDisk(folder))


class CheckedJournal(FileJournal):
    """A journal that is checked when it is read: the client may not see the disk of its node.

    digest: of the run's inputs (`RunPlan`). least_lsn: number of a record that the journal must
    have. Reading raises JournalError for the journal of another run, or one that lacks records.
    """

    def __init__(self, disk: Disk, digest: str, least_lsn: int) -> None:
        super().__init__(disk)
        self._digest, self._least_lsn = digest, least_lsn

    def recovered_groups(self) -> Iterator[Records]:
        for group in super().recovered_groups():
            columns = RecordColumns.of(group)
            if RecordKind.RUN in columns.kinds:
                for subject in columns.subjects:
                    self._check_run(subject)
            yield columns
        if self.last_lsn < self._least_lsn:
            self.close()
            raise JournalError(
                f"journal {self.disk.path}: ends with record {self.last_lsn}, and record "
                f"{self._least_lsn} was acknowledged"
            )

    def _check_run(self, mark: object) -> None:
        if isinstance(mark, RunMark) and mark.what == BEGUN and mark.digest != self._digest:
            self.close()
            raise JournalError(f"journal {self.disk.path}: is the journal of another run")


def copied_journal(
    plan: RunPlan,
    directory: Directory,
    halt: Callable[[str], None],
    *,
    epoch: int,
    least_lsn: int,
    disk: Disk | None,
) -> tuple[Journal, CopyLink]:
    """Open a journal that is copied step by step; return it with the link to its copy.

    epoch: of the binder's incarnation. least_lsn: number of an acknowledged record: a folder
    without it is refused. disk: replaces the plan's folder. InputError for a folder with a run that
    did not end.
    """
    folder = plan.settings.journal
    if disk is None:
        assert folder is not None, "a copy without a journal"
        if epoch == plan.first_epoch and not plan.resume:
            _set_aside_ended(folder)
        disk = RealDisk(folder)
    sender = CopySender(disk, epoch)
    link = CopyLink(
        sender, lambda: directory.find(JOURNAL_COPY), halt, plan.settings.deadlines.call_s
    )
    journal = CheckedJournal(RecordedDisk(disk, sender, link.send), plan.digest, least_lsn)
    # Set afterwards: the journal's disk needs the sender, and the sender the journal's last record.
    sender.lsn = lambda: journal.last_lsn
    return journal, link


def _set_aside_ended(folder: Path) -> None:
    """Move the journal of a run that ended to another name; InputError if the run did not end.

    For a folder on its own machine, the client has done so before (`runs/journals.py`).
    """
    if not any(folder.glob("*.segment")):
        return
    # The digest of the run's outcome, or "".
    if read_journal(RealDisk(folder)).ended_with:
        folder.rename(free_name(folder))
        return
    raise InputError(
        "holds a run that did not end, on the node of the binder: continue it there with --resume, "
        "or use another folder",
        source="settings",
        field="journal",
        value=cut_short(str(folder)),
    )
