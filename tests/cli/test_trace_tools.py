"""`roadstead trace sample|scale|shift|cut|concat|stats`: calls, results and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.trace_file import read_trace, trace_digest, write_trace
from tests.cli.conftest import Run


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    write_trace(tmp_path / "in.trace", generate_fleet(20, 200, 0))
    return tmp_path / "in.trace"


CALLS = {
    "sample": (["--share", "0.5"], 20, range(95, 150)),
    "scale": (["--by", "2"], 40, range(400, 401)),
    "scale nodes": (["--nodes", "2"], 40, range(200, 201)),
    "scale rate": (["--rate", "1.5"], 20, range(250, 350)),
    "shift": (["--by", "1d12h"], 20, range(200, 201)),
    "cut": (["--from", "10m", "--to", "1d"], 20, range(1, 201)),
    "cut running": (["--from", "10m", "--keep-running"], 20, range(1, 201)),
}


@pytest.mark.parametrize(("name", "call"), CALLS.items(), ids=CALLS)
def test_a_tool_writes_a_trace_and_reports_its_contents(
    run: Run, trace: Path, tmp_path: Path, name: str, call: tuple[list[str], int, range]
) -> None:
    options, nodes, pods = call
    arguments = ("trace", name.split()[0], trace, *options, "-o", tmp_path / "out")

    report = json.loads(run(*arguments, "--format", "json").stdout)

    out = read_trace(tmp_path / "out")
    assert report["sha256"] == trace_digest(out)
    assert (report["nodes"], report["pods"]) == (len(out.node_names), len(out.pod_names))
    assert report["nodes"] == nodes
    assert report["pods"] in pods
    assert report["source"].startswith("generated, seed 0, ")
    assert f"{report['pods']:,} pods, {nodes} nodes" in run(*arguments).stdout


def test_a_trace_can_be_replaced_by_the_output_of_a_tool(run: Run, trace: Path) -> None:
    assert run("trace", "scale", trace, "--by", "2", "-o", trace).exit_code == 0
    assert len(read_trace(trace).pod_names) == 400


@pytest.mark.parametrize("options", [[], ["--merge"], ["--gap", "1h", "--nodes", "first"]])
def test_traces_are_joined(run: Run, trace: Path, tmp_path: Path, options: list[str]) -> None:
    result = run("trace", "concat", trace, trace, "-o", tmp_path / "out", *options)

    assert result.exit_code == 0
    out = read_trace(tmp_path / "out")
    assert (len(out.node_names), len(out.pod_names)) == (20, 400)


def test_a_cut_names_its_times_and_a_trace_without_pods_is_noted(
    run: Run, trace: Path, tmp_path: Path
) -> None:
    cut = ("trace", "cut", trace, "-o", tmp_path / "out", "--from")

    some = run(*cut, "90s", "--to", "1d1h")
    none = run(*cut, "30d")

    assert "cut from 1m30s to 1d1h: " in some.stdout
    assert "no pods" not in some.stderr
    assert none.exit_code == 0
    assert "Note: the trace has no pods." in none.stderr


def test_statistics_are_a_table_and_json(run: Run, trace: Path) -> None:
    text = run("trace", "stats", trace, "--top", "3").stdout

    assert "Pods by class" in text
    assert "… and" in text
    assert max(map(len, text.splitlines())) <= 80
    assert json.loads(run("trace", "stats", trace, "--format", "json").stdout)["pods"] == 200


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["sample", "in.trace", "-o", "t"], "Missing option '--share'"),
        (["sample", "in.trace", "-o", "t", "--share", "0"], "0.0 is not in the range"),
        (["scale", "in.trace", "-o", "t", "--by", "1e9"], "is not in the range"),
        (["shift", "in.trace", "-o", "t", "--by", "soon"], '--by: "soon" is not a duration'),
        (["shift", "in.trace", "-o", "t", "--by", "xd"], '--by: "xd" is not a duration'),
        (["shift", "in.trace", "-o", "t", "--by=-400d"], "would arrive before the start"),
        (["shift", "in.trace", "-o", "t", "--by", "999999d"], "is too long for a duration"),
        (["cut", "in.trace", "-o", "t", "--from=-1s"], "--from: -1s must not be negative"),
        (["cut", "in.trace", "-o", "t", "--from", "2h", "--to", "1h"], "--to: 1h must be after"),
        (["concat", "in.trace", "-o", "t", "--gap=-1s"], "--gap: -1s must not be negative"),
        (["concat", "-o", "t"], "Missing argument 'TRACE...'"),
        (["stats", "none"], "none: cannot be read: No such file or directory"),
        (["stats", "wrong"], "wrong: is not a trace"),
    ],
)
def test_wrong_calls_exit_2(
    run: Run, trace: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], text: str
) -> None:
    monkeypatch.chdir(trace.parent)
    Path("wrong").write_text("no trace")

    result = run("trace", *args)

    assert result.exit_code == 2
    assert text in result.stderr
    assert not Path("t").exists()
