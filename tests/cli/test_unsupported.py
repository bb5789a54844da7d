"""Pods that need what runs do not have are refused before a run, or left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.manifests import node, pod, text_of
from tests.cli.plain_launcher import PlainLauncher

CLAIMS = [{"name": "gpu", "resourceClaimName": "g"}]
PODS = text_of(node("n-1"), pod("plain"), *(pod(f"d-{n}", resourceClaims=CLAIMS) for n in range(4)))


@pytest.fixture
def gated(tmp_path: Path) -> Path:
    """A settings file with a gate whose pods no run decides."""
    settings = tmp_path / "roadstead.yaml"
    settings.write_text("feature_gates: {DRADeviceBindingConditions: true}\n")
    return settings


def test_pods_that_runs_cannot_decide_are_refused_before_scheduling(
    run: Run, launcher: PlainLauncher, gated: Path
) -> None:
    result = run("schedule", "--cluster", "-", "--settings", gated, stdin=PODS)

    assert result.exit_code == 3
    field = "spec.resourceClaims with DRADeviceBindingConditions"
    assert result.stderr.startswith(f'Pod "default/d-0": {field}: needs the plugin')
    assert "leave out such pods: roadstead schedule --skip-unsupported" in result.stderr
    assert not hasattr(launcher, "inputs")


def test_pods_that_runs_cannot_decide_are_left_out_on_request(run: Run, gated: Path) -> None:
    result = run(
        *("schedule", "--cluster", "-", "--settings", gated),
        *("--skip-unsupported", "--format", "json"),
        stdin=PODS,
    )

    note = (
        "Left out, for lack of a plugin in this version: 4 pods (default/d-0, default/d-1, default/"
    )
    assert note in result.stderr
    assert [each["pod"] for each in json.loads(result.stdout)["pods"]] == ["default/plain"]


@pytest.mark.parametrize("is_skipped", [False, True])
def test_pods_with_claims_are_scheduled_where_the_plugin_is_disabled(
    run: Run, tmp_path: Path, is_skipped: bool
) -> None:
    plugins = {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = tmp_path / "config.json"
    config.write_text(json.dumps(head | {"profiles": [{"plugins": plugins}]}))
    flags = ("--skip-unsupported",) if is_skipped else ()

    result = run("schedule", "--cluster", "-", "--config", config, *flags, stdin=PODS)

    assert result.exit_code == 0
    assert "of 5 pods" in result.stdout
