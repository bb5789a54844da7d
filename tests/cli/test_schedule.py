"""`roadstead schedule`: from manifests or a trace to placements and reasons."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from roadstead.config.load import load_config
from roadstead.config.presets import load_preset, preset_text
from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.trace_file import write_trace
from tests.cli.conftest import Run
from tests.cli.manifests import deployment, node, pod, text_of, write
from tests.cli.plain_launcher import PlainLauncher
from tests.tables import read_rows

FILES = ("nodes", "pending", "placements")
SETTINGS = "workers: 3\nbatch: 16\ntie_break: first\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "small.trace"
    write_trace(path, generate_fleet(6, 40, 1))
    return path


def sha256(path: Path | str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_manifests_are_scheduled_and_summarized(run: Run, cluster: str, pods: str) -> None:
    result = run("schedule", "--cluster", cluster, "--pods", pods)

    assert result.exit_code == 0
    assert result.stdout.startswith("2 placed, 1 pending of 3 pods on 3 nodes")
    assert "Insufficient cpu" in result.stdout


@pytest.mark.parametrize(
    ("form", "first"),
    [
        ("wide", "2 placed, 1 pending of 3 pods on 3 nodes"),
        ("csv", "pod,workload,node,reason,score\ndefault/"),
        ("name", "default/"),
        ("yaml", "source: "),
    ],
)
def test_every_pod_is_shown_in_the_requested_format(
    run: Run, cluster: str, pods: str, form: str, first: str
) -> None:
    result = run("schedule", "--cluster", cluster, "--pods", pods, "-o", form)

    names = [each["pod"] for each in json.loads(run(*result_in_json(cluster, pods)).stdout)["pods"]]
    assert result.exit_code == 0
    assert result.stdout.startswith(first)
    assert len(names) == 3
    assert all(name in result.stdout for name in names)


def result_in_json(cluster: str, pods: str) -> tuple[str, ...]:
    return "schedule", "--cluster", cluster, "--pods", pods, "--format", "json"


def test_a_trace_is_scheduled_in_its_own_order(
    run: Run, launcher: PlainLauncher, trace: Path
) -> None:
    result = run("schedule", "--trace", trace)

    expected = generate_fleet(6, 40, 1)
    assert result.exit_code == 0
    assert list(launcher.inputs.nodes) == expected.nodes()
    assert list(launcher.inputs.pending) == list(expected.pods())
    assert launcher.plan.cluster.namespaces == expected.namespaces


def test_a_dash_reads_standard_input(
    run: Run, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(cluster).parent)
    stdin = text_of(pod("small"), deployment("web", 2))

    result = run("schedule", "--cluster", "*.json", "--pods", "-", "--format", "json", stdin=stdin)

    document = json.loads(result.stdout)
    assert document["placed"] == 3
    assert document["source"] == "*.json, standard input"


def test_omitted_objects_are_reported_on_standard_error(run: Run) -> None:
    stdin = text_of(node("n-1"), pod("lost", nodeName="gone"))

    result = run("schedule", "--cluster", "-", stdin=stdin)

    note = "Left out: 1 running pod on nodes that the manifests do not have (gone).\n"
    assert result.stderr.startswith(note)
    assert "Left out" not in result.stdout


def test_unknown_fields_are_reported_or_refused(run: Run) -> None:
    pods = [pod(f"p-{n}", nodeSelecter={"a": "b"}) for n in range(12)]
    stdin = text_of(node("n-1"), *pods)

    result = run("schedule", "--cluster", "-", stdin=stdin)
    refused = run("schedule", "--cluster", "-", "--strict", stdin=stdin)

    lines = result.stderr.splitlines()
    assert result.exit_code == 0
    assert lines[0].startswith('Left out: standard input: Pod "p-0": spec: "nodeSelecter" is no ')
    assert lines[10] == "Left out: 2 more unknown fields."
    assert refused.exit_code == 2
    assert "did you mean nodeSelector?" in refused.stderr


def test_bindings_are_printed_and_unbound_pods_are_reported(run: Run, tmp_path: Path) -> None:
    stdin = text_of(node("n-1"), pod("alone"))

    result = run("schedule", "--cluster", "-", "-o", "bindings", stdin=stdin)
    assert "kind: Binding" in result.stdout
    assert "Left out" not in result.stderr

    workload = text_of(deployment("web", 2))
    both = ("schedule", "--cluster", tmp_path / "nodes.json", "--pods", "-", "-o", "bindings")
    write(tmp_path / "nodes.json", node("n-1"))
    result = run(*both, stdin=workload)
    assert (
        "Left out: 2 placed pods that do not exist until a controller creates them."
        in result.stderr
    )


def test_results_of_another_run_are_replaced_only_by_force(
    run: Run, cluster: str, pods: str, tmp_path: Path
) -> None:
    asked = ("schedule", "--cluster", cluster, "--pods", pods, "--output", tmp_path / "out")
    assert run(*asked).exit_code == 0
    before = sha256(tmp_path / "out" / "run.json")

    again = run(*asked, "--seed", 3)
    by_force = run(*asked, "--seed", 3, "--force")

    text = f"{tmp_path}/out: holds the results of another run; --force replaces them\n"
    assert (again.exit_code, again.stderr) == (2, text)
    assert by_force.exit_code == 0
    assert sha256(tmp_path / "out" / "run.json") != before


def test_the_first_of_many_sources_has_its_full_name(run: Run, cluster: str) -> None:
    more = [part for _ in range(9) for part in ("--cluster", f"{cluster[:-1]}?")]

    result = run("schedule", "--cluster", cluster, *more, "--format", "json")

    assert json.loads(result.stdout)["source"] == f"{cluster} and 1 more"


def test_a_cluster_alone_has_its_own_pending_pods(run: Run) -> None:
    stdin = text_of(node("n-1"), pod("waits"), pod("runs", nodeName="n-1"))

    result = run("schedule", "--cluster", "-", "--format", "json", stdin=stdin)

    assert json.loads(result.stdout)["placed"] == 1


def test_json_has_reasons_with_counts(run: Run, cluster: str, pods: str) -> None:
    result = run("schedule", "--cluster", cluster, "--pods", pods, "--format", "json")

    document = json.loads(result.stdout)
    assert (document["placed"], document["pending"], document["nodes"]) == (2, 1, 3)
    assert {each["reason"]: each["nodes"] for each in document["pending_reasons"]} == {
        "Insufficient cpu": 2,
        "node(s) had untolerated taint {k: v}": 1,
    }
    assert sorted(document["zones"]) == ["a", "b"]


def test_the_output_contains_every_pod_as_parquet_and_json(
    run: Run, cluster: str, pods: str, tmp_path: Path
) -> None:
    run("schedule", "--cluster", cluster, "--pods", pods, "--output", tmp_path / "out")

    placed = json.loads((tmp_path / "out" / "placements.json").read_text())
    assert [each["pod"] for each in placed] == ["default/large", "default/small"]
    assert read_rows(tmp_path / "out" / "placements.parquet") == placed
    (giant,) = json.loads((tmp_path / "out" / "pending.json").read_text())
    assert giant["message"].startswith("0/3 nodes are available: ")
    nodes = json.loads((tmp_path / "out" / "nodes.json").read_text())
    assert [each["node"] for each in nodes] == ["n-1", "n-10", "n-2"]
    assert nodes[0]["before"]["cpu"] == 500
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["placed"] == 2


def test_two_runs_write_the_same_bytes(run: Run, trace: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        run("schedule", "--trace", trace, "--seed", 5, "--output", tmp_path / name)

    for name in (f"{file}.{form}" for file in FILES for form in ("json", "parquet")):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_output_names_everything_on_which_the_run_depends(
    run: Run, cluster: str, pods: str, tmp_path: Path
) -> None:
    settings, config = tmp_path / "mine.yaml", tmp_path / "config.yaml"
    settings.write_text(SETTINGS)
    config.write_text(preset_text("binpack"))
    args = ("schedule", "--cluster", cluster, "--pods", pods, "--settings", settings,
            "--config", config, "--seed", 4, "--output", tmp_path / "out")  # fmt: skip

    run(*args)

    document = json.loads((tmp_path / "out" / "run.json").read_text())
    assert document["command"] == ["roadstead", *map(str, args)]
    assert document["inputs"] == [
        {"name": str(path), "sha256": sha256(path)} for path in (cluster, pods, config, settings)
    ]
    assert document["seed"] == document["settings"]["seed"] == 4
    assert document["settings"]["batch"] == 16
    sampled = {"percentageOfNodesToScore": 0}
    assert document["config"] | sampled == load_preset("binpack").document
    assert {"roadstead", "python", "numpy"} <= document["versions"].keys()


def test_the_digest_of_standard_input_is_that_of_the_read_bytes(
    run: Run, cluster: str, tmp_path: Path
) -> None:
    stdin = text_of(pod("small"))

    run("schedule", "--cluster", cluster, "--pods", "-", "--output", tmp_path / "o", stdin=stdin)

    inputs = json.loads((tmp_path / "o" / "run.json").read_text())["inputs"]
    assert inputs[1] == {
        "name": "standard input",
        "sha256": hashlib.sha256(stdin.encode()).hexdigest(),
    }


def test_the_default_configuration_is_written_completely_and_without_a_percentage(
    run: Run, trace: Path, tmp_path: Path
) -> None:
    run("schedule", "--trace", trace, "--output", tmp_path / "out")

    document = json.loads((tmp_path / "out" / "run.json").read_text())
    assert "percentageOfNodesToScore" not in document["config"]
    sampled = {"percentageOfNodesToScore": 0}
    assert document["config"] | sampled == load_preset("default").document
    assert not load_config(
        json.dumps(document["config"]), source="run.json"
    ).config.sampling_percentages()
    assert document["inputs"] == [{"name": str(trace), "sha256": sha256(trace)}]


def test_a_configured_percentage_is_written(run: Run, trace: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(preset_text("default") + "percentageOfNodesToScore: 30\n")

    run("schedule", "--trace", trace, "--config", config, "--output", tmp_path / "out")

    document = json.loads((tmp_path / "out" / "run.json").read_text())
    assert document["config"]["percentageOfNodesToScore"] == 30


def test_flags_override_the_settings_file(
    run: Run, launcher: PlainLauncher, trace: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "mine.yaml"
    settings.write_text(SETTINGS)

    run("schedule", "--trace", trace, "--settings", settings, "--workers", 5, "--runtime", "inline",
        "--schedulers", 2, "--journal", tmp_path / "journal", "--score-nodes", "all")  # fmt: skip

    plan = launcher.plan.settings
    assert (plan.workers, plan.batch, plan.tie_break) == (5, 16, "first")
    assert plan.score_nodes == "all"
    assert (plan.runtime, plan.schedulers, plan.journal) == ("inline", 2, tmp_path / "journal")


def test_an_address_of_ray_is_refused_for_a_run_in_this_process(
    run: Run, trace: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "mine.yaml"
    settings.write_text("runtime: inline\n")
    for inline in (("--runtime", "inline"), ("--settings", settings)):
        refused = run("schedule", "--trace", trace, "--ray-address", "10.0.0.1:6379", *inline)

        assert refused.exit_code == 2
        assert "--ray-address" in refused.output
        assert "has no use with the runtime inline" in refused.output


def test_a_run_is_planned_with_the_preset(run: Run, launcher: PlainLauncher, trace: Path) -> None:
    run("schedule", "--trace", trace, "--preset", "binpack")

    assert launcher.plan.config() == load_preset("binpack").config
    assert launcher.plan.config_source == "preset binpack"


def test_a_configuration_can_be_read_from_standard_input(
    run: Run, launcher: PlainLauncher, trace: Path
) -> None:
    run("schedule", "--trace", trace, "--config", "-", stdin=preset_text("spread"))

    assert launcher.plan.config() == load_config(preset_text("spread"), source="x").config
    assert launcher.plan.config_source == "standard input"


def test_a_configuration_changes_the_placements(run: Run, tmp_path: Path) -> None:
    nodes = write(tmp_path / "n.json", node("a"), node("b"), pod("old", nodeName="b"))
    new = write(tmp_path / "p.json", pod("new"))
    placed = []
    for preset in ("default", "binpack"):
        out = tmp_path / preset
        run("schedule", "--cluster", nodes, "--pods", new, "--preset", preset, "--output", out)
        placed += [each["node"] for each in json.loads((out / "placements.json").read_text())]

    assert placed == ["a", "b"]


def test_control_characters_of_inputs_are_never_printed(
    run: Run, cluster: str, tmp_path: Path
) -> None:
    hostile = "\x1b[2J\x9b1m"
    other = {"apiVersion": "v1", "kind": f"Other{hostile}"}
    fine = write(tmp_path / "pods.json", pod("p"), other)
    broken = write(tmp_path / f"broken{hostile}.json", pod(f"a{hostile}"))

    scheduled = run("schedule", "--cluster", cluster, "--pods", str(fine))
    refused = run("schedule", "--cluster", cluster, "--pods", str(broken))

    assert (scheduled.exit_code, refused.exit_code) == (0, 2)
    assert "Other\\x1b[2J" in scheduled.stderr
    assert 'metadata.name: "a\\x1b[2J\\x9b1m" is not allowed' in refused.stderr
    for text in (scheduled.stdout, scheduled.stderr, refused.stdout, refused.stderr):
        assert all(char.isprintable() or char == "\n" for char in text)
