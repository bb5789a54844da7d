"""`roadstead simulate`, `why` and `query` on small scenarios."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from roadstead.api import input_copies, run_query
from roadstead.cli.main import build_cli
from roadstead.simulator import tables as simulator_tables
from tests.cli.conftest import Run
from tests.cli.plain_launcher import PlainLauncher
from tests.scenario.files import written
from tests.waiting import until

SCENARIO = """apiVersion: roadstead.dev/v1
kind: Scenario
metadata: {name: busy}
fleet: [{generate: {nodes: 2, shape: cpu-8}}]
workload:
- name: tasks
  arrivals: {every: 1m, count: 20}
  duration: 10m
  pods: [{template: task.yaml}]
horizon: 1h
sample: 10m
seeds: 2
"""
SPEC = {
    "containers": [{"name": "main", "image": "task:1", "resources": {"requests": {"cpu": "3"}}}]
}
TASK = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "task", "namespace": "shop"},
    "spec": SPEC,
}
Write = Callable[[str], Path]


def busy(folder: Path) -> Path:
    """Write a scenario in which four pods fit at a time, so that others wait."""
    (folder / "task.yaml").write_text(json.dumps(TASK))
    return written(folder, SCENARIO, "busy.yaml")


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the scenario into a new folder; enter the folder."""
    monkeypatch.chdir(tmp_path)
    return busy(tmp_path)


def simulated(scenario: Path, output: Path) -> Path:
    """Play a scenario into a folder; return this folder."""
    command = ["simulate", str(scenario), "-o", str(output)]
    assert CliRunner().invoke(build_cli(PlainLauncher), command).exit_code == 0
    return output


@pytest.fixture(scope="module")
def played_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play the scenario; the folder of its runs is beside it, and no test changes it."""
    folder = tmp_path_factory.mktemp("busy")
    return simulated(busy(folder), folder / "busy.run")


@pytest.fixture
def played(scenario: Path, played_once: Path) -> Path:
    """Copy the played runs to the scenario of this test."""
    return Path(shutil.copytree(played_once, "busy.run"))


def tables(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def test_simulate_prints_the_runs_and_writes_their_tables_and_a_report(
    run: Run, scenario: Path
) -> None:
    result = run("simulate", scenario, "--wide")

    assert result.exit_code == 0
    runs = [line.split() for line in result.stdout.splitlines() if line.startswith("default-")]
    assert [row[:3] for row in runs[:2]] == [["default-0", "20", "20"], ["default-1", "20", "20"]]
    assert "Waits from creation to bind, default-1" in result.stdout
    page = Path("busy.run/report.html").read_text()
    assert page.count("<svg") >= 4
    assert "cpu: requested and allocatable" in page


def test_several_configurations_are_compared_on_the_same_seeds(run: Run, scenario: Path) -> None:
    presets = "scheduler: {preset: [default, binpack]}\n"
    both = written(scenario.parent, SCENARIO + presets, "both.yaml")

    result = run("simulate", both, "--format", "json")

    (found,) = json.loads(result.stdout)["comparisons"]
    assert (found["a"], found["b"]) == ("default", "binpack")
    assert [each["run"] for each in found["metrics"][0]["values"]] == ["0", "1"]
    written_pairs = Path("both.run/compare.json").read_bytes()
    assert json.loads(written_pairs) == {"comparisons": [found]}
    assert "<h2>default and binpack</h2>" in Path("both.run/report.html").read_text()

    again = run("simulate", both, "--force")

    assert "A: default, B: binpack; 2 pairs" in again.stdout
    assert Path("both.run/compare.json").read_bytes() == written_pairs
    one = run("simulate", both, "--force", "--seed", 1)
    assert "One seed: no interval is possible" in one.stdout


def test_a_folder_of_runs_is_no_scenario(run: Run, played: Path) -> None:
    result = run("simulate", played)

    assert result.exit_code == 2
    assert "is a folder of runs: name its scenario" in result.stderr


@pytest.mark.parametrize("call", [("why", "task-0-1"), ("query", "FROM pods")])
def test_arguments_in_the_wrong_order_are_named(
    run: Run, played: Path, call: tuple[str, str]
) -> None:
    result = run(*call, played)

    assert result.exit_code == 2
    assert "RUN comes before" in result.stderr


def test_a_report_shows_each_kind_of_event_once_at_a_time(run: Run, scenario: Path) -> None:
    events = "events: [{at: 30m, lose: {nodes: 2}, for: 10m}]\n"
    run("simulate", written(scenario.parent, SCENARIO + events, "lost.yaml"), "--seed", 0)

    page = Path("lost.run/report.html").read_text()
    assert page.count("<li>30m: node lost") == 1
    assert "node lost cpu-8-00000 (by an event), and 1 more" in page
    assert "Dashed vertical lines: events, without evictions." in page


def test_one_configuration_is_compared_with_nothing(run: Run, played: Path) -> None:
    assert not (played / "compare.json").exists()


def test_a_failing_plugin_is_noted_with_its_message(run: Run, scenario: Path) -> None:
    text = """
