"""Processes of the runs of `roadstead stress`, their kept results, and sweeps that continue."""

import json
import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.actors.runtime.ray_session import RaySession
from roadstead.api.product_runs import settings_of
from roadstead.cli import stress_runs
from roadstead.cli.main import build_cli
from roadstead.cli.stress_options import JobOptions
from roadstead.cli.stress_plan import SweepDefinition
from roadstead.cli.stress_product import PARAMETERS, journals_of
from roadstead.cli.stress_runs import joins_cluster, used_settings
from roadstead.cli.sweep_progress import SweepProgress
from roadstead.lab.studies import Study
from roadstead.lab.sweep import make_sweep
from tests.cli.manifests import node, pod, write

SMALL = (
    *("--vary", "machines=100", "--vary", "horizon_s=300", "--seeds", "2"),
    *("--schedulers", "1,2,3"),
)
HEAVY = (
    *("--preset", "constraint-heavy", "--engine", "virtual", "--seeds", "1"),
    *("--vary", "nodes=16", "--vary", "pods=60", "--batch", "8"),
)
TABLES = ("runs.parquet", "points.json")
"""Files that depend on nothing but the plan of a sweep."""

DEFAULTS = {each.name: each.default for each in PARAMETERS}


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.fixture
def stress():
    """Call the command over real actors; an error that is not an exit fails the test."""

    def call(*args):
        arguments = ["stress", *map(str, args)]
        return CliRunner().invoke(build_cli(ActorLauncher), arguments, catch_exceptions=False)

    return call


def interrupt_at(monkeypatch, done):
    """Interrupt a sweep once this number of its runs has ended."""
    show = SweepProgress.__call__

    def interrupt(self, counts, last):
        show(self, counts, last)
        if counts.done == done:
            raise KeyboardInterrupt

    monkeypatch.setattr(SweepProgress, "__call__", interrupt)


def tables(folder):
    return {name: (folder / name).read_bytes() for name in TABLES}


