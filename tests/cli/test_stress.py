"""Proves `roadstead stress`: its options, its runs and its output."""

import json

import pytest
from click.testing import CliRunner

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.api.product_runs import settings_of
from roadstead.cli import stress_run
from roadstead.cli.main import build_cli
from roadstead.cli.stress_plan import preset_definition, study_of, with_flags
from roadstead.cli.stress_product import PARAMETERS, is_possible, is_repeated
from roadstead.cli.sweep_progress import SweepProgress
from roadstead.lab.presets import PRESETS
from roadstead.lab.studies import Study
from roadstead.lab.sweep import make_sweep
from tests.cli.manifests import node, pod, write

SMALL = ("--vary", "machines=100", "--vary", "horizon_s=300", "--seeds", "2")
HEAVY = (
    *("--preset", "constraint-heavy", "--engine", "virtual", "--seeds", "1"),
    *("--vary", "nodes=32", "--vary", "pods=160", "--batch", "16"),
)


@pytest.fixture
def stress():
    """Call the command over real actors; an error that is not an exit fails the test."""

    def call(*args):
        arguments = ["stress", *map(str, args)]
        return CliRunner().invoke(build_cli(ActorLauncher), arguments, catch_exceptions=False)

    return call


def written(tmp_path, text):
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    return path


def test_flags_alone_sweep_the_omega_model(stress):
    result = stress(
        *SMALL, "--decision-time", "0.1,5", "--conflicts", "version", "--format", "json"
    )

    report = json.loads(result.stdout)
    assert result.exit_code == 0
    assert report["study"] == "omega"
    assert [each["values"] for each in report["points"]] == [
        {"service_job_s": 0.1},
        {"service_job_s": 5.0},
    ]
    assert "recommendation" not in report


def test_the_table_shows_the_swept_values_and_figures(stress):
    result = stress(*SMALL, "--schedulers", "1,2")

    assert "batch schedulers" in result.stdout
    assert "0 of 4 runs done, 1 running: batch_schedulers 1" in result.stderr


def test_the_table_names_the_seeds_of_its_means_and_the_given_values(stress):
    two = stress(*SMALL, "--first-seed", "5", "--schedulers", "1,2")
    one = stress(*SMALL, "--seeds", "1")

    assert "Means over seeds 5 to 6; ±: half of the 95% interval." in two.stdout
    assert "Set: machines 100, horizon_s 300.0." in " ".join(two.stdout.split())
    assert "One seed (0): no intervals." in one.stdout


@pytest.mark.parametrize("width", ["80", "120", "200"])
def test_the_list_has_every_preset_and_parameter_and_fits_the_terminal(stress, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)

    lines = stress("--list").stdout.splitlines()

    words = {word for line in lines for word in line.split()}
    assert [line for line in lines if len(line) > int(width)] == []
    assert {"batch_rate", "sync_gap_s", "adaptive_wait_s", "recheck", "workload"} <= words
    assert set(PRESETS) <= words
    assert any(line.split()[:3] == ["batch_schedulers", "--schedulers", "1"] for line in lines)
    assert any(line.split()[:3] == ["machines", "--vary", "10000"] for line in lines)


def interrupt_at(monkeypatch, done):
    """Interrupt a sweep once this number of its runs has ended."""
    show = SweepProgress.__call__

    def interrupt(self, counts, last):
        show(self, counts, last)
        if counts.done == done:
            raise KeyboardInterrupt

    monkeypatch.setattr(SweepProgress, "__call__", interrupt)


def test_an_interrupted_sweep_prints_and_counts_the_finished_runs(stress, monkeypatch):
    interrupt_at(monkeypatch, 3)

    result = stress(*SMALL, "--schedulers", "1,2", "--format", "json")

    assert result.exit_code == 1
    assert [each["values"] for each in json.loads(result.stdout)["points"]] == [
        {"batch_schedulers": 1}
    ]
    assert "Incomplete sweep: 2 of at most 4 runs" in result.stderr


@pytest.mark.parametrize(
    ("has_exact", "mode", "schedulers", "runs"),
    [
        (True, "exact", 1, True),
        (True, "exact", 2, False),
        (True, "shared", 1, False),
        (False, "shared", 1, True),
        (True, "shared", 2, True),
    ],
)
def test_exact_mode_has_one_scheduler_and_shared_mode_beside_it_has_several(
    has_exact, mode, schedulers, runs
):
    assert is_possible(has_exact, {"mode": mode, "schedulers": schedulers}) == runs


@pytest.mark.parametrize(
    ("values", "is_left_out"),
    [
        ({"mode": "shared", "partitions": 8, "staleness_s": 0.0}, True),
        ({"mode": "shared", "partitions": 4, "staleness_s": 2.0}, False),
        ({"mode": "partitioned", "partitions": 8, "staleness_s": 2.0}, False),
        ({"mode": "exact", "partitions": 4, "staleness_s": 2.0}, True),
    ],
)
def test_parameters_that_a_mode_does_not_use_are_not_swept_with_it(values, is_left_out):
    assert is_repeated({"partitions": 4, "staleness_s": 0.0}, values) == is_left_out