from roadstead.framework.per_node import NodePlugin


class Broken(NodePlugin):
    name = "Broken"

    def score(self, pod, node):
        raise ValueError("no score today")
"""
    Path("broken_score.py").write_text(text)

    result = run("simulate", scenario, "--plugin", "broken_score.py", "--seed", 0)

    assert result.exit_code == 0
    assert "note: A plugin failed in" in result.stderr
    assert "no score today" in result.stderr


def test_one_scenario_gives_the_same_tables_twice(run: Run, played: Path) -> None:
    run("simulate", "busy.yaml", "-o", "again")

    assert tables(played) == tables(Path("again"))


def test_the_tables_of_a_run_keep_every_rule(run: Run, played: Path) -> None:
    result = run("check", played)

    assert result.exit_code == 0, result.stdout


@pytest.mark.parametrize(
    ("table", "change", "text"),
    [
        ("pods", "waited_us + 1 AS waited_us", "by its creation and bind"),
        ("pods", "bound_us AS first_tried_us", "by its attempts"),
        ("class_samples", "pending + 1 AS pending", "created pods are not the sum of"),
    ],
)
def test_check_finds_a_wrong_value(
    run: Run, played: Path, table: str, change: str, text: str
) -> None:
    planted(played, table, change)

    result = run("check", played, "--show", "0")

    assert result.exit_code == 1
    assert text in result.stdout


DEVICES = Path(__file__).parents[2] / "docs" / "examples" / "devices"


def planted(folder: Path, table: str, change: str) -> None:
    """Change each row of a table of the first run. change: of a duckdb SELECT * REPLACE."""
    part = folder / "default-0" / table / "part-00000.parquet"
    changed = part.with_name("changed")
    sql = f"COPY (SELECT * REPLACE ({change}) FROM '{part}') TO '{changed}' (FORMAT parquet)"
    duckdb.sql(sql)
    changed.replace(part)


@pytest.fixture(scope="module")
def devices_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play the example of a fleet with devices; return the folder of its runs."""
    return simulated(DEVICES / "fleet.yaml", tmp_path_factory.mktemp("devices") / "run")


def test_check_finds_a_device_in_two_claims(
    run: Run, devices_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(devices_run, "gpus")
    assert run("check", "gpus").exit_code == 0
    sql = "SELECT count(DISTINCT device) AS n FROM allocations WHERE device IS NOT NULL"
    assert json.loads(run("query", "gpus", sql, "--format", "json").stdout) == [{"n": 2}]

    planted(tmp_path / "gpus", "allocations", "if(device IS NULL, NULL, 'g0') AS device")
    result = run("check", "gpus", "--show", "0")

    assert result.exit_code == 1
    assert "devices  gpu.example.com/n1/g0: is in claims default/train-0-" in result.stdout


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_order_of_sets_changes_no_table(
    devices_run: Path, tmp_path: Path, hash_seed: str
) -> None:
    other = tmp_path / "other"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "roadstead", "simulate", str(DEVICES / "fleet.yaml")]
    subprocess.run([*command, "-o", str(other)], env=environment, check=True, capture_output=True)

    assert tables(devices_run) == tables(other)


def test_json_has_the_waits_of_each_run_by_owner(run: Run, scenario: Path) -> None:
    document = json.loads(run("simulate", scenario, "--format", "json", "--seed", "1").stdout)

    assert [each["run"] for each in document["runs"]] == ["default-1"]
    assert document["runs"][0]["waits_of"]["tasks"]["quantiles_us"]["p50"] > 0


