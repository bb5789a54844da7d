"""The Python API returns what the commands print and write, and prints nothing itself."""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import roadstead
from roadstead.actors.entry import open_launcher
from roadstead.cli.main import build_cli
from tests.api.conftest import web
from tests.tables import read_table, rows_of

SOURCE = ("--cluster", "nodes.json", "--pods", "app", "--seed", "1", "--runtime", "inline")
MEASURED = {"pods_per_s", "scheduling_s", "elapsed_s", "timings_s"}
TABLES = ("placements", "pending", "preempted", "not_created", "devices", "nodes")


def command(*args: str) -> dict[str, object]:
    done = CliRunner().invoke(build_cli(open_launcher), args, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_a_result_equals_the_output_of_the_command(cluster):
    result = cluster.schedule(seed=1)

    printed = command("schedule", *SOURCE, "-o", "json")
    document = result.document()
    assert {k: v for k, v in document.items() if k not in MEASURED} == {
        k: v for k, v in printed.items() if k not in MEASURED
    }


def test_rows_are_typed_and_pending_pods_have_reasons(cluster):
    result = cluster.schedule(seed=1)

    assert (len(cluster.nodes), len(cluster.pending), cluster.running) == (2, 5, {})
    assert {each.node for each in result.placements} == {"n1", "n2"}
    assert result.pending[0].message.startswith("0/2 nodes are available: 2 Insufficient cpu")
    assert result.pods[0].workload == "Deployment default/web"
    assert [(each.name, each.placed, each.pending) for each in result.workloads] == [
        ("Deployment default/web", 4, 1)
    ]
    assert repr(result) == "<Result nodes.json, app: 4 placed, 1 pending>"


def test_arrow_tables_equal_the_files_of_the_command(cluster, manifests):
    result = cluster.schedule(seed=1)
    command("schedule", *SOURCE, "-o", "json", "--output", "out")

    for name in TABLES:
        table, written = result.to_arrow(name), read_table(manifests / "out" / f"{name}.parquet")
        assert table.schema == written.schema
        assert rows_of(table) == rows_of(written)


def test_a_result_is_written_as_the_command_writes_it(cluster, manifests):
    command("schedule", *SOURCE, "-o", "json", "--output", "theirs")

    cluster.schedule(seed=1).write("ours")

    for name in TABLES:
        ours, theirs = (manifests / folder / f"{name}.json" for folder in ("ours", "theirs"))
        assert ours.read_bytes() == theirs.read_bytes()
    runs = [json.loads((manifests / each / "run.json").read_text()) for each in ("ours", "theirs")]
    assert runs[0].keys() == runs[1].keys()
    assert [runs[0][key] for key in ("inputs", "config", "seed", "output_sha256")] == [
        runs[1][key] for key in ("inputs", "config", "seed", "output_sha256")
    ]


def test_results_of_another_run_are_replaced_only_by_force(cluster):
    result = cluster.schedule(seed=1)
    result.write("out")

    with pytest.raises(roadstead.InputError, match="force=True replaces them"):
        result.write("out")
    result.write("out", force=True)


def test_an_explanation_equals_that_of_the_command(cluster):
    explanation = cluster.explain("web", seed=1)

    assert explanation.document() == command("explain", "web", *SOURCE, "--format", "json")
    assert explanation.best == ("n1", "n2")
    assert explanation.pod == cluster.pending[0]
    assert "the first of them" in explanation.notes[-1]


def test_a_table_of_nodes_has_scores_or_the_plugin_that_filtered_a_node_out(cluster, manifests):
    (manifests / "nodes.json").write_text(
        (manifests / "nodes.json").read_text().replace('"cpu": "4"', '"cpu": "1"', 1)
    )
    explanation = roadstead.load("nodes.json", "app").explain("web")

    full, free = rows_of(explanation.to_arrow())
    assert (full["node"], full["plugin"], full["reason"]) == (
        "n1",
        "NodeResourcesFit",
        "Insufficient cpu",
    )
    assert full["total"] is None
    scores = [value for name, value in free.items() if name not in ("node", "plugin", "reason")]
    assert free["total"] == sum(scores) - free["total"] > 0
    assert [each.nodes for each in explanation.refusals] == [("n1",)]


def test_every_pending_pod_is_explained_as_by_the_command(cluster):
    report = cluster.explain_pending(after_run=True, seed=1)

    printed = command("explain", "--all-pending", "--after-run", *SOURCE, "--format", "json")
    assert report.document() == printed
    assert [each.state for each in report.sections] == ["unschedulable"]


def test_nothing_is_printed(cluster, capfd):
    cluster.schedule()
    cluster.explain("web")
    cluster.explain_pending()

    assert capfd.readouterr() == ("", "")


def test_progress_is_passed_to_a_callback(cluster):
    seen = []

    cluster.schedule(progress=seen.append)

    assert {"starting actors", "scheduling"} <= {each.phase for each in seen}
    assert seen[-1].total == 5


def test_a_run_works_inside_a_running_event_loop_as_in_a_notebook(cluster):
    async def cell():
        return cluster.schedule(seed=1), cluster.explain("web", after_run=True)

    result, explanation = asyncio.run(cell())

    assert result.placements == cluster.schedule(seed=1).placements
    assert explanation.message.startswith("0/2 nodes are available")


def test_a_configuration_in_effect_can_be_changed_and_run(cluster):
    config = roadstead.load_config(preset="binpack")
    assert config == command("config", "--preset", "binpack", "--output-format", "json")

    packed = cluster.schedule(config=config, seed=1)
    preset = cluster.schedule(preset="binpack", seed=1)

    assert packed.placements == preset.placements


def test_settings_are_a_file_or_a_mapping_and_arguments_override_them(cluster, manifests):
    (manifests / "roadstead.yaml").write_text("seed: 3\nbatch: 2\n")

    of_file = cluster.schedule(settings="roadstead.yaml")
    of_mapping = cluster.schedule(settings={"batch": 2}, seed=3)

    assert of_file.placements == of_mapping.placements == cluster.schedule(seed=3).placements


def test_the_notes_of_load_plan_and_run_are_on_the_result(manifests):
    (manifests / "app" / "web.json").write_text(json.dumps(web(1) | {"statuss": {}}))
    cluster = roadstead.load("nodes.json", ["app"])

    result = cluster.schedule(settings={"workers": 1})

    assert result.notes[: len(cluster.notes)] == cluster.notes
    assert any("The workers (1) can only list the best nodes" in note for note in result.notes)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda _: roadstead.load("nope.yaml"), "nope.yaml: does not exist"),
        (lambda _: roadstead.load(pods="app"), "arguments: cluster: is required: it has the nodes"),
        (
            lambda _: roadstead.load("nodes.json", trace="a.trace"),
            "arguments: trace: excludes cluster and pods",
        ),
        (
            lambda _: roadstead.load("nodes.json", lost_nodes="drop"),
            'arguments: lost_nodes: "drop" must be leave-out or reschedule',
        ),
        (lambda each: each.schedule(seed=-1), "arguments: seed: -1: must be at least 0"),
        (
            lambda each: each.schedule(config="a", preset="b"),
            "arguments: config and preset: exclude each other",
        ),
        (lambda each: each.schedule(settings={"batchh": 1}), "settings: batchh: 1: unknown field"),
        (
            lambda each: each.schedule(config={"kind": object()}),
            "config: is no JSON document: object is not a type of JSON",
        ),
        (
            lambda each: each.schedule().to_arrow("nope"),
            'table: "nope" is no table (there are: placements, pending, preempted, not_created, '
            "devices, nodes, pods)",
        ),
    ],
)
def test_a_wrong_argument_is_named_with_its_rule(cluster, call, text):
    with pytest.raises(roadstead.InputError) as refused:
        call(cluster)

    assert str(refused.value) == text
    assert refused.value.rule


