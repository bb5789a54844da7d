"""The journal of a binder: none, a folder, or a folder whose copy is on another node."""

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
    """A journal on the disk of a node that the driver need not see; so it is checked here.

    digest: of the run. least_lsn: a record that it must have. Reading raises JournalError if it is
    of another run, or lacks records.
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
    """Open a journal whose every step is sent to its copy, and return it with the link to that.

    epoch: of the binder's incarnation. least_lsn: a record that was acknowledged, so that a copy
    without it is not taken for the journal. disk: in place of the plan's folder. InputError for a
    folder with the journal of another run.
    """
    folder = plan.settings.journal
    if disk is None:
        assert folder is not None, "a copy without a journal"
        if epoch == plan.first_epoch and not plan.resume:
            _make_new(folder)
        disk = RealDisk(folder)
    sender = CopySender(disk, epoch)
    link = CopyLink(
        sender, lambda: directory.find(JOURNAL_COPY), halt, plan.settings.deadlines.call_s
    )
    journal = CheckedJournal(RecordedDisk(disk, sender, link.send), plan.digest, least_lsn)
    sender.lsn = lambda: journal.last_lsn
    return journal, link


def _make_new(folder: Path) -> None:
    """Move the journal of a run that ended aside; InputError for one that did not.

    On its own disk the driver has done so before.
    """
    if not any(folder.glob("*.segment")):
        return
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