def test_results_are_kept_unless_force_is_given(run: Run, played: Path) -> None:
    refused = run("simulate", "busy.yaml")

    assert refused.exit_code == 2
    assert "holds the results of a run (--force replaces them, --resume cont" in refused.stderr
    assert run("simulate", "busy.yaml", "--force").exit_code == 0


def test_a_file_of_the_user_in_the_folder_is_never_removed(run: Run, played: Path) -> None:
    (played / "notes.txt").write_text("mine")

    result = run("simulate", "busy.yaml", "--force")

    assert 'holds other files ("notes.txt")' in result.stderr
    assert (played / "notes.txt").read_text() == "mine"
    assert list(played.glob("*/summary.json"))


def test_a_folder_of_another_command_is_never_replaced(run: Run, scenario: Path) -> None:
    folder = Path("out")
    folder.mkdir()
    (folder / "run.json").write_text("{}")

    result = run("simulate", scenario, "-o", folder, "--force")

    assert (result.exit_code, (folder / "run.json").exists()) == (2, True)


def test_resume_plays_only_runs_that_are_not_finished(run: Run, played: Path) -> None:
    before = tables(played)
    finished = (played / "default-0" / "summary.json").stat().st_mtime_ns
    (played / "default-1" / "summary.json").unlink()
    (played / "default-1" / "pods" / "part-00000.parquet").unlink()

    result = run("simulate", "busy.yaml", "--resume")

    assert result.exit_code == 0
    assert tables(played) == before
    assert (played / "default-0" / "summary.json").stat().st_mtime_ns == finished


def changed_task(folder: Path) -> str:
    Path("task.yaml").write_text(json.dumps(TASK).replace('"3"', '"2"'))
    return 'inputs: "task.yaml" is not what the run was played with'


def changed_scenario(folder: Path) -> str:
    written(Path(), SCENARIO.replace("10m", "11m"), "busy.yaml")
    return 'inputs: "scenario" is not what the run was played with'


def changed_version(folder: Path) -> str:
    record = json.loads((folder / "run.json").read_text())
    record["versions"]["numpy"] = "1.0"
    (folder / "run.json").write_text(json.dumps(record))
    return "versions.numpy: was 1.0 and is"


def unreadable_record(folder: Path) -> str:
    (folder / "run.json").write_text('{"format": 1, "runs": [{"name": "../..", "seed": 1}]}')
    return "run.json"


@pytest.mark.parametrize(
    "change", [changed_task, changed_scenario, changed_version, unreadable_record]
)
def test_resume_is_refused_if_an_input_has_changed(
    run: Run, played: Path, change: Callable[[Path], str]
) -> None:
    rule = change(played)

    result = run("simulate", "busy.yaml", "--resume")

    assert result.exit_code == 2
    assert rule in result.stderr


def test_why_lists_the_events_of_a_pod_that_waited(run: Run, played: Path) -> None:
    result = run("why", played, "task-0-5")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "shop/task-0-5 in default-0: requests cpu 3; priority 0"
    assert [line[14:] for line in lines[1:7]] == [
        "created by tasks",
        "tried and refused by NodeResourcesFit",
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/2 nodes are available: 2 No preemption victims found for incoming pod.",
        lines[4][14:],
        lines[5][14:],
        "started",
    ]
    assert "ended on" in lines[4]
    assert "after its creation" in lines[5]
    assert "ended: done" in lines[7]
    assert "Why cpu-8-" in result.stdout
    assert "NodeResourcesFit" in result.stdout.split("Scores of", 1)[1]


def test_why_at_a_time_explains_each_node(run: Run, played: Path) -> None:
    result = run("why", played, "shop/task-0-5", "--at", "6m", "--format", "json")

    document = json.loads(result.stdout)
    assert document["explained_at_us"] == 360_000_000
    assert document["explanation"]["feasible"] == []
    assert len(document["explanation"]["nodes"]) == 2


