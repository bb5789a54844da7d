import json

import pytest

from roadstead.journal import JournalRecord, RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.files import FileJournal
from tests.builders import node, pod


@pytest.fixture
def journal(tmp_path):
    """Writes records into the journal of an output folder, which it returns."""

    def write(*records):
        files = FileJournal(RealDisk(tmp_path / "out" / "journal"))
        list(files.recovered())
        files.append(records)
        files.flush()
        files.close()
        return tmp_path / "out"

    return write


def of_node(lsn, name="n1", **facts):
    return JournalRecord(
        lsn, RecordKind.NODE, name, name, name, subject=node(name, cpu=1000, **facts)
    )


def bind(lsn, uid, cpu):
    return JournalRecord(lsn, RecordKind.BIND, uid, uid, "n1", f"t{lsn}", "s", 1, pod(cpu=cpu))


def test_a_journal_in_which_all_holds_says_so(run, journal):
    out = journal(of_node(1), bind(2, "default/a", 500), bind(3, "default/b", 500))

    result = run("check", str(out))

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Records: 2 bind, 1 node",
        "2 binds checked: no violations",
    ]
    assert run("check", str(out / "journal")).exit_code == 0


def test_each_violation_is_told_with_record_pod_and_node(run, journal):
    out = journal(of_node(1), *(bind(lsn, f"default/p{lsn}", 800) for lsn in (2, 3, 4)))

    result = run("check", str(out), "--show", "1")

    assert result.exit_code == 1
    assert result.stdout.splitlines()[1:] == [
        "I1  record 3: default/p3 on n1: cpu: 800 + 800 of 1000",
        "... and 1 more (--show 0 for all)",
        "3 binds checked: 2 violations",
    ]
    told = json.loads(run("check", str(out), "--format", "json").stdout)
    assert told["binds_checked"] == told["last_lsn"] - 1 == 3
    assert told["violations"][0] == {
        "lsn": 3, "invariant": "I1", "pod": "default/p3", "node": "n1",
        "text": "cpu: 800 + 800 of 1000",
    }  # fmt: skip


def test_a_folder_without_a_journal_and_a_damaged_journal_are_wrong_input(run, journal, tmp_path):
    missing = run("check", str(tmp_path))
    out = journal(of_node(1))
    (segment,) = (out / "journal").glob("*.segment")
    segment.write_bytes(b"x" + segment.read_bytes())

    damaged = run("check", str(out))

    assert (missing.exit_code, damaged.exit_code) == (2, 2)
    assert "holds no journal" in missing.stderr
    assert "damaged at offset 0: its header is not that of a journal" in damaged.stderr
