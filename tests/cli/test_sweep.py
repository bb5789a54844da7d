"""`roadstead sweep` and `roadstead compare` over small scenarios."""

import json

import pytest
from click.testing import CliRunner

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.cli.main import build_cli
from roadstead.cli.sweep_progress import SweepProgress
from roadstead.cli.sweep_run import short_keys
from tests.scenario.files import NAMED_POD, scenario, written

CONTAINER = {"name": "main", "image": "task:1", "resources": {"requests": {"cpu": "500m"}}}
TASKS = {
    "name": "tasks",
    "duration": "3h",
    "arrivals": {"poisson": {"per_hour": 60}},
    "pods": [{"template": {**NAMED_POD, "spec": {"containers": [CONTAINER]}}}],
}
BODY = f"workload: [{json.dumps(TASKS)}]\nhorizon: 2h\nseeds: 2\n"
RATES = ("--vary", "workload.tasks.arrivals.poisson.per_hour=20,60")


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.fixture
def path(tmp_path):
    return written(tmp_path, scenario(BODY))


@pytest.fixture
def run():
    """Call a command; an error that is not an exit fails the test."""

    def call(*args):
        arguments = list(map(str, args))
        return CliRunner().invoke(build_cli(ActorLauncher), arguments, catch_exceptions=False)

    return call


def test_columns_have_the_ends_of_keys_that_are_unique():
    assert short_keys(["a.x", "b.x", "b.y"]) == ["a.x", "b.x", "y"]
    assert short_keys(["config", "scheduler.config"]) == ["config", "scheduler.config"]


def test_a_sweep_plays_each_combination_with_each_seed(run, path, tmp_path):
    result = run("sweep", path, *RATES, "--jobs", 1, "-o", tmp_path / "out", "--format", "json")

    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    key = "workload.tasks.arrivals.poisson.per_hour"
    assert [(row["values"][key], row["seed"]) for row in found["runs"]] == [
        (20, 0),
        (20, 1),
        (60, 0),
        (60, 1),
    ]
    few, many = (each["metrics"]["utilization cpu"] for each in found["points"])
    assert few["low"] <= few["median"] <= few["high"]
    assert few["median"] < many["median"]
    assert json.loads((tmp_path / "out" / "sweep.json").read_text()) == found
    assert len((tmp_path / "out" / "sweep.csv").read_text().splitlines()) == 5
    assert not (tmp_path / "out" / "runs").exists(), "tables are kept only on request"


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        (("--vary", "fleet.0.generate.node=3"), "near: nodes"),
        (("--vary", "nodes=3"), "near: fleet.0.generate.nodes"),
        (("--vary", "fleet.0.generate.nodes=3,0"), "must be at least 1"),
        (("--vary", "config=default,binpak"), "binpak"),
        (("--vary", "seeds=1", "--vary", "seeds=2"), "is varied twice"),
        (("--tables",), "needs --output"),
        (("--resume",), "needs the --output folder"),
    ],
)
def test_wrong_input_is_refused_before_anything_runs(run, path, flags, rule):
    result = run("sweep", path, *flags)

    assert result.exit_code == 2
    assert rule in result.stderr
    assert "runs done" not in result.stderr


def test_columns_have_the_last_parts_of_keys_that_make_them_unique():
    keys = ["sample", "workload.a.sample", "workload.b.sample", "fleet.sample", "horizon"]

    assert short_keys(keys) == ["sample", "a.sample", "b.sample", "fleet.sample", "horizon"]


