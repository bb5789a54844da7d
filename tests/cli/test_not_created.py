"""Pods that admission refuses are neither placed nor pending, and named in every output format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.manifests import Manifest, deployment, node, pod, thing, write

REASON = (
    "exceeded quota: compute, requested: requests.cpu=500m, used: requests.cpu=2, limited: "
    "requests.cpu=2"
)
TOO_LARGE = "maximum cpu usage per Container is 2, but limit is 4"


def in_shop(manifest: Manifest) -> Manifest:
    return manifest | {"metadata": manifest["metadata"] | {"namespace": "shop"}}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """Write a namespace with a limit range, and a quota that one pod uses in part.

    Three of a deployment's five replicas fit the quota. A bare pod exceeds the limit range.
    """
    limits = {
        "type": "Container",
        "default": {"cpu": "1"},
        "defaultRequest": {"cpu": "500m"},
        "max": {"cpu": "2"},
    }
    hard = {"requests.cpu": "2", "limits.cpu": "9", "pods": "10"}
    runs = pod("db-0", "500m", namespace="shop", nodeName="n-1")
    cluster = write(
        tmp_path / "cluster.json",
        node("n-1"),
        node("n-2"),
        in_shop(thing("v1", "LimitRange", "containers", spec={"limits": [limits]})),
        in_shop(thing("v1", "ResourceQuota", "compute", spec={"hard": hard})),
        runs,
    )
    web = in_shop(deployment("web", 5))
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = {}
    large = [{"name": "c", "image": "x", "resources": {"limits": {"cpu": "4"}}}]
    pods = write(tmp_path / "app.json", web, pod("big", namespace="shop", containers=large))
    return "--cluster", cluster, "--pods", pods


def test_the_table_counts_refused_objects_with_reasons(run: Run, files: tuple[str, ...]) -> None:
    result = run("schedule", *files)

    text = " ".join(result.stdout.split())
    assert result.exit_code == 0
    assert text.startswith("3 placed, 0 pending of 3 pods on 2 nodes")
    assert "3 not created: admission refuses them or their claims" in text
    assert "Deployment shop/web 3 0 2" in text
    assert "Why objects are not created" in text
    source = files[-1]
    assert f"Not created: Pod shop/big ({source}): {TOO_LARGE}\n" in result.stderr
    assert f" and 1 more of Deployment shop/web ({source}): {REASON}\n" in result.stderr
    assert "ResourceQuota shop/compute, to 3 of them (first shop/web-" in result.stderr


def test_json_contains_every_refused_object(run: Run, files: tuple[str, ...]) -> None:
    document: dict[str, Any] = json.loads(run("schedule", *files, "-o", "json").stdout)

    assert (document["placed"], document["pending"], document["not_created"]) == (3, 0, 3)
    refused = {each["name"]: each for each in document["objects_not_created"]}
    assert refused["shop/big"] == {
        "kind": "Pod",
        "name": "shop/big",
        "workload": "",
        "source": files[-1],
        "reason": TOO_LARGE,
    }
    assert [each["reason"] for each in refused.values()].count(REASON) == 2
    assert not refused.keys() & {each["pod"] for each in document["pods"]}
    assert [each["count"] for each in document["not_created_reasons"]] == [1, 2]
    assert any("LimitRange shop/containers, to 5 of them" in each for each in document["notes"])


def test_rows_of_refused_pods_have_their_reasons(run: Run, files: tuple[str, ...]) -> None:
    rows = list(csv.DictReader(io.StringIO(run("schedule", *files, "-o", "csv").stdout)))

    assert len(rows) == 6
    assert f"not created: {TOO_LARGE}" in [each["reason"] for each in rows]


def test_an_output_directory_contains_refused_objects(
    run: Run, files: tuple[str, ...], tmp_path: Path
) -> None:
    run("schedule", *files, "--output", tmp_path / "out")

    rows = json.loads((tmp_path / "out" / "not_created.json").read_text())
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert rows[0]["name"] == "shop/big"
    assert (len(rows), summary["not_created"]) == (3, 3)


@pytest.mark.parametrize("name", ["big", "shop/big", "pod/big"])
def test_explain_prints_why_a_pod_is_refused(run: Run, files: tuple[str, ...], name: str) -> None:
    result = run("explain", name, *files)

    assert result.exit_code == 2
    assert f"{files[-1]}: Pod shop/big: is not created: {TOO_LARGE}" in result.stderr


def test_a_refused_pod_precedes_pods_whose_names_begin_with_its_name(
    run: Run, files: tuple[str, ...], tmp_path: Path
) -> None:
    more = write(tmp_path / "more.json", pod("bigger"))

    assert "Pod shop/big: is not created" in run("explain", "big", *files, "--pods", more).stderr


def test_explain_of_a_workload_chooses_a_created_pod(run: Run, files: tuple[str, ...]) -> None:
    result = run("explain", "deploy/web", *files)

    assert result.exit_code == 0
    assert "Deployment shop/web: 3 pods, 3 of them pending" in result.stderr
    assert REASON in result.stderr


def test_an_unknown_name_is_still_an_error(run: Run, files: tuple[str, ...]) -> None:
    assert "is no pod or workload of the inputs" in run("explain", "bib", *files).stderr
