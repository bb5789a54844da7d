"""Older configurations on the command line: the printed notes, and the decisions of runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from roadstead.cli.config_command import config_command
from roadstead.config.load import load_config
from tests.cli.conftest import Run
from tests.cli.manifests import node, pod, write

POLICY = {
    "apiVersion": "v1",
    "kind": "Policy",
    "predicates": [
        {"name": "PodFitsResources"},
        {"name": "Retiring", "argument": {"labelsPresence": {"labels": ["retiring"]}}},
    ],
    "priorities": [{"name": "MostRequested", "weight": 2}],
    "alwaysCheckAllPredicates": True,
}
RETIRING = "node(s) didn't have the requested labels"


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(POLICY))
    return str(path)


@pytest.fixture
def fleet(tmp_path: Path) -> str:
    """Write two nodes with different utilization, and one that is being retired."""
    retiring = node("old")
    retiring["metadata"]["labels"]["retiring"] = "2020"
    return write(
        tmp_path / "fleet.json",
        node("empty"),
        node("full"),
        retiring,
        pod("old-pod", "2", nodeName="full"),
        pod("new", "1"),
    )


def config(*arguments: str):
    return CliRunner().invoke(config_command, list(arguments))


def test_config_prints_the_current_document_and_reports_changes_separately(policy: str) -> None:
    result = config("--config", policy)

    document = yaml.safe_load(result.stdout)
    assert document["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert document["kind"] == "KubeSchedulerConfiguration"
    assert load_config(result.stdout, source="again").notes == ()
    lines = result.stderr.splitlines()
    assert (
        f'{policy}: predicates[0]: "PodFitsResources" → NodeResourcesFit at filter and preFilter'
        in lines
    )
    assert any(line.startswith(f"{policy}: alwaysCheckAllPredicates: dropped") for line in lines)


def test_notes_are_printed_alone_on_standard_output(policy: str) -> None:
    result = config("--config", policy, "--notes")

    assert 'predicates[0]: "PodFitsResources" → NodeResourcesFit' in result.stdout
    assert "apiVersion: kubescheduler" not in result.stdout
    assert result.stderr == ""


def test_notes_are_json_on_request(policy: str) -> None:
    result = config("--config", policy, "--notes", "--output-format", "json")

    notes = json.loads(result.stdout)
    assert notes[0] == {
        "field": "kind",
        "note": "Policy v1 → KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)",
    }
    assert {note["field"] for note in notes} >= {"predicates[0]", "priorities[0]"}


def test_a_current_document_has_no_notes() -> None:
    assert config("--notes").stdout == ""
    assert config("--notes", "--output-format", "json").stdout == "[]\n"
    assert config().stderr == ""


def test_notes_and_effective_exclude_each_other() -> None:
    result = config("--notes", "--effective")

    assert result.exit_code == 2
    assert "--notes and --effective exclude each other" in result.stderr


def test_effective_shows_the_plugins_of_a_provider() -> None:
    result = config("--preset", "ClusterAutoscalerProvider", "--effective")

    assert "NodePreferAvoidPods (weight 10000)" in result.stdout
    assert "MostRequestedPriority in place of LeastRequestedPriority" in result.stderr


def test_a_run_applies_a_policy_and_prints_its_notes(run: Run, fleet: str, policy: str) -> None:
    result = run("schedule", "--cluster", fleet, "--config", policy, "--format", "json")

    summary = json.loads(result.stdout)
    assert (summary["placed"], summary["pending"]) == (1, 0)
    assert [note["field"] for note in summary["config_notes"]][:2] == ["kind", "predicates[0]"]
    assert f"{policy}: priorities[0]: " in result.stderr


def test_a_run_with_a_current_document_has_no_notes(run: Run, fleet: str) -> None:
    result = run("schedule", "--cluster", fleet, "--preset", "spread", "--format", "json")

    assert "config_notes" not in json.loads(result.stdout)


def test_explain_shows_dropped_plugins_beside_the_others(run: Run, fleet: str, policy: str) -> None:
    result = run("explain", "new", "--cluster", fleet, "--config", policy, "--format", "json")

    answer = json.loads(result.stdout)
    assert answer["best"] == ["full"]
    (refused,) = answer["filterStatuses"]
    assert answer["filter"].count(1) == 1
    assert refused["plugin"] == "NodeLabel"
    assert refused["reasons"] == [RETIRING]


def test_an_output_folder_contains_the_notes(
    run: Run, fleet: str, policy: str, tmp_path: Path
) -> None:
    run("schedule", "--cluster", fleet, "--config", policy, "--output", tmp_path / "out")

    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    written = json.loads((tmp_path / "out" / "run.json").read_text())
    assert summary["config_notes"][0]["field"] == "kind"
    assert written["config"]["kind"] == "KubeSchedulerConfiguration"


def test_an_invalid_policy_is_refused_with_its_field(run: Run, fleet: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(POLICY | {"priorities": [{"name": "Luck", "weight": 1}]}))

    result = run("schedule", "--cluster", fleet, "--config", path)

    assert result.exit_code == 2
    assert (
        f'{path}: priorities[0].name: "Luck": is not a priority that kube-scheduler has had'
        in result.stderr
    )