def test_partitions_are_swept_in_partitioned_mode_and_run_once_in_others(stress):
    result = stress(
        *("--study", "product", "--engine", "virtual", "--seeds", "1", "--schedulers", "2"),
        *("--vary", "nodes=8", "--vary", "pods=8", "--vary", "partitions=2,4"),
        *("--mode", "shared,partitioned", "--format", "json"),
    )

    assert [each["values"] for each in json.loads(result.stdout)["points"]] == [
        {"partitions": 2, "mode": "shared"},
        {"partitions": 2, "mode": "partitioned"},
        {"partitions": 4, "mode": "partitioned"},
    ]


def test_an_axis_with_other_values_keeps_its_place():
    asked = with_flags(preset_definition("parsync-partitions"), [("partitions", "1,20")], {})

    assert list(asked.vary) == ["partitions", "variance", "look"]
    assert asked.vary["partitions"] == ["1", "20"]


@pytest.mark.parametrize(
    ("engine", "load", "is_warned"),
    [("ray", 9.0, True), ("inline", 4.0, True), ("ray", 1.0, False), ("virtual", 9.0, False)],
)
def test_speed_on_a_busy_machine_gets_a_warning(engine, load, is_warned):
    assert ("load" in stress_run.busy_note(engine, load, cores=4)) == is_warned


def test_a_file_sets_the_same_parameters_as_flags_which_override_it(stress, tmp_path):
    path = written(
        tmp_path,
        "title: Mine\nvary: {batch_schedulers: [1, 2]}\n"
        "set: {machines: 100, horizon_s: 300, conflicts: version}\nseeds: 2\n",
    )

    result = stress("--file", path, "--schedulers", "4", "--output", tmp_path / "out")

    runs = json.loads((tmp_path / "out" / "runs.json").read_text())
    assert result.exit_code == 0
    assert runs["title"] == "Mine"
    assert runs["vary"] == {}
    assert runs["set"] == {
        "machines": 100,
        "horizon_s": 300.0,
        "conflicts": "version",
        "batch_schedulers": 4,
    }
    assert len(runs["runs"]) == 2
    assert f"Written to {tmp_path / 'out'}" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vary: [1]", "vary: must be a mapping from parameters to values"),
        ("vary: {load: 0.5}", "vary.load: must be a list of values"),
        ("set: []", "set: must be a mapping from parameters to values"),
        ("colour: red", '"colour": is none of title, study'),
        ("[]", "must be a mapping with title"),
        ("seeds: 0", 'seeds: "0" must be a whole number from 1 to 1000'),
        ("seeds: true", "seeds"),
        ("study: tetris", 'study: "tetris" is none of omega'),
        ("vary: {load: [2]}", 'load: "2" must be a number from 0 to 0.99'),
        ("engine: ray", 'engine: "ray" must be model for the study omega'),
        ("study: product\nengine: model", "must be virtual, inline or ray for the study product"),
        (f"title: {'x' * (1 << 20)}", "is longer than 1,048,576 bytes"),
    ],
)
def test_a_wrong_file_is_reported_with_position_and_rule(stress, tmp_path, text, message):
    result = stress("--file", written(tmp_path, text))

    assert result.exit_code == 2
    assert "sweep.yaml" in result.stderr
    assert message in result.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--preset", "nonsense"), '"nonsense" is none of quick'),
        (("--file", "missing.yaml"), "missing.yaml: cannot be read"),
        (("--vary", "load"), '"load" must be NAME=VALUE'),
        (("--vary", "colour=red"), '"colour": is no parameter of omega'),
        (("--load", "high"), 'load: "high" must be a number'),
        (("--preset", "quick", "--file", "x"), "exclude each other"),
        (("--engine", "virtual"), "must be model for the study omega"),
        (("--pods", "x"), "--pods needs --cluster"),
    ],
)
def test_wrong_flags_are_reported(stress, flags, message):
    result = stress(*flags)

    assert result.exit_code == 2
    assert message in result.stderr


def test_a_foreign_output_directory_is_refused_before_the_first_run(stress, tmp_path):
    (tmp_path / "notes.txt").touch()

    result = stress("--preset", "quick", "--output", tmp_path)

    assert result.exit_code == 2
    assert "runs done" not in result.stderr


def test_another_study_than_the_presets_starts_from_its_own_defaults(stress):
    flags = ("--vary", "tasks_per_s=400", "--vary", "capacity_per_s=60", "--seeds", "1")

    result = stress("--preset", "quick", "--study", "extra-slots", *flags, "--format", "json")

    assert json.loads(result.stdout)["study"] == "extra-slots"


def test_constraint_heavy_finds_no_violation_with_the_recheck_and_some_without(stress, tmp_path):
    folder = tmp_path / "heavy"

    result = stress(*HEAVY, "--output", folder, "--format", "json")

    points = json.loads(result.stdout)["points"]
    share = {
        each["values"]["recheck"]: each["figures"]["violation_share"]["mean"] for each in points
    }
    assert share["all"] == 0.0
    assert share["none"] > 0.0
    assert "recommendation" not in json.loads(result.stdout)
    check = CliRunner().invoke(build_cli(ActorLauncher), ["check", str(folder)])
    unchecked = CliRunner().invoke(
        build_cli(ActorLauncher), ["check", str(folder / "runs" / "003")]
    )
    assert (check.exit_code, unchecked.exit_code) == (0, 1)


