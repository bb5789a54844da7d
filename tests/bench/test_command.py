import json

import pytest
from click.testing import CliRunner

from roadstead.actors.runs import bench_run
from roadstead.actors.runs.launch import ActorLauncher
from roadstead.cli.main import build_cli
from roadstead.report.text_table import WIDTH_OF_FILE_CHARS, wide_console
from tests.bench.cases import NODES, POD, PODS, case, write_cases

INLINE = ("--runtime", "inline")
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: SCHEDULER}]
"""


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(bench_run, "BENCH_POLL_S", 0.002)


class Spy(ActorLauncher):
    """A launcher that keeps its arguments."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def bench(self, script, plan, progress, **how):
        self.asked.append((script, plan, how))
        return super().bench(script, plan, progress, **how)


def run(*arguments, launcher=None):
    found = launcher or ActorLauncher()
    texts = [str(each) for each in ("bench", *arguments)]
    return CliRunner().invoke(build_cli(lambda: found), texts, catch_exceptions=False)


def test_a_table_shows_rate_latency_memory_phases_and_machine():
    result = run("SchedulingBasic/5Nodes", *INLINE)

    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if line.startswith("SchedulingBasic"))
    assert row.split()[0] == "SchedulingBasic/5Nodes"
    assert "10" in row.split(), "the number of measured pods"
    assert "cores" in result.stdout
    assert "Commit" in result.stdout
    assert "Where the time went: SchedulingBasic/5Nodes" in result.stdout
    assert "scheduler: " in result.stdout
    assert "pods/s (10 of 10 pods in" in result.stderr
    assert "starting actors" in result.stderr


def test_standard_output_has_nothing_but_json():
    result = run("SchedulingBasic/5Nodes", *INLINE, "--json", "--runs", 2, "--seed", 3)

    found = json.loads(result.stdout)
    assert found["pods_per_s"] > 0
    assert found["settings"]["seed"] == 3
    (one,) = found["results"]
    assert (one["bound"], len(one["runs"])) == (10, 2)
    assert found["command"][:2] == ["roadstead", "bench"]


def test_several_workloads_are_run_one_after_another():
    result = run("*Basic/5Nodes", "*Gated/1Node_10GatedPods", *INLINE, "--json")

    assert [each["name"] for each in json.loads(result.stdout)["results"]] == [
        "SchedulingBasic/5Nodes",
        "PreemptionBasic/5Nodes",
        "SchedulingWhileGated/1Node_10GatedPods",
    ]


def test_the_list_marks_the_workload_that_a_cases_name_selects():
    result = run("--list")

    assert "* SchedulingBasic/5000Nodes_10000Pods" in result.stdout.splitlines()
    assert "  SchedulingBasic/5Nodes" in result.stdout.splitlines()
    assert "* openb" in result.stdout.splitlines()


def test_the_workloads_of_a_file_are_listed_and_run(tmp_path):
    path = write_cases(tmp_path, case(NODES, PODS), pod=POD)

    assert run("--list", "--file", path).stdout == "* Case/small\n"
    result = run("--file", path, *INLINE, "--json")
    assert json.loads(result.stdout)["results"][0]["bound"] == 2
    assert run("case", "--file", path, *INLINE).exit_code == 0


def test_workloads_of_a_file_with_the_performance_label_are_run(tmp_path):
    slow = {**case(NODES, PODS, name="B"), "labels": ["performance"]}
    path = write_cases(tmp_path, case(NODES, PODS, name="A"), slow)

    result = run("--file", path, *INLINE, "--json")

    assert [each["name"] for each in json.loads(result.stdout)["results"]] == ["B/small"]


def test_an_older_result_is_compared(tmp_path):
    old = tmp_path / "old.json"
    old.write_text(run("SchedulingBasic/5Nodes", *INLINE, "--json").stdout)

    result = run("*Basic/5Nodes", *INLINE, "--compare", old)

    assert "Changes since " in result.stdout
    assert "latency p99" in result.stdout
    assert "× " in result.stdout
    assert "Not in the older result: PreemptionBasic/5Nodes" in result.stdout
    assert "another machine" not in result.stdout


def test_with_json_the_comparison_is_printed_on_standard_error(tmp_path):
    old = tmp_path / "old.json"
    document = json.loads(run("SchedulingBasic/5Nodes", *INLINE, "--json").stdout)
    old.write_text(json.dumps(document | {"machine": {}, "commit": ""}))

    result = run("SchedulingBasic/5Nodes", *INLINE, "--json", "--compare", old)

    assert json.loads(result.stdout)["results"]
    assert "Changes since the older result" in result.stderr
    assert "The older result was measured on another machine." in result.stderr


