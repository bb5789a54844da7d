import json
import re
import shutil
import struct
import zlib
from pathlib import Path

import pytest
from click.exceptions import Exit
from click.testing import CliRunner

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.api.run_check import RunCheck
from roadstead.cli import check_simulated
from roadstead.cli.main import build_cli
from roadstead.invariants.simulated_rows import RunViolation
from roadstead.journal import JournalRecord, RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.files import FileJournal
from roadstead.journal.headers import FINISHED, segment_name
from roadstead.journal_copy.folder import INCOMPLETE
from tests.builders import node, pod
from tests.cli import manifests
from tests.cli.manifests import write

FORMAT_1 = Path(__file__).parents[1] / "journal" / "format_1"


@pytest.fixture
def journal(tmp_path):
    """Write records into the journal of an output folder; return the folder."""

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


def test_an_incomplete_copy_of_a_journal_is_not_checked(run, journal):
    out = journal(of_node(1))
    (out / "journal" / INCOMPLETE).touch()

    result = run("check", str(out))

    assert result.exit_code == 2
    assert "is a copy that lacks records of its journal: check the journal" in result.stderr


def test_a_journal_without_violations_is_reported_as_such(run, journal):
    out = journal(of_node(1), bind(2, "default/a", 500), bind(3, "default/b", 500))

    result = run("check", str(out))

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Records: 2 bind, 1 node",
        "2 binds checked: no violations",
    ]
    assert run("check", str(out / "journal")).exit_code == 0


def test_each_violation_is_reported_with_record_pod_and_node(run, journal):
    out = journal(of_node(1), *(bind(lsn, f"default/p{lsn}", 800) for lsn in (2, 3, 4)))

    result = run("check", str(out), "--show", "1")

    assert result.exit_code == 1
    assert result.stdout.splitlines()[1:] == [
        "I1  record 3: default/p3 on n1: cpu: 800 + 800 of 1000",
        "... and 1 more (--show 0 for all)",
        "3 binds checked: 2 violations",
    ]
    report = json.loads(run("check", str(out), "--format", "json").stdout)
    assert report["binds_checked"] == report["last_lsn"] - 1 == 3
    assert report["violations"][0] == {
        "lsn": 3, "invariant": "I1", "pod": "default/p3", "node": "n1",
        "text": "cpu: 800 + 800 of 1000",
    }  # fmt: skip


def test_records_that_break_no_rule_by_themselves_are_counted(run, journal):
    small, urgent = pod(cpu=100), pod(cpu=100, priority=1)
    records = [of_node(1)]
    for uid, facts in (("d/a", small), ("d/b", small), ("d/c", urgent)):
        kind = RecordKind.ADD
        records.append(JournalRecord(len(records) + 1, kind, uid, uid, "", facts=facts))
    records.append(bind(5, "d/b", 100))
    records.append(JournalRecord(6, RecordKind.EVICT, "d/b", "d/b", "n1", owner="d/c"))

    out = journal(*records)

    assert run("check", str(out)).stdout.splitlines()[1:] == [
        "Evictions: 1, 0 beyond a disruption budget; 1 preemptors wait at the end",
        "Order: 1 binds while an identical pod with precedence waited",
        "1 binds checked: no violations",
    ]
    report = json.loads(run("check", str(out), "--format", "json").stdout)
    assert report["counts"] == {"evictions": 1, "preemptors_waiting": 1, "overtaken": 1}


def test_a_folder_without_a_journal_is_an_input_error(run, tmp_path):
    missing = run("check", str(tmp_path))

    assert missing.exit_code == 2
    assert "holds no journal and no simulated runs (roadstead schedule --output" in missing.stderr


def test_a_finished_run_whose_journal_has_only_foreign_files_lacks_its_records(run, tmp_path):
    (tmp_path / FINISHED).touch()
    (tmp_path / "other.segment").touch()

    result = run("check", str(tmp_path))

    assert result.exit_code == 1
    assert f"{segment_name(1)}: the run is finished, but the end record is" in result.stdout


