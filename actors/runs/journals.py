"""Journals before and after a run: what the folder contains, and what to do with it.

nothing                             a new journal
a run whose output is written       moved aside, to the folder's name with a number; a new journal.
                                    With `resume`: its outcome is read, and nothing is decided
a run that ended, without output    with `resume`: its outcome is read; else refused
a run that did not end              with `resume`: it is continued; else refused

A run that is continued or read must have the same inputs.
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
from roadstead.protocol.codec import pack, to_wire
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.result import PlacedPod
from roadstead.run import RunInputs, RunOutcome, RunPlan

OBJECTS_PER_PART = 5_000
"""Objects that are encoded at a time for the digest of the inputs."""


@dataclass(frozen=True, slots=True)
class OpenedJournal:
    """Plan and state of an opened journal.

    plan: with the digest for the journal's first record; its folder is ready. `resume` stays set
    only if the folder holds a run. outcome: of that run, if it ended. notes: messages for the user.
    """

    plan: RunPlan
    outcome: RunOutcome | None = None
    notes: tuple[str, ...] = ()


def with_journal(plan: RunPlan, inputs: RunInputs) -> RunPlan:
    """Open the journal of a run whose outcome is not kept. Errors as for `open_journal`."""
    return open_journal(plan, inputs, keeps_outcome=False).plan


def open_journal(plan: RunPlan, inputs: RunInputs, *, keeps_outcome: bool = True) -> OpenedJournal:
    """Inspect the journal's folder of a plan, and prepare it for the run.

    InputError if the folder holds a run that may not be continued, or cannot be read or moved.
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
        is_written = (folder / FINISHED).exists()
        holds_run = is_written or (folder.is_dir() and any(folder.glob("*.segment")))
        if (folder / INCOMPLETE).exists():
            raise _refusal(
                folder,
                "is a copy that lacks records of its journal: use the journal itself, or another "
                "copy of it",
            )
        # A finished run: keep its journal under a numbered name; the new run gets an empty folder.
        if is_written and not (plan.resume and keeps_outcome):
            folder.rename(free_name(folder))
            holds_run = False
    except OSError as failure:
        raise _refusal(folder, f"cannot be used: {failure.strerror}") from failure
    if not holds_run:
        return OpenedJournal(replace(plan, resume=False, first_epoch=1))
    return _inspect(plan, folder, is_written=is_written, keeps_outcome=keeps_outcome)


def _inspect(
    plan: RunPlan, folder: Path, *, is_written: bool, keeps_outcome: bool
) -> OpenedJournal:
    """Inspect a folder that holds a run whose journal is not moved aside."""
    try:
        contents = read_journal(RealDisk(folder))
    except JournalError as damaged:
        raise InputError(str(damaged)) from damaged
    if not plan.resume:
        what = "ended, but its output was not written" if contents.ended_with else "did not end"
        does = "to write it" if contents.ended_with else "to continue it"
        raise _refusal(
            folder,
            f"holds a run that {what}: use --resume {does}; for a new run, use another folder or "
            "--journal none",
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
    if outcome is None and is_written:
        raise _refusal(
            folder,
            "holds a run that ended, but not its outcome: start a new run without --resume",
        )
    notes = _notes(folder, contents, has_outcome=outcome is not None)
    return OpenedJournal(replace(plan, first_epoch=contents.last_epoch + 1), outcome, notes)


def _notes(folder: Path, contents: JournalContents, *, has_outcome: bool) -> tuple[str, ...]:
    notes = []
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
    """Write the end of the journal of a run that is over, unless its binder did."""
    folder = plan.settings.journal
    if folder is None or not any(folder.glob("*.segment")) or is_closed(disk := RealDisk(folder)):
        return
    journal = FileJournal(disk)
    try:
        for _ in journal.recovered_groups():
            pass
        journal.end()
    finally:
        journal.close()


def mark_finished(plan: RunPlan) -> None:
    """Mark that the output of the run is written: the next run moves its journal aside."""
    folder = plan.settings.journal
    if folder is not None and any(folder.glob("*.segment")):
        (folder / FINISHED).touch()


def _refusal(folder: Path, rule: str) -> InputError:
    return InputError(rule, source="settings", field="journal", value=cut_short(str(folder)))


def digest_of(plan: RunPlan, inputs: RunInputs) -> str:
    """Return the SHA-256 of everything that decides placements."""
    settings = plan.settings
    digest = hashlib.sha256()
    chosen = (settings.seed, settings.tie_break, settings.score_nodes)
    digest.update(repr((chosen, plan.config_text, plan.plugins)).encode())
    digest.update(pack(to_wire(plan.cluster)))
    for part in _parts(inputs):
        digest.update(pack(to_wire(part)))
    return digest.hexdigest()


def _parts(inputs: RunInputs) -> Iterator[object]:
    for start in range(0, len(inputs.nodes), OBJECTS_PER_PART):
        yield node_batch(inputs.nodes[start : start + OBJECTS_PER_PART])
    for start in range(0, len(inputs.running), OBJECTS_PER_PART):
        running = inputs.running[start : start + OBJECTS_PER_PART]
        pods = pod_list((identity, facts) for identity, facts, _ in running)
        yield RunningPods(pods, tuple(node for _, _, node in running))
    for start in range(0, len(inputs.pending), OBJECTS_PER_PART):
        yield pod_list(inputs.pending[start : start + OBJECTS_PER_PART])