def test_why_names_the_pods_that_were_preempted_for_a_pod(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    urgent = {"spec": {**SPEC, "priorityClassName": "system-cluster-critical"}}
    (tmp_path / "urgent.yaml").write_text(json.dumps(TASK | urgent))
    (tmp_path / "task.yaml").write_text(json.dumps(TASK))
    later = (
        "- name: urgent\n  arrivals: {every: 1m, count: 1, start: 5m}\n"
        "  pods: [{template: urgent.yaml}]\nhorizon"
    )
    written(tmp_path, SCENARIO.replace("horizon", later, 1), "busy.yaml")
    assert run("simulate", "busy.yaml", "--seed", "0").exit_code == 0

    result = run("why", "busy.run", "task-1-0", "--tables-only")

    sql = "SELECT uid FROM pods WHERE ending = 'preempted'"
    (victim,) = json.loads(run("query", "busy.run", sql, "--format", "json").stdout)
    assert f"preempted for it: {victim['uid']}\n" in result.stdout


def test_why_from_another_folder_finds_the_files_of_the_scenario(
    run: Run, played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = played.absolute()
    monkeypatch.chdir("/")

    assert "Scores of" in run("why", folder, "task-0-5", "--seed", "1").stdout


def test_a_run_is_played_again_from_its_folder_alone(
    run: Run, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SCENARIO.replace("horizon", "scheduler: {config: [binpack.yaml]}\nhorizon", 1)
    written(tmp_path, text, "base.yaml")
    head = "apiVersion: roadstead.dev/v1\nkind: Scenario\nmetadata: {name: busy}\n"
    scenario.write_text(f"{head}extends: base.yaml\nseeds: 1\n")
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    Path("binpack.yaml").write_text(json.dumps(config))
    assert run("simulate", scenario).exit_code == 0
    played = Path("busy.run")
    before, scores = tables(played), run("why", played, "task-0-5").stdout
    (elsewhere := tmp_path / "elsewhere" / "deeper").mkdir(parents=True)
    shutil.move(played, elsewhere)
    for name in ("busy.yaml", "base.yaml", "task.yaml", "binpack.yaml"):
        Path(name).unlink()
    monkeypatch.chdir(elsewhere)
    (played / "binpack-0" / "summary.json").unlink()

    resumed = run("simulate", "busy.run", "--resume")

    assert resumed.exit_code == 0, resumed.stderr
    assert tables(played) == before
    assert "Scores of" in scores
    assert run("why", played, "task-0-5").stdout == scores
    assert run("fit", "task-0-5", "--run", played, "--at", "6m").exit_code in (0, 1)


def test_equal_inputs_have_one_copy(run: Run, scenario: Path) -> None:
    scenario.write_text(
        SCENARIO.replace("{template: task.yaml}", "{template: task.yaml}, {template: task.yaml}")
    )
    assert run("simulate", scenario, "--seed", "0").exit_code == 0

    copies = list(Path("busy.run/inputs").rglob("*.yaml"))

    assert [each.name for each in copies] == ["task.yaml"]
    assert copies[0].read_bytes() == Path("task.yaml").read_bytes()


def test_a_changed_copy_is_named(run: Run, played: Path) -> None:
    (copy,) = played.rglob("inputs/*/task.yaml")
    copy.write_text(json.dumps(TASK).replace('"3"', '"2"'))

    life, moment = run("why", played, "task-0-5"), run("why", played, "task-0-5", "--at", "6m")

    assert "ended: done" in life.stdout
    assert "is not known" in life.stderr
    assert moment.exit_code == 2
    assert "is not what the run was played with" in moment.stderr


def test_a_file_without_a_copy_is_known_by_its_digest(
    run: Run, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_copies, "COPY_MAX_BYTES", 10)
    assert run("simulate", scenario, "--seed", "0").exit_code == 0
    assert not list(Path("busy.run").rglob("inputs/*/task.yaml"))
    assert "Scores of" in run("why", "busy.run", "task-0-5").stdout

    changed_task(Path())
    changed = run("why", "busy.run", "task-0-5", "--at", "6m")
    Path("task.yaml").unlink()
    missing = run("why", "busy.run", "task-0-5", "--at", "6m")

    assert 'inputs: "task.yaml" is not what the run was played with' in changed.stderr
    digest = hashlib.sha256(json.dumps(TASK).encode()).hexdigest()
    assert missing.exit_code == 2
    assert "it was too large for a copy" in missing.stderr
    assert digest in "".join(missing.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["task-0"], "is no pod; the names of several pods begin with it: shop/task-0-0, "),
        (["tasks"], "is a workload; name one of its pods: shop/task-0-0, "),
        (["deploy/tasks"], "is no pod or workload of the run"),
        (["task-9"], "is no pod or workload of the run"),
        (["%"], "is no pod or workload of the run"),
        (["' OR 1=1 --"], "is no pod or workload of the run"),
        (["task-0-5", "--at", "soon"], "--at"),
        (["task-0-5", "--at", "1s"], "is no time at which the pod exists"),
        (["task-0-5", "--seed", "7"], "has no such run with tables"),
    ],
)
def test_why_refuses_wrong_questions(
    run: Run, played: Path, arguments: list[str], rule: str
) -> None:
    result = run("why", played, *arguments)

    assert result.exit_code == 2
    assert rule in result.stderr


def test_why_finds_the_pods_of_a_controller_by_its_name(run: Run, scenario: Path) -> None:
    template = {"metadata": {"labels": {"app": "api"}}, "spec": SPEC}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "api"}}, "template": template}
    api = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api"}, "spec": spec}
    Path("api.yaml").write_text(json.dumps(api))
    workload = "workload: [{deployment: {template: api.yaml}}]\n"
    scenario.write_text(SCENARIO[: SCENARIO.index("workload")] + workload + "horizon: 1h\n")
    assert run("simulate", scenario).exit_code == 0

    for name in ("deploy/api", "Deployment/api", "api"):
        result = run("why", "busy.run", name, "--tables-only")
        assert "api-" in result.stdout, result.stderr


