"""`roadstead compare`: its files and report, plugins of both sides, and what it refuses."""

import csv
import json
import re
import sys

import pytest
from click.testing import CliRunner

from roadstead.api.paired_runs import read_group
from roadstead.cli.main import build_cli
from roadstead.protocol.errors import InputError
from tests.cli.plain_launcher import PlainLauncher
from tests.cli.test_sweep import BODY, CONTAINER
from tests.scenario.files import scenario, written

PLUGIN = """
from roadstead.framework.per_node import NodePlugin


class Mine(NodePlugin):
    name = "Mine"

    def score(self, pod, node):
        return {score}
"""
SHORT = BODY.replace("horizon: 2h", "horizon: 30m")
SIDES = ("--plugin-a", "compared_old.py", "--plugin-b", "compared_new.py")


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize("wrong", ['"seed": Infinity', f'"metrics": {{"a": 1{400 * "0"}}}'])
def test_a_sweep_with_a_number_that_is_too_large_is_refused(tmp_path, wrong):
    text = f'{{"runs": [{{"values": {{}}, "seed": 0, "metrics": {{}}, {wrong}}}]}}'
    (tmp_path / "sweep.json").write_text(text)

    with pytest.raises(InputError, match="is no result of `roadstead sweep`"):
        read_group(tmp_path)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "compared_old.py").write_text(PLUGIN.format(score="50"))
    failing = '1 / 0 if pod.name.endswith("3") else 100'
    (tmp_path / "compared_new.py").write_text(PLUGIN.format(score=failing))
    yield written(tmp_path, scenario(SHORT))
    for name in ("compared_old", "compared_new"):
        sys.modules.pop(name, None)


def run(*args):
    command = build_cli(PlainLauncher)
    return CliRunner().invoke(command, list(map(str, args)), catch_exceptions=False)


def test_a_comparison_writes_its_metrics_and_a_report(path, tmp_path):
    flags = ("--a", "default", "--b", "binpack", "--jobs", 1, "--tables", "-o", "out")

    result = run("compare", path, *flags, "--format", "json")

    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    out = tmp_path / "out"
    assert json.loads((out / "compare.json").read_text()) == found
    with (out / "compare.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [each["metric"] for each in rows] == [each["metric"] for each in found["metrics"]]
    pairs = found["metrics"][0]["values"]
    assert [each["run"] for each in pairs] == ["0", "1"]
    assert found["inputs"].keys() == {"scenario"}
    page = (out / "report.html").read_text()
    assert "Pods that wait for a node" in page
    assert "means over 2 pairs" in page
    assert not re.search(r"(src|href)=|<script", page)
    assert "report: out/report.html" in result.stderr
    # The folder is also that of a sweep.
    again = run("compare", "out", "out", "-o", "again", "--format", "json")
    assert all(not each["is_different"] for each in json.loads(again.stdout)["metrics"])
    assert "Pods that wait for a node" in (tmp_path / "again" / "report.html").read_text()


def test_finished_runs_without_tables_have_a_report_without_plots_over_time(path, tmp_path):
    for name, rate in (("few", 20), ("many", 60)):
        vary = f"workload.tasks.arrivals.poisson.per_hour={rate}"
        assert run("sweep", path, "--vary", vary, "--jobs", 1, "-o", name).exit_code == 0

    result = run("compare", "few", "many", "-o", "out")

    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "out" / "report.html").read_text()
    assert 'aria-label="Differences: B minus A"' in page
    assert "The runs have no tables" in page
    again = run("compare", "few", "many", "-o", "out")
    assert again.exit_code == 2
    assert "holds other files" in again.stderr


def test_two_versions_of_a_plugin_are_compared_and_their_code_is_recorded(path, tmp_path):
    result = run("compare", path, *SIDES, "--jobs", 1, "-o", "out", "--format", "json")

    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["a"], found["b"]) == ("compared_old.py", "compared_new.py")
    by_name = {each["metric"]: each for each in found["metrics"]}
    assert by_name["plugin_errors"]["a"] == 0 < by_name["plugin_errors"]["b"]
    assert "note: Plugins failed in" in result.stderr
    codes = ["plugin compared_new", "plugin compared_old"]
    assert [each for each in sorted(found["inputs"]) if each != "scenario"] == codes
    sweep = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert sweep["vary"] == {"plugin": ["compared_old.py", "compared_new.py"]}


