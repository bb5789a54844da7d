"""Journals before and after a run: what the folder contains, and what to do with it.

nothing                             a new journal
a run whose output is written       moved aside, to the folder's name with a number; a new journal.
                                    With `resume`: its outcome is read, and nothing is decided
a run that ended, without output    with `resume`: its outcome is read; else refused
a run that did not end              with `resume`: it is continued; else refused

`resume` needs the same inputs as the run in the folder had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from roadstead.actors.messages import RunningPods, node_batch, pod_list
from roadstead.actors.runs.outcomes import read_outcome
from roadstead.journal.contents import JournalContents, read_journal
from roadstead.journal.disk import RealDisk
from roadstead.journal.files import FileJournal
from roadstead.journal.headers import FINISHED
from roadstead.journal.records import JournalError
from roadstead.journal.segments import is_closed
from roadstead.journal_copy.folder import INCOMPLETE, free_name
from roadstead.protocol.codec import to_wire
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.plain_data import pack
from roadstead.report.result import PlacedPod
from roadstead.run import RunInputs, RunOutcome, RunPlan

OBJECTS_PER_PART = 5_000
"""Nodes or pods that are encoded together for the digest, to bound its memory."""


@dataclass(frozen=True, slots=True)
class OpenedJournal:
    """Plan and state of an opened journal.

    plan: with the digest for the journal's first record; its folder is ready. `resume` stays set
    only if the folder contains a run. outcome: of that run, if it ended. notes: messages for the
    user.
    """

    plan: RunPlan
    outcome: RunOutcome | None = None
    notes: tuple[str, ...] = ()


def with_journal(plan: RunPlan, inputs: RunInputs) -> RunPlan:
    """Open the journal of a run that stores no outcome. Errors as for `open_journal`."""
    return open_journal(plan, inputs, keeps_outcome=False).plan


def open_journal(plan: RunPlan, inputs: RunInputs, *, keeps_outcome: bool = True) -> OpenedJournal:
    """Inspect the journal's folder of a plan, and prepare it for the run.

    keeps_outcome: whether the run stores its outcome, which a resumed run may return. InputError if
    the folder contains a run that may not be continued, or cannot be read or moved.
    """
    folder = plan.settings.journal
    if folder is None:
        return OpenedJournal(replace(plan, resume=False))
    # Actors may run in another working directory.
    folder = folder.resolve()
    copy = plan.settings.journal_copy
    folders = {"journal": folder, "journal_copy": None if copy is None else copy.resolve()}
    settings = plan.settings.model_copy(update=folders)
    plan = replace(plan, settings=settings, digest=digest_of(plan, inputs))
    try:
        # The file `FINISHED` is written after the output of the run.
        output_written = (folder / FINISHED).exists()
        holds_run = output_written or (folder.is_dir() and any(folder.glob("*.segment")))
        # The file that marks a copy which lacks records.
        if (folder / INCOMPLETE).exists():
            raise _refusal(
                folder,
                "is a copy that lacks records of its journal: use the journal itself, or another "
                "copy of it",
            )
        # Move the journal aside, to a name with a number; begin with an empty folder.
        if output_written and not (plan.resume and keeps_outcome):
            folder.rename(free_name(folder))
            holds_run = False
    except OSError as failure:
        raise _refusal(folder, f"cannot be used: {failure.strerror}") from failure
    if not holds_run:
        return OpenedJournal(replace(plan, resume=False, first_epoch=1))
    return _inspect(plan, folder, output_written=output_written, keeps_outcome=keeps_outcome)


def _inspect(
    plan: RunPlan, folder: Path, *, output_written: bool, keeps_outcome: bool
) -> OpenedJournal:
    """Return the plan that continues the run in a folder, or the run's outcome if it ended.

    In the contents of the journal, `began_with` is the digest of the run's inputs, and `ended_with`
    that of its outcome; "" if the journal has no record of it.
    """
    try:
        contents = read_journal(RealDisk(folder))
    except JournalError as damaged:
        raise InputError(str(damaged)) from damaged
    # Without --resume the folder belongs to another run, whose binds must not be overwritten.
    if not plan.resume:
        what = "ended, but its output was not written" if contents.ended_with else "did not end"
        purpose = "to write it" if contents.ended_with else "to continue it"
        raise _refusal(
            folder,
            f"holds a run that {what}: use --resume {purpose}; for a new run, use another folder "
            "or --journal none",
        )
    if contents.began_with and contents.began_with != plan.digest:
        raise _refusal(
            folder,
            "holds a run with other inputs, configuration or seed: --resume needs the same ones",
        )
    outcome = None
    if contents.ended_with and keeps_outcome:
        bound = contents.bound.items()
        placements = tuple(PlacedPod(key, uid, node) for uid, (key, node) in bound)
        outcome = read_outcome(folder, contents.ended_with, placements)
    if outcome is None and output_written:
        raise _refusal(
            folder,
            "holds a run that ended, but not its outcome: start a new run without --resume",
        )
    notes = _notes(folder, contents, has_outcome=outcome is not None)
    return OpenedJournal(replace(plan, first_epoch=contents.last_epoch + 1), outcome, notes)


def _notes(folder: Path, contents: JournalContents, *, has_outcome: bool) -> tuple[str, ...]:
    """Return messages for the user about what the journal contains."""
    notes = []
    # The bytes after the last complete record, if there are any.
    if contents.tail is not None:
        notes.append(f"Journal {folder}: {contents.tail}. It was never acknowledged.")
    if has_outcome:
        notes.append(f"Journal {folder}: the run ended; its result is read, without new decisions.")
    elif contents.ended_with:
        notes.append(
            f"Journal {folder}: the run ended, but its outcome cannot be read. Bound pods stay "
            "bound; pods without a node are tried again."
        )
    return tuple(notes)


def close_journal(plan: RunPlan) -> None:
    """Write the end of the journal of a run that ended, unless its binder has written it."""
    folder = plan.settings.journal
    if folder is None or not any(folder.glob("*.segment")) or is_closed(disk := RealDisk(folder)):
        return
    journal = FileJournal(disk)
    try:
        # Records are appended only after all of the journal is read.
        for _ in journal.recovered_groups():
            pass
        journal.end()
    finally:
        journal.close()


def mark_finished(plan: RunPlan) -> None:
    """Mark that the output of the run is written: the next run moves its journal aside.

    JournalError if the mark cannot be written.
    """
    folder = plan.settings.journal
    try:
        if folder is not None and any(folder.glob("*.segment")):
            (folder / FINISHED).touch()
    except OSError as failure:
        raise JournalError(
            f"journal {folder}: cannot record that the output is written: {failure.strerror}"
        ) from failure


def _refusal(folder: Path, problem: str) -> InputError:
    return InputError(problem, source="settings", field="journal", value=cut_short(str(folder)))


def digest_of(plan: RunPlan, inputs: RunInputs) -> str:
    """Return the SHA-256 of the inputs and of the settings that decide placements."""
    settings = plan.settings
    digest = hashlib.sha256()
    deciding = (settings.seed, settings.tie_break, settings.score_nodes)
    digest.update(repr((deciding, plan.config_text, plan.plugins)).encode())
    digest.update(pack(to_wire(plan.cluster)))
    for part in _parts(inputs):
        digest.update(pack(to_wire(part)))
    return digest.hexdigest()


def _parts(inputs: RunInputs) -> Iterator[object]:
    """Yield the inputs as messages, in order."""
    for start in range(0, len(inputs.nodes), OBJECTS_PER_PART):
        yield node_batch(inputs.nodes[start : start + OBJECTS_PER_PART])
    for start in range(0, len(inputs.running), OBJECTS_PER_PART):
        running = inputs.running[start : start + OBJECTS_PER_PART]
        pods = pod_list((identity, facts) for identity, facts, _ in running)
        yield RunningPods(pods, tuple(node for _, _, node in running))
    for start in range(0, len(inputs.pending), OBJECTS_PER_PART):
        yield pod_list(inputs.pending[start : start + OBJECTS_PER_PART])
