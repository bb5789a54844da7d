"""Before and after a run: whose journal is in the folder, and whether to go on with it.

nothing there             a new journal
a run that ended          moved aside, to the folder's name with a number; a new journal
a run that did not end    gone on with, where that was asked for and the inputs are the same
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from roadstead.actors.messages import RunningPods, node_batch, pod_batch
from roadstead.facts.run_mark import RunMark
from roadstead.journal.disk import Disk, RealDisk
from roadstead.journal.records import JournalError
from roadstead.journal.segments import Reader
from roadstead.protocol.codec import pack, to_wire
from roadstead.protocol.errors import InputError, cut_short
from roadstead.run import RunInputs, RunPlan

FINISHED = "finished"
"""The file that stands beside the journal of a run that ended."""

CHUNK = 5_000


def with_journal(plan: RunPlan, inputs: RunInputs) -> RunPlan:
    """The plan, with the digest that its journal begins with; the folder is ready for it.

    `resume` stays set only where there is something to go on with. InputError where the folder
    holds a run that may not be gone on with, or cannot be read or moved.
    """
    folder = plan.settings.journal
    if folder is None:
        return replace(plan, resume=False)
    # Actors may run in another working directory.
    folder = folder.resolve()
    settings = plan.settings.model_copy(update={"journal": folder})
    plan = replace(plan, settings=settings, digest=digest_of(plan, inputs))
    try:
        holds_run = folder.is_dir() and any(folder.glob("*.segment"))
        if holds_run and (folder / FINISHED).exists():
            folder.rename(_free_name(folder))
            holds_run = False
    except OSError as failure:
        raise _refused(folder, f"cannot be used: {failure.strerror}") from failure
    last_epoch = _check_resumes(plan, folder) if holds_run else 0
    return replace(plan, resume=holds_run, first_epoch=last_epoch + 1)


def _check_resumes(plan: RunPlan, folder: Path) -> int:
    """The newest epoch of any owner; InputError for a run that may not be gone on with."""
    if not plan.resume:
        raise _refused(
            folder,
            "holds a run that did not end: --resume goes on with it, another folder or "
            "--journal none begins anew",
        )
    try:
        began_with, last_epoch = seen_in(RealDisk(folder))
    except JournalError as damaged:
        raise InputError(str(damaged)) from damaged
    if began_with and began_with != plan.digest:
        raise _refused(
            folder, "holds a run of other inputs, configuration or seed: it cannot be gone on with"
        )
    return last_epoch


def seen_in(disk: Disk) -> tuple[str, int]:
    """The digest with which a journal began, "" where it ended before that; the newest epoch.

    JournalError for one that is damaged in the middle.
    """
    digest, last_epoch = "", 0
    for record in Reader(disk).records():
        last_epoch = max(last_epoch, record.epoch)
        if isinstance(record.subject, RunMark):
            digest = digest or record.subject.digest
    return digest, last_epoch


def mark_finished(plan: RunPlan) -> None:
    """The run ended: the next one moves its journal aside."""
    folder = plan.settings.journal
    if folder is not None and folder.is_dir():
        (folder / FINISHED).touch()


def _free_name(folder: Path) -> Path:
    names = (folder.with_name(f"{folder.name}.{number}") for number in count(1))
    return next(path for path in names if not path.exists())


def _refused(folder: Path, rule: str) -> InputError:
    return InputError(rule, source="settings", field="journal", value=cut_short(str(folder)))


def digest_of(plan: RunPlan, inputs: RunInputs) -> str:
    """SHA-256 of all that decides where pods go."""
    settings = plan.settings
    digest = hashlib.sha256()
    chosen = (settings.seed, settings.tie_break, settings.score_nodes)
    digest.update(repr((chosen, plan.config_text, plan.plugins)).encode())
    digest.update(pack(to_wire(plan.cluster)))
    for part in _parts(inputs):
        digest.update(pack(to_wire(part)))
    return digest.hexdigest()


def _parts(inputs: RunInputs) -> Iterator[object]:
    for start in range(0, len(inputs.nodes), CHUNK):
        yield node_batch(inputs.nodes[start : start + CHUNK])
    for start in range(0, len(inputs.running), CHUNK):
        running = inputs.running[start : start + CHUNK]
        pods = pod_batch((identity, facts) for identity, facts, _ in running)
        yield RunningPods(pods, tuple(node for _, _, node in running))
    for start in range(0, len(inputs.pending), CHUNK):
        yield pod_batch(inputs.pending[start : start + CHUNK])