def test_a_profile_is_written_for_speedscope(tmp_path):
    path = tmp_path / "profile.json"

    result = run("SchedulingBasic/500Nodes", *INLINE, "--profile", path)

    found = json.loads(path.read_text())
    assert [each["name"] for each in found["profiles"]] == ["SchedulingBasic/500Nodes: all actors"]
    assert found["profiles"][0]["samples"]
    assert found["shared"]["frames"]
    assert "speedscope" in result.stderr


def test_flags_are_passed_to_the_run():
    launcher = Spy()

    result = run(
        "SchedulingBasic/5Nodes", *INLINE, "--kernel", "on", "--workers", 3, "--timeout", 7,
        launcher=launcher,
    )  # fmt: skip

    ((_, plan, how),) = launcher.asked
    assert result.exit_code == 0
    assert (plan.settings.kernel, plan.settings.workers) == (True, 3)
    assert how == {"timeout_s": 7.0, "profiles": False}


def test_kernel_off_overrides_the_settings(tmp_path):
    settings = tmp_path / "roadstead.yaml"
    settings.write_text("runtime: inline\nkernel: true\n")
    launcher = Spy()

    run("SchedulingBasic/5Nodes", "--settings", settings, launcher=launcher)
    run("SchedulingBasic/5Nodes", "--settings", settings, "--kernel", "off", launcher=launcher)

    assert [plan.settings.kernel for _, plan, _ in launcher.asked] == [True, False]


def test_the_configuration_is_the_cases_own_unless_a_flag_names_one(tmp_path):
    path = write_cases(tmp_path, case(NODES, PODS, schedulerConfigPath="own.yaml"))
    (tmp_path / "own.yaml").write_text(CONFIG.replace("SCHEDULER", "default-scheduler"))
    launcher = Spy()

    run("--file", path, *INLINE, launcher=launcher)
    run("--file", path, *INLINE, "--preset", "binpack", launcher=launcher)

    first, second = (plan for _, plan, _ in launcher.asked)
    assert first.config_source.endswith("own.yaml")
    assert second.config_source == "preset binpack"


def test_notes_of_a_workload_are_printed():
    result = run("SchedulingWithMixedChurn/10Nodes", *INLINE)

    assert "SchedulingWithMixedChurn/10Nodes: Service of a churn exists" in result.stderr


def test_a_journal_contains_the_binds_of_the_last_run(tmp_path):
    result = run("SchedulingBasic/5Nodes", *INLINE, "--journal", tmp_path / "j", "--runs", 2)

    assert result.exit_code == 0
    checked = CliRunner().invoke(build_cli(ActorLauncher), ["check", str(tmp_path / "j")])
    assert "15 binds checked: no violations" in checked.output
    assert (tmp_path / "j.1").is_dir()


def test_pods_that_fit_nowhere_fail_the_run_with_the_reason(tmp_path):
    giant = json.loads(json.dumps(POD))
    giant["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "99"
    path = write_cases(tmp_path, case(NODES, PODS, defaultPodTemplatePath="pod.yaml"), pod=giant)

    result = run("--file", path, *INLINE)

    assert result.exit_code == 1
    assert "Case/small: 2 of 2 pods fit on no node" in result.stderr
    assert "Insufficient cpu" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "no workload given"),
        (("Nothing",), "is no workload"),
        (("openb",), "is required for openb"),
        (("SchedulingBasic/5Nodes", "--compare", "none.json"), "none.json: cannot be read"),
        (("--file", "none.yaml"), "none.yaml: cannot be read"),
        (("SchedulingBasic", "--runs", "0"), "--runs"),
        (("SchedulingBasic", "--timeout", "0"), "--timeout"),
        (("SchedulingBasic", "--config", "a", "--preset", "b"), "exclude each other"),
    ],
)
def test_wrong_flags_are_reported_before_anything_runs(arguments, text):
    launcher = Spy()

    result = run(*arguments, *INLINE, launcher=launcher)

    assert result.exit_code == 2
    assert text in result.stderr
    assert launcher.asked == []


def test_a_profile_that_can_not_be_written_is_reported(tmp_path):
    path = tmp_path / "none" / "p.json"

    result = run("SchedulingBasic/5Nodes", *INLINE, "--profile", path)

    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_no_name_is_broken_without_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    assert wide_console().width == 90, "the reader asks for a width"
    monkeypatch.delenv("COLUMNS")
    assert wide_console().width == WIDTH_OF_FILE_CHARS