def test_a_journal_of_a_newer_format_is_an_input_error(run, journal):
    out = journal(of_node(1))
    (segment,) = (out / "journal").glob("*.segment")
    data = bytearray(segment.read_bytes())
    struct.pack_into("<I", data, 8, 9)
    struct.pack_into("<I", data, 32, zlib.crc32(data[:32]))
    segment.write_bytes(data)

    result = run("check", str(out))

    assert result.exit_code == 2
    assert "in format 9 by a newer release of Roadstead" in result.stderr


def test_a_damaged_beginning_is_left_out_with_its_position(run, journal):
    out = journal(of_node(1))
    (segment,) = (out / "journal").glob("*.segment")
    segment.write_bytes(b"x" + segment.read_bytes())

    damaged = run("check", str(out))

    assert damaged.exit_code == 1
    assert f"Left out: {segment.name}: its header is not that of a journal; left" in damaged.stdout


def schedule(folder, *more):
    """Return the output of a run of ten pods."""
    write(folder / "nodes.json", *(manifests.node(f"n-{n}", cpu="2") for n in range(3)))
    write(folder / "pods.json", *(manifests.pod(f"p-{n}", "500m") for n in range(10)))
    inputs = ("--cluster", folder / "nodes.json", "--pods", folder / "pods.json")
    asked = ("schedule", *inputs, "--runtime", "inline", "--output", folder / "out", *more)
    done = CliRunner().invoke(build_cli(ActorLauncher), [str(each) for each in asked])
    assert done.exit_code == 0
    return folder / "out"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the output of a run, with its journal."""
    return schedule(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def out(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "out")


def segment_of(out):
    (segment,) = (out / "journal").glob("*.segment")
    return segment


def test_an_output_names_a_journal_that_is_stored_elsewhere(run, tmp_path):
    out = schedule(tmp_path, "--journal", tmp_path / "elsewhere")
    report = json.loads(run("check", out, "--format", "json").stdout)
    assert report["placements_compared"] == 10

    rows = json.loads((out / "placements.json").read_text())
    (out / "placements.json").write_text(json.dumps(rows[1:]))
    result = run("check", out)
    assert result.exit_code == 1
    assert f"I9  {rows[0]['pod']} on " in result.stdout

    shutil.rmtree(tmp_path / "elsewhere")
    gone = run("check", out)
    assert gone.exit_code == 2
    assert f"{tmp_path / 'elsewhere'}: holds no journal" in gone.stderr


def test_a_finished_run_has_an_end_record_and_the_placements_of_its_journal(run, out):
    result = run("check", out)

    assert result.exit_code == 0
    end, compared, checked = result.stdout.splitlines()[1:]
    assert re.fullmatch(r"End: \d+ records, digest [0-9a-f]{16}", end)
    assert compared == "10 bound pods compared with the written placements"
    assert checked == "10 binds checked: no violations"
    report = json.loads(run("check", out / "journal", "--format", "json").stdout)
    assert report["end"]["records"] == report["last_lsn"]
    assert (report["left_out"], report["placements_compared"]) == ([], 10)


def test_one_changed_bit_near_the_end_is_reported(run, out):
    segment = segment_of(out)
    data = bytearray(segment.read_bytes())
    data[-40] ^= 1
    segment.write_bytes(data)

    result = run("check", out)

    assert result.exit_code == 1
    assert re.search(
        rf"Left out: {segment.name}: a torn end; left out from offset \d+: 45 bytes",
        (result.stdout),
    )


def test_damage_in_a_group_confirmed_by_a_mark_has_file_offset_and_record(run, out):
    segment = segment_of(out)
    data = bytearray(segment.read_bytes())
    data[-400] ^= 1
    segment.write_bytes(data)

    report = json.loads(run("check", out, "--format", "json").stdout)

    (left_out,) = report["left_out"]
    assert left_out["name"] == segment.name
    assert left_out["offset"] + left_out["size_bytes"] == len(data)
    assert left_out["lsn"] == report["last_lsn"] + 1
    assert left_out["was_durable"]


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9, 0.99])
def test_a_truncated_journal_is_reported(run, out, share):
    segment = segment_of(out)
    data = segment.read_bytes()
    segment.write_bytes(data[: int(len(data) * share)])

    result = run("check", out, "--show", "0")

    assert result.exit_code == 1
    missing = result.stdout.count("in placements.json, but not in the journal")
    assert missing == 10 - int(re.search(r"(\d+) bound pods compared", result.stdout)[1])


def test_a_journal_truncated_between_two_frames_is_reported(run, out):
    segment = segment_of(out)
    data = segment.read_bytes()
    segment.write_bytes(data[:-45])

    result = run("check", out)

    assert result.exit_code == 1
    assert (
        "the run is finished, but the end record is missing: later records are lost"
        in result.stdout
    )


def test_placements_that_differ_from_the_journal_are_reported_one_by_one(run, out):
    path = out / "placements.json"
    rows = json.loads(path.read_text())
    gone, moved = rows.pop(0), rows[0]
    was, moved["node"] = moved["node"], "elsewhere"
    rows.append({"pod": "default/more", "uid": "more", "node": "n-1"})
    path.write_text(json.dumps(rows))

    result = run("check", out)

    assert result.exit_code == 1
    lines = set(result.stdout.splitlines())
    assert f"I9  {gone['pod']} on {gone['node']}: in the journal, but not in {path.name}" in lines
    there = f"on this node in {path.name}, on {was} in the journal"
    assert f"I9  {moved['pod']} on elsewhere: {there}" in lines
    assert f"I9  default/more on n-1: in {path.name}, but not in the journal" in lines


@pytest.mark.parametrize("name", ["placements.json", "placements.parquet"])
@pytest.mark.parametrize("data", [None, b"", b"[{}]", b"[1, 2"])
def test_unreadable_placements_are_reported(run, out, name, data):
    if data is None:
        (out / name).unlink()
    else:
        (out / name).write_bytes(data)

    result = run("check", out)

    assert result.exit_code == 1
    assert f"I9  {name}: cannot be read: " in result.stdout


def test_the_output_of_an_earlier_run_is_not_compared_with_a_resumed_journal(run, out):
    (out / "journal" / "finished").unlink()
    (out / "placements.json").write_text("[]")

    result = run("check", out)

    assert result.exit_code == 0
    assert "compared" not in result.stdout


def test_a_journal_of_an_earlier_release_is_compared_with_its_placements(run, tmp_path):
    out = shutil.copytree(FORMAT_1 / "run", tmp_path / "out")
    whole = run("check", out)
    segment = segment_of(out)
    data = bytearray(segment.read_bytes())
    data[-40] ^= 1
    segment.write_bytes(data)

    spoiled = run("check", out)

    assert (whole.exit_code, spoiled.exit_code) == (0, 1)
    assert "5 bound pods compared with the written placements" in whole.stdout
    assert "a torn end; left out from offset" in spoiled.stdout
    assert "but not in the journal" in spoiled.stdout


def test_the_violations_of_a_simulated_run_that_are_not_shown_are_counted(monkeypatch, capsys):
    found = tuple(RunViolation("once", f"pod {number}", "is twice") for number in range(3))
    monkeypatch.setattr(check_simulated, "check_folder", lambda run: RunCheck(run, 9, found))

    with pytest.raises(Exit):
        check_simulated.check_simulated([Path("run")], 1, "text")

    assert capsys.readouterr().out.splitlines() == [
        "once  pod 0: is twice",
        "... and 2 more (--show 0 for all)",
        "run: 9 pods checked: 3 violations",
    ]
