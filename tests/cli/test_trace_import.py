"""`roadstead trace import`: every format from the command line, its help, report and errors."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import msgpack
import pytest

from roadstead.cli.trace_import import FORMATS
from roadstead.cli.trace_progress import shown_steps
from roadstead.fleet.trace_file import read_trace
from tests.cli.conftest import Run

SWF = "; MaxNodes: 2\n; MaxProcs: 8\n1 0 0 60 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n"
MAPPING = """
apiVersion: roadstead.dev/v1
kind: TraceMapping
pods:
  arrival: {column: at}
  duration: {value: 1, unit: h}
  cpu: {column: cpus}
nodes:
  count: {value: 2}
  cpu: {value: 4}
"""
GOOGLE_2019 = [
    {"time": 0, "type": kind, "collection_id": 1, "resource_request": {"cpus": 0.1, "memory": 0.1}}
    for kind in ("SUBMIT", "SCHEDULE")
]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def azure(path: Path) -> Path:
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd, ssd, nic);"
            "CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime, endtime);"
            "INSERT INTO vmType VALUES (1, 1, 0, 0.5, 0.5, 0, 0, 0);"
            "INSERT INTO vm VALUES (1, 1, 1, 0, 0.0, 1.0);"
        )
    return path


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, list[object]]:
    """Write a source of one pod for each format; return the arguments of its command."""
    google, alibaba, gpu, philly = (tmp_path / name for name in ("g", "a", "p", "y"))
    write(google / "machine_events" / "part-0.csv", "0,1,0,x,0.5,0.5\n")
    events = "".join(f"1,,2,0,,{kind},u,0,0,0.1,0.1,,\n" for kind in (0, 1))
    write(google / "task_events" / "part-0.csv", events)
    write(google / "machine_events.json", '{"time": 0, "machine_id": 1, "type": 1}\n')
    write(google / "instance_events.json", "\n".join(map(json.dumps, GOOGLE_2019)))
    write(alibaba / "machine_meta.csv", "m,0,1,1,96,100,USING\n")
    write(alibaba / "batch_task.csv", "t,1,j,1,Terminated,5,9,100,1.5\n")
    write(gpu / "pai_machine_spec.csv", "m,T4,96,512,2\n")
    write(gpu / "pai_task_table.csv", "j,t,1,Terminated,5,9,600,30,50,T4\n")
    write(philly / "cluster_machine_list", "machineId,number of GPUs, single GPU mem\nm,8, 24GB\n")
    detail = [{"ip": "m", "gpus": ["gpu0"]}]
    attempt = {"start_time": "2017-10-07 01:12:09", "end_time": None, "detail": detail}
    job = {"jobid": "j", "submitted_time": "2017-10-07 01:11:39", "attempts": [attempt]}
    write(philly / "cluster_job_log", json.dumps([job]))
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    event = {"ts": 5, "applied_objs": [pod], "deleted_objs": []}
    simkube = tmp_path / "t.sktrace"
    simkube.write_bytes(msgpack.packb({"version": 2, "events": [event], "pod_lifecycles": {}}))
    table, mapping = (
        write(tmp_path / "t.csv", "at,cpus\n0,1\n"),
        write(tmp_path / "m.yaml", MAPPING),
    )
    return {
        "swf": [write(tmp_path / "log.swf", SWF)],
        "azure-packing": [azure(tmp_path / "z.sqlite"), "--nodes", "2"],
        "google-2011": [google],
        "google-2019": [google],
        "alibaba-2018": [alibaba],
        "alibaba-gpu-2020": [gpu],
        "philly": [philly],
        "simkube": [simkube],
        "table": [table, "--mapping", mapping],
    }


NAMES = [command.name for command in FORMATS]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_imported_and_can_be_shown_and_counted(
    run: Run, sources: dict[str, list[object]], tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out.trace"

    result = run("trace", "import", name, *sources[name], "-o", out)

    assert result.exit_code == 0, result.stderr
    assert "1 pods of 1 classes" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert len(read_trace(out).pod_names) == 1
    assert run("trace", "show", out).exit_code == 0
    assert "Pods by class" in run("trace", "stats", out).stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_every_format_says_where_the_trace_is_and_shows_a_call(
    run: Run, name: str
) -> None:
    text = run("trace", "import", name, "--help").stdout

    assert "Examples:" in text
    assert f"roadstead trace import {name}" in text
    assert "https://" in text or name == "table"


def test_an_imported_trace_can_be_scheduled(
    run: Run, sources: dict[str, list[object]], tmp_path: Path
) -> None:
    run("trace", "import", "swf", *sources["swf"], "-o", tmp_path / "t")

    result = run("schedule", "--trace", tmp_path / "t", "--format", "name")

    assert result.exit_code == 0
    assert "job-1" in result.stdout


def test_what_was_left_out_is_listed_with_counts_and_the_first_row(
    run: Run, tmp_path: Path
) -> None:
    rows = "at,cpus\n0,1\n1,\n2,\n-5,1\n"
    table, mapping = write(tmp_path / "t.csv", rows), write(tmp_path / "m.yaml", MAPPING)
    call = ("trace", "import", "table", table, "--mapping", mapping, "-o", tmp_path / "o")

    told = json.loads(run(*call, "--format", "json").stdout)

    assert told["leftOut"] == [
        {"reason": "no request", "rows": 2, "first": f"{table}: line 3"},
        {"reason": "negative arrival", "rows": 1, "first": f"{table}: line 5"},
    ]
    assert (told["rows"], told["pods"], told["nodes"]) == (4, 1, 2)
    text = run(*call).stdout
    assert "Left out" in text
    assert "no request" in text


def test_a_wrong_cell_stops_or_is_counted(run: Run, tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "at,cpus\n0,1\nsoon,1\n")
    mapping = write(tmp_path / "m.yaml", MAPPING)
    call = ("trace", "import", "table", table, "--mapping", mapping, "-o", tmp_path / "o")

    stopped = run(*call)

    assert stopped.exit_code == 2
    assert f'{table}: line 3: at: "soon" is not a number' in stopped.stderr
    assert not (tmp_path / "o").exists()
    assert "at is not a number" in run(*call, "--on-error", "skip").stdout


def test_progress_is_printed_in_lines_where_there_is_no_terminal(
    run: Run, sources: dict[str, list[object]], tmp_path: Path
) -> None:
    told = run("trace", "import", "swf", *sources["swf"], "-o", tmp_path / "t").stderr

    assert told.splitlines() == ["reading: 100%", "sorting", "writing: 100%"]


def test_lines_of_progress_are_few(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_steps() as report:
        for done in range(1000):
            report("reading", done, 999)

    assert len(capsys.readouterr().err.splitlines()) <= 11


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["swf", "none", "-o", "t"], "none: cannot be read: No such file or directory"),
        (["swf", "log.swf"], "Missing option '-o'"),
        (["swf", "log.swf", "-o", "no/t"], "no/t: cannot be written"),
        (["swf", "log.swf", "-o", "t", "--node-memory", "much"], '--node-memory: "much"'),
        (["swf", "log.swf", "-o", "t", "--node-memory", "0"], '--node-memory: "0" is not'),
        (["swf", "log.swf", "-o", "t", "--sample", "2"], "2.0 is not in the range"),
        (["google-2011", ".", "-o", "t"], "machine_events: has no files part-*.csv*"),
        (["table", "t.csv", "-o", "t"], "Missing option '--mapping'"),
        (["table", "t.csv", "-o", "t", "--mapping", "none"], "none: cannot be read"),
    ],
)
def test_wrong_calls_exit_2(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "log.swf", SWF)

    result = run("trace", "import", *args)

    assert result.exit_code == 2
    assert text in result.stderr
