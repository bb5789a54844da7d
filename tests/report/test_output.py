"""The output directory: complete, equal bytes for equal runs, never replacing foreign files."""

import hashlib
import json
from dataclasses import replace

import pytest

from roadstead.protocol.errors import InputError
from roadstead.report import output
from roadstead.report.output import check_directory, write_output
from roadstead.report.result import PreemptedPod
from tests.tables import read_rows, read_table

FILES = {
    *("placements.json", "placements.parquet", "pending.json", "pending.parquet"),
    *("preempted.json", "preempted.parquet", "nodes.json", "nodes.parquet"),
    *("not_created.json", "not_created.parquet", "devices.json", "devices.parquet"),
    *("run.json", "summary.json"),
}


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_output_has_all_files_and_no_others(tmp_path, result):
    write_output(tmp_path / "out", result)
    assert contents(tmp_path / "out").keys() == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_placements_are_sorted_by_pod_in_both_formats(tmp_path, result):
    write_output(tmp_path / "out", result)
    rows = load(tmp_path / "out" / "placements.json")
    assert rows == [
        {"pod": "default/p-0", "uid": "u-0", "node": "n-0"},
        {"pod": "default/p-1", "uid": "u-1", "node": "n-1"},
        {"pod": "default/p-2", "uid": "u-2", "node": "n-0"},
    ]
    assert read_rows(tmp_path / "out" / "placements.parquet") == rows


def test_preempted_pods_are_sorted_by_pod_in_both_formats(tmp_path, result):
    gone = [PreemptedPod(f"default/g-{i}", f"u-g{i}", "n-0", "default/p-2") for i in (1, 0)]
    write_output(tmp_path / "out", replace(result, preempted=tuple(gone)))
    rows = load(tmp_path / "out" / "preempted.json")
    assert rows == [
        {"pod": "default/g-0", "uid": "u-g0", "node": "n-0", "preemptor": "default/p-2"},
        {"pod": "default/g-1", "uid": "u-g1", "node": "n-0", "preemptor": "default/p-2"},
    ]
    assert read_rows(tmp_path / "out" / "preempted.parquet") == rows
    assert load(tmp_path / "out" / "summary.json")["preempted"] == 2


def test_pending_pods_have_message_reasons_and_plugins_in_both_formats(tmp_path, result):
    write_output(tmp_path / "out", result)
    rows = load(tmp_path / "out" / "pending.json")
    assert [row["pod"] for row in rows] == ["default/p-3", "default/p-4"]
    assert rows[1] == {
        "pod": "default/p-4",
        "uid": "u-4",
        "message": "0/3 nodes are available: 3 Insufficient cpu.",
        "reasons": [{"reason": "Insufficient cpu", "nodes": 3}],
        "plugins": ["Fit"],
    }
    assert read_rows(tmp_path / "out" / "pending.parquet") == rows


def test_node_files_have_allocatable_before_and_after_in_both_formats(tmp_path, result):
    write_output(tmp_path / "out", result)
    first = load(tmp_path / "out" / "nodes.json")[0]
    assert (first["node"], first["zone"]) == ("n-0", "zone-a")
    assert first["after"] == {
        "cpu": 2000,
        "memory": 2 << 30,
        "example.com/gpu-milli": 500,
        "pods": 2,
    }
    row = read_rows(tmp_path / "out" / "nodes.parquet")[1]
    assert (row["cpu_allocatable"], row["cpu_before"], row["cpu_after"]) == (4000, 500, 1500)


def test_the_summary_has_figures_versions_and_seed(tmp_path, result):
    write_output(tmp_path / "out", result)
    document = load(tmp_path / "out" / "summary.json")
    assert (document["placed"], document["pending"], document["pods_per_s"]) == (3, 2, 10.0)
    assert (document["seed"], document["versions"]) == (7, {"roadstead": "0.1.0"})