def test_an_error_has_its_parts_as_attributes(manifests):
    (manifests / "nodes.json").write_text(
        (manifests / "nodes.json").read_text().replace('"cpu": "4"', '"cpu": "four"', 1)
    )
    with pytest.raises(roadstead.InputError) as refused:
        roadstead.load("nodes.json")

    error = refused.value
    assert (error.source, error.obj) == ("nodes.json", 'Node "n1"')
    assert error.field.startswith("status.allocatable")
    assert "four" in f"{error.value}{error.rule}"


def test_without_pandas_the_error_names_the_package_to_install(cluster, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(roadstead.RoadsteadError, match=r"pip install 'roadstead\[pandas\]'"):
        cluster.schedule().to_pandas()


@pytest.fixture
def _pandas(monkeypatch):
    """Replace pandas, which is not installed: frames are dicts of (values, dtype)."""
    fake = SimpleNamespace(DataFrame=dict, Series=lambda values, dtype: (list(values), dtype))
    monkeypatch.setitem(sys.modules, "pandas", fake)


@pytest.mark.usefixtures("_pandas")
def test_frames_have_the_columns_of_the_tables_and_keep_integers(cluster):
    nodes = cluster.schedule(seed=1).to_pandas("nodes")
    pending = cluster.schedule(seed=1).to_pandas("pending")

    assert nodes["node"] == (["n1", "n2"], str)
    assert nodes["cpu_after"] == ([4000, 4000], np.int64)
    assert pending["reasons"] == ([[{"reason": "Insufficient cpu", "nodes": 2}]], object)


@pytest.mark.usefixtures("_pandas")
def test_frames_of_explanations_have_floats_where_a_node_lacks_scores(cluster):
    frame = cluster.explain("web", after_run=True).to_pandas()

    assert frame["plugin"] == (["NodeResourcesFit", "NodeResourcesFit"], str)
    assert frame["total"] == ([None, None], np.float64)


def test_the_package_is_marked_as_typed():
    assert (Path(roadstead.__file__).parent / "py.typed").exists()