def test_query_prints_tables_csv_and_json(run: Run, played: Path) -> None:
    sql = "SELECT seed, ending, count(*) AS pods FROM pods GROUP BY ALL ORDER BY ALL"

    table, text = run("query", played, sql).stdout, run("query", played, sql, "--format", "csv")
    rows = json.loads(run("query", played, sql, "--format", "json").stdout)

    assert [line.split() for line in table.splitlines() if line][:2] == [
        ["seed", "ending", "pods"],
        ["0", "done", "20"],
    ]
    assert text.stdout.splitlines()[:2] == ["seed,ending,pods", "0,done,20"]
    assert rows[1] == {"seed": 1, "ending": "done", "pods": 20}


@pytest.mark.parametrize("words", ["EXPLAIN", "/* é */ explain", "EXPLAIN ANALYZE"])
def test_query_explains_a_query(run: Run, played: Path, words: str) -> None:
    result = run("query", played, f"{words} SELECT count(*) FROM pods", "--format", "json")

    assert result.exit_code == 0, result.stderr
    assert "explain_value" in json.loads(result.stdout)[0]


def test_query_of_one_run_has_no_columns_of_the_run(run: Run, played: Path) -> None:
    result = run("query", played / "default-1", "FROM pods LIMIT 1", "--format", "csv")

    assert result.stdout.startswith("number,namespace,name,")


def test_a_table_has_a_bounded_number_of_rows(run: Run, played: Path) -> None:
    result = run("query", played, "SELECT number FROM pods", "--rows", "3")

    assert result.stdout.splitlines()[-1] == "… and more; --rows 0 prints all"