def test_the_run_file_has_everything_that_a_repetition_needs(tmp_path, result):
    write_output(tmp_path / "out", result)
    document = load(tmp_path / "out" / "run.json")
    placements = (tmp_path / "out" / "placements.json").read_bytes()
    assert document["command"] == ["roadstead", "schedule"]
    assert document["inputs"] == [{"name": "cluster.yaml", "sha256": "ab" * 32}]
    assert (document["seed"], document["settings"]) == (7, {"runtime": "inline"})
    assert document["config"] == {"kind": "KubeSchedulerConfiguration"}
    assert document["output_sha256"]["placements.json"] == hashlib.sha256(placements).hexdigest()


def test_equal_decisions_give_equal_bytes_in_any_order_at_any_time(tmp_path, result):
    again = replace(
        result,
        placements=result.placements[::-1],
        pending=result.pending[::-1],
        elapsed_s=99.0,
        scheduling_s=98.0,
    )
    write_output(tmp_path / "one", result)
    write_output(tmp_path / "two", again)
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    differing = {name for name in FILES if one[name] != two[name]}
    assert differing == {"summary.json"}


def test_an_empty_run_leaves_readable_tables(tmp_path, empty_result):
    write_output(tmp_path / "out", empty_result)
    assert load(tmp_path / "out" / "placements.json") == []
    pending = read_table(tmp_path / "out" / "pending.parquet")
    assert pending.column_names == ["pod", "uid", "message", "reasons", "plugins"]


def test_an_earlier_run_is_overwritten(tmp_path, result, empty_result):
    write_output(tmp_path / "out", result)
    write_output(tmp_path / "out", empty_result)
    assert load(tmp_path / "out" / "summary.json")["placed"] == 0
    assert contents(tmp_path / "out").keys() == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_other_files_beside_an_earlier_run_are_kept(tmp_path, result):
    write_output(tmp_path / "out", result)
    (tmp_path / "out" / "notes.txt").write_text("mine")
    write_output(tmp_path / "out", result)
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_missing_parents_are_created_and_an_empty_directory_is_used(tmp_path, result):
    write_output(tmp_path / "a" / "b", result)
    (tmp_path / "empty").mkdir()
    write_output(tmp_path / "empty", result)
    assert contents(tmp_path / "a" / "b").keys() == contents(tmp_path / "empty").keys() == FILES


FOREIGN = {
    "no run file": ("thesis.txt", "twenty years of work"),
    "run file of another": ("run.json", '{"format": "sprint"}'),
    "run file no object": ("run.json", "[1, 2]"),
    "run file no JSON": ("run.json", "{"),
    "run file nested too deep": ("run.json", "[" * 100_000),
}


@pytest.mark.parametrize(("name", "text"), FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_directory_is_refused_and_unchanged(tmp_path, result, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"holds files, but no run\.json of Roadstead"):
        write_output(tmp_path, result)
    assert contents(tmp_path) == {name: text.encode()}


def test_a_file_in_place_of_the_directory_is_refused(tmp_path, result):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="out: is not a directory"):
        write_output(tmp_path / "out", result)


def test_an_unreadable_directory_is_refused(tmp_path, monkeypatch):
    def denied(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "iterdir", denied)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        check_directory(tmp_path)


def test_an_unwritable_place_is_refused(tmp_path, result):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written|is not a directory"):
        write_output(tmp_path / "file" / "out", result)


def test_a_run_that_can_not_be_written_completely_leaves_no_files(tmp_path, result, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(tmp_path), "write_text", full)
    with pytest.raises(InputError, match="out: cannot be written: No space left on device"):
        write_output(tmp_path / "out", result)
    assert list(tmp_path.iterdir()) == []


def test_the_summary_is_absent_while_files_of_two_runs_are_mixed(
    tmp_path, result, empty_result, monkeypatch
):
    write_output(tmp_path / "out", result)
    put, moved = output.os.replace, []

    def fail_later(source, target):
        if len(moved) == 3:
            raise OSError(5, "Input/output error")
        moved.append(target.name)
        put(source, target)

    monkeypatch.setattr(output.os, "replace", fail_later)
    with pytest.raises(InputError):
        write_output(tmp_path / "out", empty_result)
    assert "summary.json" not in contents(tmp_path / "out")
    monkeypatch.undo()
    write_output(tmp_path / "out", empty_result)
    assert contents(tmp_path / "out").keys() == FILES