def test_a_stopped_sweep_continues_to_the_same_files(run, path, tmp_path, monkeypatch):
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    assert run("sweep", path, *RATES, "--jobs", 1, "-o", whole).exit_code == 0
    show = SweepProgress.__call__

    def interrupt(self, counts, last):
        show(self, counts, last)
        if counts.done == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SweepProgress, "__call__", interrupt)
        CliRunner().invoke(
            build_cli(ActorLauncher), ["sweep", str(path), *RATES, "--jobs", "1", "-o", str(halves)]
        )
    assert len((halves / "results.jsonl").read_text().splitlines()) == 3, "header and two runs"
    again = run("sweep", path, *RATES, "--jobs", 1, "-o", halves)
    assert again.exit_code == 2
    assert "--resume" in again.stderr

    assert "holds other files" in run("sweep", path, "-o", whole).stderr

    resumed = run("sweep", path, *RATES, "--jobs", 1, "-o", halves, "--resume")

    assert resumed.exit_code == 0, resumed.stderr
    for name in ("sweep.json", "sweep.csv"):
        assert (halves / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.ray
def test_files_are_the_same_for_one_job_and_two(run, path, tmp_path):
    for jobs in (1, 2):
        result = run("sweep", path, *RATES, "--jobs", jobs, "-o", tmp_path / str(jobs))
        assert result.exit_code == 0, result.stderr

    for name in ("sweep.json", "sweep.csv"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_metrics_of_a_run_are_those_of_its_tables(run, path, tmp_path):
    assert run("simulate", path, "-o", tmp_path / "tables").exit_code == 0
    assert run("sweep", path, "--jobs", 1, "-o", tmp_path / "swept", "--tables").exit_code == 0

    result = run("compare", tmp_path / "tables", tmp_path / "swept", "--format", "json")

    metrics = json.loads(result.stdout)["metrics"]
    assert {each["metric"] for each in metrics} > {"wait_p99_s tasks", "utilization cpu"}
    assert [each["metric"] for each in metrics if each["is_different"]] == []
    assert (tmp_path / "swept" / "runs" / "001" / "pods").is_dir()


def test_the_tables_of_one_run_of_a_sweep_answer_questions(run, path, tmp_path):
    assert run("sweep", path, "--jobs", 1, "-o", tmp_path / "swept", "--tables").exit_code == 0
    first = tmp_path / "swept" / "runs" / "001"

    name = run("query", first, "SELECT uid FROM pods LIMIT 1", "--format", "csv").stdout.split()[1]
    why = run("why", first, name)

    assert "in 001: requests" in why.stdout
    assert "holds no simulated runs" in why.stderr
    assert run("check", tmp_path / "swept" / "runs").exit_code == 0


def test_two_configurations_are_compared_on_the_same_seeds(run, path):
    result = run("compare", path, "--a", "default", "--b", "binpack", "--jobs", 1)

    assert result.exit_code == 0, result.stderr
    assert "A: default, B: binpack; 2 pairs" in result.stdout
    assert "All metrics are the same in every pair." in result.stdout


def test_one_seed_gives_no_interval(run, path):
    result = run("compare", path, "--a", "default", "--b", "binpack", "--seeds", 1, "--jobs", 1)

    assert "One seed: no interval is possible" in result.stdout


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        ((), "--a: is missing"),
        (("--a", "default", "--b", "default"), "is the same configuration"),
        (("--a", "default", "--b", "nothing"), "nothing"),
    ],
)
def test_a_comparison_needs_two_configurations(run, path, flags, rule):
    result = run("compare", path, *flags)

    assert result.exit_code == 2
    assert rule in result.stderr


def test_a_folder_without_runs_is_refused(run, tmp_path):
    result = run("compare", tmp_path, tmp_path)

    assert result.exit_code == 2
    assert "holds no run of" in result.stderr


@pytest.mark.parametrize(
    "flags",
    [("--seeds", 2), ("--jobs", 1), ("--resume",), ("--tables",), ("--plugin-b", "mine.py")],
)
def test_options_of_a_sweep_have_no_use_with_two_finished_runs(run, tmp_path, flags):
    result = run("compare", tmp_path, tmp_path, *flags)

    assert result.exit_code == 2
    assert "has no use with two finished runs" in result.stderr


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("sweep", ("--seeds", 1)),
        ("sweep", ("--seeds", 1, "--tables", "-o", "out")),
        ("compare", ("--seeds", 1, "--a", "default", "--b", "binpack")),
    ],
)
def test_a_run_beyond_its_memory_ends_the_sweep(run, tmp_path, monkeypatch, command, flags):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, scenario(BODY + "limits: {memory_mib: 64}\n"))

    result = run(command, path, *flags, "--jobs", 1)

    assert result.exit_code != 0
    assert "may use 64 MiB (limits.memory_mib)" in " ".join(result.stderr.split())
