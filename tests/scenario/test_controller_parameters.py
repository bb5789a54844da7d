"""Fields that a controller of a scenario reads from the file of its object."""

import json

import pytest

from roadstead.config.scenario.read import load_scenario
from roadstead.scenario.compile import compile_scenario

POD = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "web"}]},
}


def compiled(tmp_path, key, kind, spec):
    """Compile a scenario with one controller; return its plan."""
    api = "batch/v1" if kind == "Job" else "apps/v1"
    labels = {} if kind == "Job" else {"selector": {"matchLabels": {"app": "web"}}}
    template = POD
    if kind == "Job":
        template = {**POD, "spec": {**POD["spec"], "restartPolicy": "Never"}}
    document = {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"template": template, **labels, **spec},
    }
    (tmp_path / "web.json").write_text(json.dumps(document))
    scenario = {
        "apiVersion": "roadstead.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "test"},
        "fleet": [{"generate": {"nodes": 1, "shape": "cpu-4"}}],
        "workload": [
            {key: {"template": "web.json", **({"duration": "1m"} if kind == "Job" else {})}}
        ],
    }
    (tmp_path / "scenario.yaml").write_text(json.dumps(scenario))
    (plan,) = compile_scenario(load_scenario(tmp_path / "scenario.yaml")).controllers
    return plan


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("deployment", "Deployment"),
        ("replicaSet", "ReplicaSet"),
        ("statefulSet", "StatefulSet"),
        ("daemonSet", "DaemonSet"),
    ],
)
def test_min_ready_seconds_apply_to_all_controllers_that_have_them(tmp_path, key, kind):
    assert compiled(tmp_path, key, kind, {"minReadySeconds": 15}).min_ready_us == 15_000_000
    assert compiled(tmp_path, key, kind, {}).min_ready_us == 0


def test_a_deployment_may_recreate(tmp_path):
    recreate = {"strategy": {"type": "Recreate"}}

    assert compiled(tmp_path, "deployment", "Deployment", recreate).recreates
    assert not compiled(tmp_path, "deployment", "Deployment", {}).recreates


@pytest.mark.parametrize(
    ("key", "kind"), [("statefulSet", "StatefulSet"), ("daemonSet", "DaemonSet")]
)
def test_a_strategy_on_delete_leaves_pods_alone(tmp_path, key, kind):
    on_delete = {"updateStrategy": {"type": "OnDelete"}}

    assert compiled(tmp_path, key, kind, on_delete).updates_on_delete
    assert not compiled(tmp_path, key, kind, {}).updates_on_delete


def test_a_job_reads_its_bounds(tmp_path):
    spec = {"completions": 7, "parallelism": 3, "backoffLimit": 2}

    plan = compiled(tmp_path, "job", "Job", spec)

    assert (plan.replicas, plan.parallelism, plan.backoff_limit) == (7, 3, 2)
