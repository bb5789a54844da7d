"""`roadstead trace`: the import of openb, and the contents of a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from roadstead.fleet.openb import import_openb
from roadstead.fleet.trace import Trace, TraceBuilder
from roadstead.fleet.trace_file import read_trace, trace_digest, write_trace
from tests.cli.conftest import Run

NODES = """sn,cpu_milli,memory_mib,gpu,model
n-0,32000,262144,2,T4
n-1,64000,131072,0,
"""
HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
PODS = HEADER + "p-0,6000,12288,1,460,,LS,Running,10,86410,10\np-1,500,1024,0,0,,BE,Pending,20,,\n"


@pytest.fixture
def openb(tmp_path: Path) -> Path:
    folder = tmp_path / "openb"
    folder.mkdir()
    (folder / "openb_node_list_all_node.csv").write_text(NODES)
    (folder / "openb_pod_list_default.csv").write_text(PODS)
    (folder / "openb_pod_list_one.csv").write_text(PODS[: PODS.index("p-1")])
    return folder


def same(one: Trace, other: Trace) -> bool:
    return trace_digest(one) == trace_digest(other)


def test_import_writes_the_trace_and_prints_its_facts(
    run: Run, openb: Path, tmp_path: Path
) -> None:
    path = tmp_path / "o.trace"

    result = run("trace", "import", "openb", openb, "-o", path)

    assert result.exit_code == 0
    assert same(read_trace(path), import_openb(openb))
    assert result.stdout == run("trace", "show", path).stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    # A value that is too long for the line is printed below its name.
    lines = result.stdout.replace("\n  ", "  ").splitlines()
    facts = dict(line.split("  ", 1) for line in lines)
    assert {name: text.strip() for name, text in facts.items()} == {
        "source": "openb default",
        "nodes": "2 of 2 shapes in 2 zones",
        "pods": "2 of 2 shapes",
        "arrivals": "over 0.0 days; 1 of the pods are deleted later",
        "alibabacloud.com/gpu-milli": "2 allocatable, 0.5 requested",
        "cpu": "96 cores allocatable, 6.5 cores requested",
        "memory": "384 GiB allocatable, 13 GiB requested",
        "content sha256": trace_digest(import_openb(openb)),
    }


def test_the_error_for_missing_openb_files_names_their_source(run: Run) -> None:
    help_text = run("trace", "import", "openb", "--help").stdout

    assert "alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023/csv" in help_text


def test_another_list_of_pods_can_be_named(run: Run, openb: Path, tmp_path: Path) -> None:
    run("trace", "import", "openb", openb, "-o", tmp_path / "o", "--pods-list", "one")

    assert same(read_trace(tmp_path / "o"), import_openb(openb, "one"))


@pytest.mark.parametrize("name", ["openb.yaml", "openb.json"])
def test_manifests_written_on_request_give_the_same_run(
    run: Run, openb: Path, tmp_path: Path, name: str
) -> None:
    trace, manifests = tmp_path / "o.trace", tmp_path / name
    run("trace", "import", "openb", openb, "-o", trace, "--manifests", manifests)
    text = manifests.read_text()

    assert yaml.safe_load(text)["kind"] == "List"
    assert text.startswith("{") == (name == "openb.json")
    placed = []
    for number, source in enumerate((["--trace", trace], ["--cluster", manifests])):
        out = tmp_path / f"out-{number}"
        assert run("schedule", *source, "--output", out).exit_code == 0
        placed.append(json.loads((out / "placements.json").read_text()))
    assert placed[0] == placed[1]
    assert len(placed[0]) == 2


def test_an_empty_trace_has_facts_as_well(run: Run, tmp_path: Path) -> None:
    write_trace(tmp_path / "t", TraceBuilder("nothing").build())

    result = run("trace", "show", tmp_path / "t")

    assert result.exit_code == 0
    assert "0 of 0 shapes" in result.stdout


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["show", "none"], "none: cannot be read: No such file or directory"),
        (["show", "openb/openb_pod_list_one.csv"], "is not a trace"),
        (["import", "openb", "none", "-o", "t"], "none/openb_node_list_all_node.csv: cannot be"),
        (["import", "openb", "openb", "-o", "t", "--pods-list", "x"], "openb_pod_list_x.csv: "),
        (["import", "openb", "openb", "-o", "no/t"], "no/t: cannot be written"),
        (["import", "openb", "openb", "-o", "t", "--manifests", "no/m"], "no/m: cannot be written"),
        (["import", "openb", "openb"], "Missing option '-o'"),
        (["import", "borg", "openb"], "No such command 'borg'"),
    ],
)
def test_unreadable_or_unwritable_files_exit_2(
    run: Run, openb: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], text: str
) -> None:
    monkeypatch.chdir(openb.parent)

    result = run("trace", *args)

    assert result.exit_code == 2
    assert text in result.stderr
    assert result.stdout == ""
