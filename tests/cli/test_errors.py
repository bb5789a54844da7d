"""Expected errors: one text on standard error, the right exit status, and never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from roadstead.cli.errors import BAD_INPUT, FAILED, UNSUPPORTED, error_text, exit_status
from roadstead.cli.main import build_cli
from roadstead.protocol.errors import InputError, RoadsteadError, UnsupportedError
from roadstead.run import RunInputs, RunOutcome, RunPlan
from tests.cli.conftest import Run
from tests.cli.manifests import node, write
from tests.cli.plain_launcher import PlainLauncher, ReportProgress


class FailingLauncher(PlainLauncher):
    def run(self, inputs: RunInputs, plan: RunPlan, progress: ReportProgress) -> RunOutcome:
        raise RoadsteadError("worker-1 is gone (it had 3 batches)")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "no input given: use --cluster and --pods, or --trace"),
        (["--pods", "p.yaml"], "--pods needs --cluster"),
        (["--trace", "t", "--cluster", "c"], "--trace excludes --cluster and --pods"),
        (["--trace-gpus", "devices", "--cluster", "c"], "--trace-gpus needs --trace"),
        (["--cluster", "-", "--pods", "-"], "only one option can read standard input"),
        (["--cluster", "-", "--config", "-"], "only one option can read standard input"),
        (["--trace", "t", "--config", "c", "--preset", "p"], "exclude each other"),
        (["--trace", "t", "--tie-break", "last"], "'last' is not one of"),
    ],
)
@pytest.mark.parametrize("command", [["schedule"], ["explain", "p"]])
def test_contradictory_flags_exit_2(
    run: Run, command: list[str], args: list[str], text: str
) -> None:
    result = run(*command, *args)

    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--trace", "no.trace"], "no.trace: cannot be read: No such file or directory"),
        (["--cluster", "no.yaml"], "no.yaml: does not exist"),
        (["--cluster", "*.none"], "*.none: matches no file"),
        (["--trace", "t", "--settings", "s.yaml"], "s.yaml: cannot be read: No such file"),
        (["--trace", "t", "--config", "c.yaml"], "c.yaml: cannot be read: No such file"),
        (["--trace", "t", "--config", "bytes"], "bytes: is not UTF-8 text"),
        (["--trace", "t", "--config", "empty"], "empty: "),
        (["--trace", "t", "--preset", "best"], 'preset: "best" is not a preset (there are: '),
        (["--trace", "t", "--batch", "0"], "flags: batch: 0"),
        (["--trace", "bytes"], "bytes: is not a trace (make one with `roadstead trace import`)"),
        (["--cluster", "bad.json"], 'bad.json: Node "n7": status.allocatable.cpu: "12x"'),
        (["--cluster", "bytes"], "bytes: "),
        (["--trace", "t", "--output", "full"], "full: holds files, but no run.json of Roadstead"),
        (["--trace", "t", "--output", "bytes"], "bytes: is not a directory"),
    ],
)
def test_invalid_input_exits_2_with_source_field_and_rule(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bytes").write_bytes(b"\xff\xfe\x00")
    Path("empty").write_bytes(b"")
    Path("full").mkdir()
    Path("full", "mine.txt").write_text("mine")
    write(Path("bad.json"), node("n7", cpu="12x"))

    result = run("schedule", *args)

    assert result.exit_code == 2
    assert result.stderr.startswith(text)
    assert result.stdout == ""


def test_a_pod_that_is_not_supported_exits_3_with_its_name(cluster: str) -> None:
    class Refusing(PlainLauncher):
        def run(self, inputs: RunInputs, plan: RunPlan, progress: ReportProgress) -> RunOutcome:
            raise UnsupportedError("DynamicResources", 'Pod "default/db"', "spec.containers")

    args = ["schedule", "--cluster", cluster]
    result = CliRunner().invoke(build_cli(Refusing), args, catch_exceptions=False)

    assert result.exit_code == 3
    text = 'Pod "default/db": spec.containers: is not supported by the plugin DynamicResources\n'
    assert result.stderr.endswith(text)
    assert result.stdout == ""


def test_a_failed_run_exits_1_and_writes_nothing(cluster: str, tmp_path: Path) -> None:
    args = ["schedule", "--cluster", cluster, "--output", str(tmp_path / "out")]

    result = CliRunner().invoke(build_cli(FailingLauncher), args, catch_exceptions=False)

    assert result.exit_code == 1
    assert result.stderr == "The run failed: worker-1 is gone (it had 3 batches)\n"
    assert not (tmp_path / "out").exists()


def test_a_broken_invariant_is_not_hidden(cluster: str) -> None:
    class Broken(PlainLauncher):
        def run(self, inputs: RunInputs, plan: RunPlan, progress: ReportProgress) -> RunOutcome:
            raise AssertionError("rows disagree")

    with pytest.raises(AssertionError, match="rows disagree"):
        CliRunner().invoke(
            build_cli(Broken), ["schedule", "--cluster", cluster], catch_exceptions=False
        )


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("is wrong"), BAD_INPUT),
        (UnsupportedError("VolumeBinding", "Pod", "spec.volumes"), UNSUPPORTED),
        (RoadsteadError("gone"), FAILED),
    ],
)
def test_each_type_of_error_has_its_exit_status(error: RoadsteadError, status: int) -> None:
    assert exit_status(error) == status


def test_an_unsupported_feature_without_a_pod_is_reported_by_its_field() -> None:
    text = error_text(UnsupportedError("VolumeBinding", "", "profiles[0]"))

    assert text.startswith("profiles[0]: is not supported by the plugin VolumeBinding")


def test_errors_print_nothing_on_standard_output(run: Run, cluster: str) -> None:
    result = run("schedule", "--cluster", cluster, "--pods", "nowhere", "--format", "json")

    assert (result.exit_code, result.stdout) == (2, "")
    with pytest.raises(json.JSONDecodeError):
        json.loads(result.stderr)
