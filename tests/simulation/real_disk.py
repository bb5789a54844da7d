"""A journal in a folder of the operating system, compared with the same journal on a simulated
disk.

The end of a run is written to a folder; the same calls then go to both. Names and bytes must be
equal, both must sync the same data, and the folder must belong to one process.
"""

import os
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from roadstead.facts.run_mark import BEGUN, RunMark
from roadstead.journal import JournalError, JournalRecord, RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.files import FileJournal
from roadstead.journal.segments import is_closed
from tests.journal.simulated_disk import SimulatedDisk

MEMORY = "/dev/shm"
TORN = b"torn"


def differences(contents):
    """Return one line for each difference between the two disks with these files."""
    simulated, asked = SimulatedDisk(short_writes=0.0), Counter()
    simulated.contents = dict(contents)
    for name in [each for each in simulated.names() if each.endswith(".segment")][-1:]:
        simulated.contents[name] += TORN
    simulated.durable = {name: len(data) for name, data in simulated.contents.items()}
    simulated.lasting = set(simulated.contents)
    where = MEMORY if os.path.isdir(MEMORY) else None
    with TemporaryDirectory(dir=where) as folder:
        path = Path(folder, "journal")
        path.mkdir()
        for name, data in simulated.contents.items():
            (path / name).write_bytes(data)
        sync, sync_data = os.fsync, os.fdatasync
        with (
            patch.object(os, "fsync", lambda fd: (asked.update(["names"]), sync(fd))),
            patch.object(os, "fdatasync", lambda fd: (asked.update(["bytes"]), sync_data(fd))),
        ):
            real = list(_driven(RealDisk(path), path))
        wanted = list(_driven(simulated, None))
        kept = {each.name: each.read_bytes() for each in path.iterdir() if each.name != "lock"}
        RealDisk(Path(folder, "runs", "new"))
        is_made = Path(folder, "runs", "new").is_dir()
    if not is_made:
        yield "a real disk makes no folder"
    if not real[4]:
        yield "a journal takes records with a gap before them"
    if (real[3], real[5]) != (False, True):
        yield f"a journal is closed before its end, at its end: {real[3:6]}"
    if real != wanted:
        yield f"a real disk: {real}, simulated: {wanted}"
    if kept != simulated.contents:
        names = kept.keys() | simulated.contents.keys()
        other = [name for name in names if kept.get(name) != simulated.contents.get(name)]
        yield f"a real disk has other files: {sorted(other)}"
    if asked != simulated.asked:
        yield f"a real disk was asked to keep {dict(asked)}, simulated {dict(simulated.asked)}"


def _driven(disk, path):
    """Open a journal, continue it in small segments, replace it by a snapshot, end it."""
    journal = FileJournal(disk, segment_bytes=1)
    yield len(list(journal.recovered()))
    yield str(journal.tail)
    yield [_refused(disk, path) for _ in range(2)]
    for _ in range(3):
        journal.append([_mark(journal.last_lsn + 1)])
        journal.flush()
    journal.snapshot([_mark(0)])
    journal.append([_mark(journal.last_lsn + 1)])
    yield is_closed(disk)
    yield _refuses_a_gap(journal)
    journal.end()
    yield is_closed(disk)
    yield journal.last_lsn, journal.epoch, [name for name in disk.names() if name != "lock"]
    other = FileJournal(disk)
    yield len(list(other.recovered()))
    other.close()
    other.close()
    yield _refused(disk, path)


def _refused(disk, path):
    """Whether another process is refused, with the pid of the process that has the folder."""
    if path is not None:
        disk = RealDisk(path)
    try:
        disk.lock()
    except JournalError as refused:
        return path is None or f"pid {os.getpid()}" in str(refused)
    disk.unlock()
    return False


def _refuses_a_gap(journal):
    """Whether records that skip a number are refused, and none of them is kept."""
    try:
        journal.append([_mark(journal.last_lsn + 2)])
    except JournalError as refused:
        return "does not follow" in str(refused)
    return False


def _mark(lsn):
    return JournalRecord(lsn, RecordKind.RUN, "", "", "", subject=RunMark(BEGUN))