def rows(folder):
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()[1:]]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--study", "product", "--jobs", "2"), '--jobs: "2" must be 1 with the engine inline'),
        (("--study", "product", "--engine", "ray", "--jobs", "9"), "with the engine ray"),
        (("--study", "product", "--ray-address", "auto"), "has no use with the engine inline"),
        (("--resume",), "--resume: needs the --output folder"),
        (("--jobs", "0"), "0 is not in the range"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_a_run(stress, flags, message):
    result = stress(*flags)

    assert result.exit_code == 2
    assert message.replace('"', "") in result.stderr.replace('"', "")
    assert "runs done" not in result.stderr


def test_an_address_that_cannot_be_joined_is_refused(stress):
    result = stress(*SMALL, "--ray-address", "ray://10.0.0.1:10001")

    assert result.exit_code == 2
    assert "Ray Client, which a run cannot use" in result.stderr


@pytest.mark.parametrize(
    ("engine", "address", "environ", "expected"),
    [
        ("model", None, None, False),
        ("model", "auto", None, True),
        ("virtual", None, "10.0.0.1:6379", True),
        ("model", "local", "10.0.0.1:6379", False),
        ("ray", "auto", None, False),
    ],
)
def test_runs_are_spread_over_the_ray_that_is_joined_unless_they_measure_a_machine(
    monkeypatch, engine, address, environ, expected
):
    if environ:
        monkeypatch.setenv("RAY_ADDRESS", environ)

    assert joins_cluster(engine, JobOptions(ray_address=address)) == expected


def test_a_settings_file_names_the_ray_cluster_and_the_needs_of_its_processes(tmp_path):
    file = tmp_path / "roadstead.yaml"
    file.write_text("ray: {address: 10.0.0.1:6379, runtime_env: env.yaml}")

    from_file = used_settings(JobOptions(settings=file))
    over = JobOptions(settings=file, ray_address="local")

    assert (from_file.ray.address, str(from_file.ray.runtime_env)) == ("10.0.0.1:6379", "env.yaml")
    assert joins_cluster("model", JobOptions(settings=file))
    assert not joins_cluster("model", over), "the option overrides the file"


def test_a_settings_file_has_no_parameters_of_the_sweep(stress, tmp_path):
    file = tmp_path / "roadstead.yaml"
    file.write_text("schedulers: 2")

    result = stress(*SMALL, "--settings", file)

    assert result.exit_code == 2
    assert f"{file}: schedulers" in result.stderr
    assert "has no use in a sweep" in result.stderr


def test_runs_of_the_engine_ray_have_the_sections_of_the_settings_file(stress, tmp_path):
    file = tmp_path / "roadstead.yaml"
    file.write_text("ray: {address: 127.0.0.1:1}\ndeadlines: {start_s: 5}")

    result = stress(*HEAVY[:2], "--engine", "ray", "--seeds", "1", "--settings", file)

    assert result.exit_code == 1
    assert "127.0.0.1:1" in result.stderr, "no Ray accepts connections at this address"


def test_a_run_of_the_engine_ray_uses_the_given_ray(tmp_path):
    sections = {"ray": {"address": "10.0.0.1:6379"}}
    joined = settings_of(DEFAULTS, 0, "ray", tmp_path, sections)
    usual = settings_of(DEFAULTS, 0, "ray", tmp_path)

    assert (joined.ray.address, usual.ray.address) == ("10.0.0.1:6379", None)


def test_every_run_has_a_folder_by_its_place_and_the_first_checked_one_is_in_front(tmp_path):
    study = Study("product", "", PARAMETERS, None, ())
    sweep = make_sweep(study, {"recheck": ["none", "all"]}, {}, (0, 1), source="x")

    folders = journals_of(sweep, tmp_path)

    names = ("runs/001", "runs/002", ".", "runs/004")
    assert folders == [str((tmp_path / name).resolve() / "journal") for name in names]
    assert journals_of(sweep, None) == [""] * 4


def test_a_stopped_sweep_continues_and_its_tables_are_those_of_an_uninterrupted_one(
    stress, monkeypatch, tmp_path
):
    with monkeypatch.context() as patched:
        interrupt_at(patched, 3)
        stopped = stress(*SMALL, "--output", tmp_path / "out")
    kept = rows(tmp_path / "out")

    resumed = stress(*SMALL, "--output", tmp_path / "out", "--resume")
    again = stress(*SMALL, "--output", tmp_path / "out", "--resume")
    stress(*SMALL, "--output", tmp_path / "whole")

    assert stopped.exit_code == 1
    assert "Incomplete sweep: 2 of at most 6 runs" in stopped.stderr
    stored = f"Finished runs are in {tmp_path / 'out' / 'results.jsonl'}"
    assert f"{stored}; the same command with --resume continues the sweep." in stopped.stderr
    assert [row["task"] for row in kept] == [0, 1, 2]
    assert "3 of 6 runs done, 1 running" in resumed.stderr
    assert [row["task"] for row in rows(tmp_path / "out")] == list(range(6))
    assert again.stderr.splitlines()[0] == "6 of 6 runs done"
    assert again.stdout == resumed.stdout
    assert tables(tmp_path / "out") == tables(tmp_path / "whole")


def test_an_unfinished_sweep_is_not_replaced_and_not_continued_as_another(
    stress, monkeypatch, tmp_path
):
    with monkeypatch.context() as patched:
        interrupt_at(patched, 1)
        stress(*SMALL, "--output", tmp_path / "out")

    replaced = stress(*SMALL, "--output", tmp_path / "out")
    other = stress(*SMALL, "--load", "0.5", "--output", tmp_path / "out", "--resume")

    assert (replaced.exit_code, other.exit_code) == (2, 2)
    assert "holds an unfinished sweep: continue it with --resume" in replaced.stderr
    assert "set: was begun with" in other.stderr
    assert [row["task"] for row in rows(tmp_path / "out")] == [0]


def test_a_sweep_with_journals_continues_and_replaces_the_journal_of_a_broken_run(
    stress, monkeypatch, tmp_path
):
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        interrupt_at(patched, 1)
        stress(*HEAVY, "--output", out)
    torn = out / "runs" / "002" / "journal"
    torn.mkdir(parents=True)
    (torn / "journal-00000000000000000001.segment").write_bytes(b"torn")

    resumed = stress(*HEAVY, "--output", out, "--resume")
    whole = stress(*HEAVY, "--output", tmp_path / "whole")

    assert (resumed.exit_code, whole.exit_code) == (0, 0), resumed.stderr
    assert tables(out) == tables(tmp_path / "whole")
    check = CliRunner().invoke(build_cli(ActorLauncher), ["check", str(out)])
    assert check.exit_code == 0


def test_a_folder_with_journals_but_no_results_is_not_resumed(stress, tmp_path):
    (tmp_path / "journal").mkdir()

    result = stress(*HEAVY, "--output", tmp_path, "--resume")

    assert result.exit_code == 2
    assert "holds journals of an earlier sweep" in result.stderr


def test_other_processes_are_begun_only_where_they_can_help(monkeypatch):
    monkeypatch.setattr(stress_runs, "usable_cores", lambda: 4)
    chosen = [
        stress_runs.processes_of(None, asked.engine, None, JobOptions(jobs, address), None)
        for asked, jobs, address in (
            (SweepDefinition("", "omega", "model"), None, None),
            (SweepDefinition("", "omega", "model"), 1, None),
            (SweepDefinition("", "omega", "model"), 3, None),
            (SweepDefinition("", "omega", "model"), None, "auto"),
            (SweepDefinition("", "product", "inline"), None, None),
        )
    ]

    found = [None if each is None else (each.jobs, each.starts_at_once) for each in chosen]
    assert found == [(4, False), None, (3, True), (None, True), None]


@pytest.mark.ray
@pytest.mark.parametrize("flags", [SMALL, HEAVY], ids=["model", "virtual"])
def test_tables_are_the_same_for_any_number_of_jobs(stress, tmp_path, flags):
    written = {}
    for jobs in (1, 2, 3):
        result = stress(*flags, "--jobs", jobs, "--output", tmp_path / str(jobs))
        assert result.exit_code == 0, result.stderr
        written[jobs] = tables(tmp_path / str(jobs)), result.stdout
    RaySession.await_end(60.0)

    assert written[1] == written[2] == written[3]


@pytest.mark.ray
def test_a_users_inputs_are_scheduled_alike_in_other_processes(stress, tmp_path):
    cluster = write(tmp_path / "c.json", node("n-1", zone="a"), node("n-2", zone="b"))
    pods = write(tmp_path / "p.json", *(pod(f"p{index}", "100m") for index in range(12)))
    flags = (
        *("--cluster", cluster, "--pods", pods, "--engine", "virtual", "--seeds", "2"),
        *("--schedulers", "1,2", "--batch", "4", "--format", "json"),
    )

    alone, spread = (stress(*flags, "--jobs", jobs) for jobs in (1, 2))
    RaySession.await_end(60.0)

    assert spread.exit_code == 0, spread.stderr
    assert spread.stdout == alone.stdout


@pytest.fixture
def _interruptible():
    """Handle SIGINT as in a terminal: a shell that starts tests in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.ray
@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_sweep_in_other_processes_and_keeps_its_runs(stress, tmp_path, signum):
    flags = ("--vary", "horizon_s=7200", "--schedulers", "1,2,4,8", "--seeds", "9", "--jobs", "2")
    command = [sys.executable, "-P", "-m", "roadstead", "stress", *flags]
    running = subprocess.Popen(
        [*command, "--output", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    messages = []
    for line in running.stderr:
        messages.append(line.rstrip())
        if " runs done" in line and not line.startswith("0 "):
            # As a terminal does: to the command and to the processes of its Ray.
            os.killpg(running.pid, signum)

    assert running.wait() == 128 + signum, messages
    assert messages[-1].endswith("the same command with --resume continues the sweep."), messages
    assert not any("Traceback" in line for line in messages)
    assert rows(tmp_path / "out")


LOSES_RAY = """
import os, signal, sys, time
import ray
from roadstead.actors.interface import RunFailedError
from roadstead.actors.runtime.ray_node import servers
from roadstead.actors.sweeps.ray_tasks import RayTasks
from roadstead.config.settings import load_settings
from roadstead.lab.studies import OMEGA
from roadstead.sweeps.tasks import Start, Work

def stores(_):
    raise AssertionError("an object of the driver would be recovered once its raylet is lost")

ray.put = stores
task = {"values": OMEGA.complete({"machines": 2000, "horizon_s": 1e7}), "seed": 1}
settings = load_settings(overrides={"ray.address": "local"})
tasks = RayTasks(Work("model", {"study": "omega"}, (task,)), settings, 1, print)
tasks.start(Start(0, 1))
tasks.wait()
os.kill(servers()["raylet"].pid, signal.SIGTERM)
try:
    while True:
        tasks.wait()
except RunFailedError as failure:
    print(failure)
tasks.stop()
"""


@pytest.mark.ray
def test_a_sweep_whose_raylet_ends_by_a_signal_reports_it():
    ended = subprocess.run(
        [sys.executable, "-c", LOSES_RAY],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("Ray's raylet (process "), ended.stdout