def test_a_comparison_is_continued_only_with_the_same_code(path, tmp_path):
    assert run("compare", path, *SIDES, "--jobs", 1, "-o", "out").exit_code == 0
    results = tmp_path / "out" / "results.jsonl"
    whole = (tmp_path / "out" / "compare.json").read_bytes()
    results.write_text("".join(results.read_text().splitlines(keepends=True)[:3]))

    resumed = run("compare", path, *SIDES, "--jobs", 1, "-o", "out", "--resume")

    assert resumed.exit_code == 0, resumed.stderr
    assert (tmp_path / "out" / "compare.json").read_bytes() == whole
    (tmp_path / "compared_old.py").write_text(PLUGIN.format(score="51"))
    refused = run("compare", path, *SIDES, "--jobs", 1, "-o", "out", "--resume")
    assert refused.exit_code == 2
    assert "input plugin compared_old: was begun with" in refused.stderr


def test_a_plugin_is_compared_with_none(path):
    result = run("compare", path, "--plugin-b", "compared_old.py", "--jobs", 1)

    assert result.exit_code == 0, result.stderr
    assert "A: no plugin, B: compared_old.py; 2 pairs" in result.stdout


def test_one_folder_of_runs_needs_a_second_one(path, tmp_path):
    assert "is a folder of runs: name a second one" in run("compare", tmp_path).stderr


def test_a_changed_template_is_named_when_a_sweep_is_continued(path, tmp_path):
    template = tmp_path / "task.yaml"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "task"}}
    template.write_text(json.dumps(pod | {"spec": {"containers": [CONTAINER]}}))
    key = f"workload.tasks.pods=[{{template: {template.name}}}]"
    flags = ("--vary", key, "--seeds", 1, "--jobs", 1, "-o", "out")
    assert run("sweep", path, *flags).exit_code == 0
    template.write_text(json.dumps(pod | {"spec": {"containers": [CONTAINER | {"image": "b"}]}}))

    result = run("sweep", path, *flags, "--resume")

    assert result.exit_code == 2
    assert "input task.yaml: was begun with" in result.stderr


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        (("--plugin-b", "nothing"), "must be MODULE:CLASS, or FILE.py"),
        (("--plugin-b", "nothing.py"), "nothing.py cannot be loaded"),
        (("--plugin-a", "compared_old.py", "--plugin-b", "compared_old.py"), "same plugin as A"),
        (("--a", "default", "--plugin-b", "compared_old.py"), "--b: is missing"),
        (("--plugin", "compared_old.py"), "--a: is missing"),
        (("--a", "default", "--b", "binpack", "--tables"), "--tables: needs --output"),
    ],
)
def test_wrong_sides_are_refused_before_anything_runs(path, flags, rule):
    result = run("compare", path, *flags)

    assert result.exit_code == 2
    assert rule in result.stderr
    assert "runs done" not in result.stderr


def test_plugins_are_no_choice_where_the_scenario_has_several_configurations(path, tmp_path):
    path = written(tmp_path, scenario(SHORT + "scheduler: {preset: [default, binpack]}\n"))

    result = run("compare", path, "--plugin-b", "compared_old.py")

    assert "the scenario has several configurations" in result.stderr


def test_plugins_are_varied_and_an_unused_one_is_noted(path, tmp_path):
    result = run("sweep", path, "--vary", "plugin=null,compared_old.py", "--jobs", 1, "-o", "out")

    assert result.exit_code == 0, result.stderr
    assert "plugin compared_old.py (2 runs): placed_share" in result.stderr
    assert "sweep.json" in {each.name for each in (tmp_path / "out").iterdir()}
    unused = run(
        *("sweep", path, "--vary", "config=default,binpack", "--jobs", 1),
        *("--plugin", "compared_old.py", "--seeds", 1),
    )
    assert unused.stderr.count("note: Plugin Mine is not used") == 1
    wrong = run("sweep", path, "--vary", "plugin=5")
    assert "--vary: plugin: 5 must be MODULE:CLASS" in wrong.stderr


def test_lines_about_combinations_leave_standard_output_to_json(path):
    vary = "workload.tasks.arrivals.poisson.per_hour=20,60"

    result = run("sweep", path, "--vary", vary, "--jobs", 1, "--format", "json")

    assert json.loads(result.stdout)["points"]
    lines = [each for each in result.stderr.splitlines() if "(2 runs): placed_share" in each]
    assert [each.split(" (")[0] for each in lines] == [
        "workload.tasks.arrivals.poisson.per_hour 20",
        "workload.tasks.arrivals.poisson.per_hour 60",
    ]


def test_differences_fit_eighty_columns(path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    result = run("compare", path, *SIDES, "--jobs", 1)

    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "B is higher:" in result.stdout


def test_a_sweep_names_keys_by_their_last_parts_and_fits_eighty_columns(path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rate, size = "workload.tasks.arrivals.poisson.per_hour=20,60", "fleet.0.generate.nodes=1,2"

    result = run("sweep", path, "--vary", rate, "--vary", size, "--seeds", 1, "--jobs", 1)

    lines = result.stdout.splitlines()
    assert lines[2].split()[:3] == ["per_hour", "nodes", "runs"]
    assert max(map(len, lines)) <= 80
