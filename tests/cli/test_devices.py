"""Pods with claims of devices, from manifests to the output of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roadstead.actors.entry import open_launcher
from roadstead.run import Launcher
from tests.cli.conftest import Run
from tests.cli.manifests import node, pod, thing, write

INLINE = ("--runtime", "inline")
API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
SELECTOR = f'device.attributes["{DRIVER}"].model == "a100"'


def devices(node_name: str, *models: str) -> dict[str, Any]:
    """Return the slice of a node with a device of each model."""
    found = [
        {"name": f"g{at}", "attributes": {"model": {"string": model}}}
        for at, model in enumerate(models)
    ]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node_name, "pool": pool, "devices": found}
    return thing(API, "ResourceSlice", node_name, spec=spec)


def request(name: str, **more: object) -> dict[str, Any]:
    selectors = [{"cel": {"expression": SELECTOR}}]
    return {"name": name, "exactly": {"deviceClassName": "gpu", "selectors": selectors, **more}}


def claiming(name: str, **source: str) -> dict[str, Any]:
    return pod(name, "1", resourceClaims=[{"name": "gpu", **source}])


@pytest.fixture
def launcher() -> Launcher:
    """Return the launcher of the command line, whose runs have a binder and a journal."""
    return open_launcher()


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """Write two nodes with three devices that match, and a template of claims for one."""
    template = {"spec": {"devices": {"requests": [request("one")]}}}
    return write(
        tmp_path / "cluster.json",
        node("n1"),
        node("n2"),
        thing(API, "DeviceClass", "gpu", spec={}),
        devices("n1", "t4", "a100", "a100"),
        devices("n2", "a100", "t4"),
        thing(
            API, "ResourceClaimTemplate", "one", spec=template, metadata={"namespace": "default"}
        ),
    )


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "devices.json").read_text())
    return found


def test_each_pod_gets_a_device_of_its_own_and_the_last_one_none(
    run: Run, cluster: str, tmp_path: Path
) -> None:
    pods = [claiming(f"p{at}", resourceClaimTemplateName="one") for at in range(4)]
    app, out = write(tmp_path / "app.json", *pods), tmp_path / "out"

    result = run(
        "schedule", "--cluster", cluster, "--pods", app, *INLINE, "--output", out, "-o", "wide"
    )

    assert result.exit_code == 0, result.stderr
    assert "3 placed, 1 pending of 4 pods" in result.stdout
    assert "cannot allocate all claims" in result.stdout
    assert "Devices of claims" in result.stdout
    found = rows(out)
    assert {(each["pool"], each["device"]) for each in found} == {
        ("n1", "g1"),
        ("n1", "g2"),
        ("n2", "g0"),
    }
    node_of = {
        each["pod"]: each["node"] for each in json.loads((out / "placements.json").read_text())
    }
    assert all(node_of[each["pods"][0]] == each["pool"] for each in found)
    assert run("check", out).exit_code == 0


def test_a_shared_claim_puts_its_pods_on_the_node_of_its_device(
    run: Run, cluster: str, tmp_path: Path
) -> None:
    spec = {"devices": {"requests": [request("both", count=2)]}}
    shared = thing(API, "ResourceClaim", "shared", spec=spec, metadata={"namespace": "default"})
    pods = [claiming(f"p{at}", resourceClaimName="shared") for at in range(3)]
    app, out = write(tmp_path / "app.json", shared, *pods), tmp_path / "out"

    result = run("schedule", "--cluster", cluster, "--pods", app, *INLINE, "--output", out)

    assert result.exit_code == 0, result.stderr
    found = rows(out)
    assert [each["device"] for each in found] == ["g1", "g2"]
    assert [sorted(each["pods"]) for each in found] == [
        ["default/p0", "default/p1", "default/p2"]
    ] * 2
    placed = json.loads((out / "placements.json").read_text())
    assert {each["node"] for each in placed} == {"n1"}


def test_the_output_of_a_finished_run_has_its_devices_again(
    run: Run, cluster: str, tmp_path: Path
) -> None:
    app = write(tmp_path / "app.json", claiming("p0", resourceClaimTemplateName="one"))
    out = tmp_path / "out"
    command = ("schedule", "--cluster", cluster, "--pods", app, *INLINE, "--output", out)
    assert run(*command).exit_code == 0
    before = rows(out)

    assert run(*command, "--resume", "--force").exit_code == 0

    assert rows(out) == before
    assert len(before) == 1


def test_an_explanation_counts_the_devices_that_match_and_are_in_use(
    run: Run, cluster: str, tmp_path: Path
) -> None:
    pods = [claiming(f"p{at}", resourceClaimTemplateName="one") for at in range(4)]
    app = write(tmp_path / "app.json", *pods)
    given = ("--cluster", cluster, "--pods", app, *INLINE)

    result = run("explain", "--all-pending", "--after-run", *given)

    shown = " ".join(result.stdout.split())
    assert "request one (1 device of class gpu): 3 match, 3 of them in use, too few free" in shown


def test_a_note_names_running_pods_whose_devices_are_unknown(
    run: Run, cluster: str, tmp_path: Path
) -> None:
    running = []
    for at in range(2):
        each = claiming(f"r{at}", resourceClaimTemplateName="one")
        each["metadata"]["uid"] = each["metadata"]["name"]
        each["spec"]["nodeName"] = "n1"
        each["status"] = {
            "phase": "Running",
            "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"r{at}-gpu"}],
        }
        running.append(each)
    app = write(tmp_path / "app.json", *running)

    result = run("schedule", "--cluster", cluster, "--pods", app, *INLINE)

    assert "Without devices: 2 running pods (first default/r0) with claims" in result.stderr


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("device.nothing == 1", "undefined field 'nothing'"),
        ("device.driver", "must evaluate to bool"),
        ("device.attributes[", "Syntax error"),
    ],
)
def test_a_wrong_selector_is_refused_with_its_place(
    run: Run, cluster: str, tmp_path: Path, expression: str, message: str
) -> None:
    wrong = request("bad", selectors=[{"cel": {"expression": expression}}])
    claim = thing(
        API,
        "ResourceClaim",
        "wrong",
        spec={"devices": {"requests": [wrong]}},
        metadata={"namespace": "default"},
    )
    app = write(tmp_path / "app.json", claim, claiming("p0", resourceClaimName="wrong"))

    result = run("schedule", "--cluster", cluster, "--pods", app, *INLINE)

    assert result.exit_code == 2
    assert (
        'ResourceClaim "wrong": spec.devices.requests[0].exactly.selectors[0].cel' in result.stderr
    )
    assert message in result.stderr


def test_extended_resources_of_a_class_are_served_by_devices_with_several_schedulers(
    run: Run, tmp_path: Path
) -> None:
    """One pod more than devices: one node has a device plugin, and two have devices."""
    served = thing(API, "DeviceClass", "gpu", spec={"extendedResourceName": "example.com/gpu"})
    plugin = node("n0")
    plugin["status"]["allocatable"]["example.com/gpu"] = "1"
    fleet = [plugin, node("n1"), node("n2"), devices("n1", "a", "b"), devices("n2", "a")]
    asking = [pod(f"p{at}", "1") for at in range(5)]
    for each in asking:
        resources = each["spec"]["containers"][0]["resources"]
        resources["limits"] = {"example.com/gpu": "1"}
    given = write(tmp_path / "all.json", served, *fleet, *asking)
    settings, out = tmp_path / "roadstead.yaml", tmp_path / "out"
    settings.write_text("featureGates: {DRAExtendedResource: true}\n")
    command = ("schedule", "--cluster", given, "--settings", settings, *INLINE, "--output", out)

    result = run(*command, "--schedulers", "3")

    assert result.exit_code == 0, result.stderr
    assert "4 placed, 1 pending of 5 pods" in result.stdout
    found = rows(out)
    assert len({(each["pool"], each["device"]) for each in found}) == 3
    assert all(each["request"] == "container-0-request-1" for each in found)
    placed = json.loads((out / "placements.json").read_text())
    on_devices = {each["pod"] for each in placed if each["node"] != "n0"}
    assert {pod for each in found for pod in each["pods"]} == on_devices
    assert run("check", out).exit_code == 0
    used = json.loads((out / "summary.json").read_text())["utilization"]
    (use,) = (each for each in used if each["resource"] == "example.com/gpu")
    assert (use["allocatable"], use["after"]) == (1, 1), "devices are not counted"
    assert run(*command, "--schedulers", "3", "--resume", "--force").exit_code == 0
    assert rows(out) == found


def test_admin_access_needs_the_label_of_the_namespace(
    run: Run, cluster: str, tmp_path: Path
) -> None:
    spec = {"devices": {"requests": [request("all", adminAccess=True)]}}
    claim = thing(API, "ResourceClaim", "look", spec=spec, metadata={"namespace": "default"})
    asking = claiming("p0", resourceClaimName="look")
    label = "resource.kubernetes.io/admin-access"
    labelled = thing("v1", "Namespace", "default", metadata={"labels": {label: "true"}})

    for more, placed in (((), 0), ((labelled,), 1)):
        app = write(tmp_path / "app.json", claim, asking, *more)
        result = run("schedule", "--cluster", cluster, "--pods", app, *INLINE)
        assert f"{placed} placed" in result.stdout, result.stderr
        assert (f"admin access to devices requires the `{label}: true`" in result.stderr) != placed
