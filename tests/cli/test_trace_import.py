"""`roadstead trace import`: every format from the command line, its help, report and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadstead.cli.trace_import import IMPORT_COMMANDS
from roadstead.cli.trace_progress import shown_steps
from roadstead.fleet.trace_file import read_trace
from tests.cli.conftest import Run
from tests.trace_sources import MAPPING, SWF, write, write_sources


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, list[object]]:
    return write_sources(tmp_path)


NAMES = [command.name for command in IMPORT_COMMANDS]


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
def test_the_help_of_every_format_has_the_trace_s_address_and_an_example(
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


def test_omitted_rows_are_listed_with_counts_and_the_first_row(run: Run, tmp_path: Path) -> None:
    rows = "at,cpus\n0,1\n1,\n2,\n-5,1\n"
    table, mapping = write(tmp_path / "t.csv", rows), write(tmp_path / "m.yaml", MAPPING)
    call = ("trace", "import", "table", table, "--mapping", mapping, "-o", tmp_path / "o")

    report = json.loads(run(*call, "--format", "json").stdout)

    assert report["leftOut"] == [
        {"reason": "no request", "rows": 2, "first": f"{table}: line 3"},
        {"reason": "negative arrival", "rows": 1, "first": f"{table}: line 5"},
    ]
    assert (report["rows"], report["pods"], report["nodes"]) == (4, 1, 2)
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
    stderr = run("trace", "import", "swf", *sources["swf"], "-o", tmp_path / "t").stderr

    assert stderr.splitlines() == ["reading: 100%", "sorting", "writing: 100%"]


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