def test_every_query_of_the_help_runs(run: Run, played: Path) -> None:
    text = " ".join(run("query", "--help").stdout.split())
    queries = [part.split('"')[0] for part in text.split('small.run "')[1:]]

    assert len(queries) >= 5
    for sql in queries:
        assert run("query", played, sql).exit_code == 0, sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('task.yaml')",
        "SELECT * FROM 'task.yaml'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_parquet('https://example.com/x.parquet')",
        "COPY pods TO 'pods.csv'",
        "COPY (SELECT 1) TO 'busy.run/default-0/pods/part-00000.parquet'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO 'busy.run/default-0/pods/part-00000.parquet' "
        "(FORMAT csv, USE_TMP_FILE false)",
        "EXPLAIN /* é */ analyze DROP VIEW pods",
        "EXPLAIN (ANALYZE) CREATE TABLE t AS FROM pods",
        "EXPLAIN COPY pods TO 'pods.csv'",
        "EXPLAIN CHECKPOINT",
        "ATTACH 'other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '99GB'",
        "PRAGMA database_list",
        "CREATE TABLE t AS FROM pods",
        "DROP VIEW pods",
        "EXPORT DATABASE 'x'",
        "SELECT 1; SELECT 2",
        "SELECT * FROM range(9000000000) t(a) ORDER BY hash(a)",
        "SELECT * FROM played",
        "SELECT wrong FROM pods",
        "SELEC",
        "SELECT '\udcff'",
        "",
    ],
)
def test_query_refuses_statements_other_than_queries_of_the_tables(
    run: Run, played: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    # Otherwise duckdb fills two gigabytes before it refuses to sort nine billion rows.
    monkeypatch.setattr(run_query, "MEMORY_MB", 64)
    before = tables(played)

    result = run("query", played, sql)

    assert result.exit_code == 2
    assert result.stderr.startswith("SQL: ")
    assert result.stderr.count("\n") == 1, "one line"
    assert tables(played) == before
    assert not Path("pods.csv").exists()


def test_a_damaged_table_is_an_error(run: Run, played: Path) -> None:
    (played / "default-0" / "pods" / "part-00000.parquet").write_bytes(b"PAR1" * 9)

    result = run("query", played, "FROM pods")

    assert result.exit_code == 2
    assert "table pods: cannot be read" in result.stderr


def test_a_folder_without_runs_is_an_error(run: Run, tmp_path: Path) -> None:
    assert "does not exist" in run("query", tmp_path / "none", "FROM pods").stderr
    assert "holds no simulated runs" in run("why", tmp_path, "web").stderr


LONG = (
    SCENARIO.replace("every: 1m, count: 20", "every: 1s")
    .replace("duration: 10m", "duration: 3s")
    .replace("horizon: 1h", "horizon: 3h")
    .replace("sample: 10m", "sample: 1h")
    .replace("seeds: 2", "seeds: 1")
)
"""10,800 pods."""

LONG_WITH_CLAIMS = (
    (DEVICES / "fleet.yaml")
    .read_text()
    .replace("[cluster.yaml]", f"[{DEVICES / 'cluster.yaml'}]")
    .replace("poisson: {per_hour: 4}", "every: 30s")
    .replace("horizon: 1d", "horizon: 8h")
    .replace("lognormal: {median: 30m, p99: 2h}", "uniform: {min: 10s, max: 70s}")
)
"""960 pods with a claim each; some wait for one of the two devices."""

WITH_SMALL_PARTS = """
import sys
from roadstead.actors.entry import main
from roadstead.simulator import tables
tables.PART_ROWS = int(sys.argv.pop())
main()
"""


def ended_by(signum: int, part_rows: int = 4_096) -> tuple[int, str]:
    """Play long.yaml in a process, and send it a signal when a part is there; (status, errors)."""
    played = [WITH_SMALL_PARTS, "simulate", "long.yaml", "-o", "killed", str(part_rows)]
    command = [sys.executable, "-c", *played]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        until(lambda: process.poll() is not None or parts_of("killed"), 200)
        process.send_signal(signum)
        _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def parts_of(folder: str) -> list[Path]:
    return list(Path(folder).rglob("part-*.parquet"))


@pytest.mark.parametrize(
    ("text", "part_rows"), [(LONG, 4_096), (LONG_WITH_CLAIMS, 256)], ids=["plain", "claims"]
)
def test_a_run_that_is_killed_can_be_continued(
    run: Run, scenario: Path, monkeypatch: pytest.MonkeyPatch, text: str, part_rows: int
) -> None:
    monkeypatch.setattr(simulator_tables, "PART_ROWS", part_rows)
    written(Path(), text, "long.yaml")

    assert ended_by(signal.SIGKILL, part_rows)[0] == -signal.SIGKILL
    assert parts_of("killed")
    assert not Path("killed/default-0/summary.json").exists()
    assert run("simulate", "long.yaml", "-o", "killed", "--resume").exit_code == 0
    assert run("simulate", "long.yaml", "-o", "whole").exit_code == 0
    assert tables(Path("killed")) == tables(Path("whole"))
    assert {"part-00000.parquet", "part-00001.parquet"} <= {each.name for each in parts_of("whole")}


def test_an_interrupted_run_names_what_is_kept_and_how_to_continue(scenario: Path) -> None:
    written(Path(), LONG, "long.yaml")

    status, errors = ended_by(signal.SIGINT)

    assert status == 130, errors
    assert "whole parts of tables are in killed; the same command with --resume" in errors
    assert not list(Path("killed").rglob("summary.json"))