def test_a_second_sweep_never_touches_the_journals_of_the_first(stress, tmp_path):
    folder = tmp_path / "heavy"
    stress(*HEAVY, "--output", folder)

    result = stress(*HEAVY, "--output", folder)

    assert result.exit_code == 2
    assert "holds journals of an earlier sweep" in result.stderr


def test_a_sweep_of_a_users_own_cluster_ends_with_a_recommendation(stress, tmp_path):
    cluster = write(tmp_path / "cluster.json", node("n-1", zone="a"), node("n-2", zone="b"))
    pods = write(tmp_path / "pods.json", *(pod(f"p{index}", "100m") for index in range(12)))

    result = stress(
        *("--cluster", cluster, "--pods", pods, "--engine", "virtual", "--seeds", "2"),
        *("--schedulers", "1,2", "--mode", "exact,shared", "--batch", "4"),
    )

    assert result.exit_code == 0
    assert "Recommended: schedulers " in result.stdout
    assert "Virtual time counts messages and simulated decisions" in result.stdout
    assert "It places 12 pods; 2 of 2 combinations" in result.stdout


def test_a_sweep_of_a_users_own_cluster_records_its_inputs(stress, tmp_path):
    cluster = write(tmp_path / "cluster.json", node("n-1"), node("n-2"))
    pods = write(tmp_path / "pods.json", *(pod(f"p{index}", "100m") for index in range(3)))
    source = ("--cluster", cluster, "--pods", pods, "--engine", "virtual", "--seeds", "1")

    stress(*source, "--output", tmp_path / "out")
    other = stress(*source, "--vary", "nodes=7")

    runs = json.loads((tmp_path / "out" / "runs.json").read_text())
    points = json.loads((tmp_path / "out" / "points.json").read_text())
    assert [each["name"] for each in runs["inputs"]] == [cluster, pods]
    assert all(len(each["sha256"]) == 64 for each in runs["inputs"])
    assert runs["engine"] == "virtual"
    assert runs["machine"]["cores"] > 0
    assert "commit" in runs
    assert (runs["runs"][0]["values"]["nodes"], runs["runs"][0]["values"]["pods"]) == (2, 3)
    assert (points["seeds"], points["set"]) == ([0], {})
    assert other.exit_code == 2
    assert 'nodes: "7" must be a whole number from 2 to 2' in other.stderr


@pytest.mark.parametrize(("batch", "is_warned"), [("30", True), ("4", False)])
def test_a_batch_that_contains_all_pods_is_reported_since_conflicts_are_impossible(
    stress, batch, is_warned
):
    flags = ("--vary", "nodes=8", "--vary", "pods=30", "--batch", batch, "--seeds", "1")
    product = ("--study", "product", "--engine", "virtual", *flags)

    swept = stress(*product, "--schedulers", "2,3")
    alone = stress(*product, "--schedulers", "2")

    warning = "A batch of 30 holds all 30 pods: one scheduler leases them all"
    assert (warning in " ".join(swept.stdout.split())) == is_warned
    assert (warning in " ".join(alone.stderr.split())) == is_warned


def test_a_generated_fleet_is_the_default_workload_and_each_scheduler_gets_a_partition(stress):
    result = stress(
        *("--study", "product", "--engine", "virtual", "--seeds", "1", "--mode", "partitioned"),
        *("--vary", "nodes=12", "--vary", "pods=20", "--schedulers", "3", "--format", "json"),
    )

    (point,) = json.loads(result.stdout)["points"]
    assert point["figures"]["placed"]["mean"] > 0
    assert point["figures"]["violations"]["mean"] == 0


def test_values_become_settings_only_where_they_apply(tmp_path):
    defaults = {each.name: each.default for each in PARAMETERS}

    exact = settings_of(
        defaults | {"mode": "exact", "schedulers": 1, "staleness_s": 2.0}, 7, "ray", tmp_path
    )
    slow = settings_of(
        defaults | {"staleness_s": 2.0, "decision_job_s": 0.5}, 7, "virtual", tmp_path
    )

    assert (exact.runtime, exact.seed, exact.staleness_s) == ("ray", 7, None)
    assert (slow.runtime, slow.staleness_s) == ("inline", 2.0)
    assert slow.decision_time.service.of(3) == 0.5
    assert exact.decision_time.is_positive is False


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_run(name):
    asked = preset_definition(name)
    product = Study("product", "", PARAMETERS, lambda values, seed: {}, ())

    study = study_of(asked, product)

    names = {each.name for each in study.parameters} | {"workload"}
    assert asked.engine in ("model", "virtual", "inline", "ray")
    assert {*asked.vary, *asked.set} <= names
    if asked.study != "product":
        make_sweep(study, asked.vary, asked.set, [0], source=asked.source)
