"""`roadstead fit`, `grow` and `drain`: tables, JSON, output folders, exit status and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.trace_file import write_trace
from tests.cli.conftest import Run
from tests.cli.manifests import deployment, node, owned_by, pod, thing, write

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def fleet(tmp_path: Path) -> str:
    """Write three nodes in two zones with a workload, its budget, a bare pod and a daemon."""
    web = [owned_by(pod(f"web-{at}", "1", nodeName="n1"), "ReplicaSet", "web") for at in range(2)]
    for each in web:
        each["metadata"]["labels"] = {"app": "web"}
    taints = [{"key": "gpu", "effect": "NoSchedule"}]
    budget = thing(
        "policy/v1",
        "PodDisruptionBudget",
        "web",
        metadata={"namespace": "default"},
        spec={"selector": {"matchLabels": {"app": "web"}}},
        status={"disruptionsAllowed": 1},
    )
    return write(
        tmp_path / "fleet.json",
        node("n1", zone="a"),
        node("n2", zone="a"),
        node("n3", zone="b", taints=taints),
        *web,
        pod("bare", "1", nodeName="n2"),
        owned_by(pod("log", "100m", nodeName="n1"), "DaemonSet", "log"),
        budget,
    )


@pytest.fixture
def app(tmp_path: Path) -> str:
    return write(tmp_path / "app.json", deployment("api", 2, cpu="1"))


@pytest.fixture
def shapes(tmp_path: Path) -> str:
    def shape(name: str, cpu: str, price: float) -> dict[str, Any]:
        status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
        return {"name": name, "pricePerHour": price, "node": {"status": status}}

    document = {
        "apiVersion": "roadstead.dev/v1",
        "kind": "NodeCatalog",
        "shapes": [shape("small", "4", 1.0), shape("large", "16", 5.0)],
    }
    path = tmp_path / "shapes.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def document_of(run: Run, *args: object, status: int = 0) -> dict[str, Any]:
    result = run(*args, "--format", "json")
    assert result.exit_code == status, result.stderr
    document = json.loads(result.stdout)
    assert isinstance(document, dict)
    return document


def test_fit_counts_replicas_and_explains_the_next_one(run: Run, fleet: str, app: str) -> None:
    result = run("fit", "api", "--cluster", fleet, "--pods", app)

    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    # 8 cores without taint, 5.1 of them requested: the two given pods included.
    assert text.startswith("2 more replicas fit on 1 of 3 nodes")
    assert "Pods of the input, placed first: 2" in text
    assert "1 node(s) had untolerated taint {gpu: }, 2 Insufficient cpu" in text
    assert text.index("tolerate gpu:NoSchedule") < text.index("request cpu 900m instead of 1")


def test_fit_as_json_has_the_figures_and_the_changes(run: Run, fleet: str, app: str) -> None:
    document = document_of(run, "fit", "deploy/api", "--cluster", fleet, "--pods", app)

    assert (document["replicas"], document["rounds"], document["limited"]) == (2, 2, False)
    assert document["zones"] == {"a": 2}
    assert document["given"] == {"placed": 2, "pending": 0}
    assert document["next"]["reasons"] == [
        {"reason": "Insufficient cpu", "nodes": 2},
        {"reason": "node(s) had untolerated taint {gpu: }", "nodes": 1},
    ]
    assert document["changes"][0]["change"] == "tolerate gpu:NoSchedule"
    assert document["changes"][0]["node"] == "n3"


def test_fit_counts_in_total_with_limits_and_without_changes(
    run: Run, fleet: str, app: str
) -> None:
    args = ("fit", "api", "--cluster", fleet, "--pods", app)

    assert document_of(run, *args, "--total")["replicas"] == 4
    assert "4 replicas fit on" in run(*args, "--total").stdout
    assert document_of(run, *args, "--max", "1")["limited"] is True
    assert document_of(run, *args, "--max-changes", "0")["changes_tried"] == 0
    assert len(document_of(run, *args, "--max-changes", "1")["changes"]) == 1


def test_fit_of_several_specs_prints_a_row_for_each(run: Run, fleet: str, app: str) -> None:
    result = run("fit", "api=2", "bare", "--cluster", fleet, "--pods", app, "--at-least", "0")

    assert result.exit_code == 0, result.stderr
    assert "Replicas, in 0 sets" in result.stdout
    assert "The next replica of bare does not fit" in result.stdout


def test_fit_fails_if_fewer_replicas_fit_than_asked_for(run: Run, fleet: str, app: str) -> None:
    args = ("fit", "api", "--cluster", fleet, "--pods", app)

    assert run(*args, "--at-least", "2").exit_code == 0
    assert run(*args, "--at-least", "3").exit_code == 1


def test_fit_reports_a_count_that_stopped_at_its_limit(run: Run, fleet: str, app: str) -> None:
    result = run("fit", "api", "--cluster", fleet, "--pods", app, "--max", "1")

    assert "at least 1 more replica fits" in result.stdout
    assert "--max counts further" in result.stdout


def test_fit_reads_a_trace(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "fleet.trace"
    trace = generate_fleet(20, 40, 1)
    write_trace(path, trace)
    name = next(identity.name for identity, _ in trace.pods())

    document = document_of(run, "fit", name, "--trace", path, "--at-least", "0")

    assert document["next"]["message"].startswith("0/20 nodes are available")
    assert document["given"]["placed"] + document["given"]["pending"] == 40


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("nothing", "is no pod or workload of the inputs"),
        ("api=0", "must end with a ratio from 1 to 1,000"),
        ("api=x", "must end with a ratio from 1 to 1,000"),
        ("api=99999", "must end with a ratio from 1 to 1,000"),
        ("=", "must end with a ratio"),
        ("\x1b[31m", "is no pod or workload"),
    ],
)
def test_a_wrong_spec_is_an_error(run: Run, fleet: str, app: str, spec: str, text: str) -> None:
    result = run("fit", spec, "--cluster", fleet, "--pods", app)

    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())
    assert "\x1b" not in result.stderr


def test_grow_prints_the_nodes_with_their_price(
    run: Run, fleet: str, shapes: str, tmp_path: Path
) -> None:
    pods = write(tmp_path / "big.json", deployment("api", 10, cpu="1"))

    result = run("grow", "--catalog", shapes, "--cluster", fleet, "--pods", pods)

    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert text.startswith("2 more nodes, 2.00 per hour, place 6 of 6 pods without a node")
    assert "small 2 2.00" in text
    assert "With one node less of any shape, a pod is left without a node." in text
    assert "run 1: with no added node" in result.stderr


def test_the_written_nodes_prove_the_answer(
    run: Run, fleet: str, shapes: str, tmp_path: Path
) -> None:
    pods = write(tmp_path / "big.json", deployment("api", 10, cpu="1"))
    out = tmp_path / "more"

    document = document_of(
        run, "grow", "--catalog", shapes, "--cluster", fleet, "--pods", pods, "--output", out
    )

    assert {each.name for each in out.iterdir()} == {"grow.json", "shapes.parquet", "nodes.yaml"}
    assert json.loads((out / "grow.json").read_text()) == document
    assert (document["count"], document["price_per_hour"]) == (2, 2.0)
    nodes = str(out / "nodes.yaml")
    after = run("schedule", "--cluster", fleet, "--cluster", nodes, "--pods", pods)
    assert after.stdout.startswith("10 placed, 0 pending of 10 pods on 5 nodes")


def test_grow_reports_pods_that_no_node_helps(run: Run, fleet: str, shapes: str, pods: str) -> None:
    giant = ("grow", "--catalog", shapes, "--cluster", fleet, "--pods", pods)

    document = document_of(run, *giant)
    assert document["pending"] == [], "9 cores fit on the large shape"

    Path(shapes).write_text(Path(shapes).read_text().replace("'16'", "'8'"))
    document = document_of(run, *giant, status=1)
    assert [each["pod"] for each in document["pending"]] == ["default/giant"]
    assert "Pods that none of these nodes helps" in run(*giant).stdout


def test_grow_reports_that_no_node_is_needed(run: Run, fleet: str, app: str, shapes: str) -> None:
    result = run("grow", "--catalog", shapes, "--cluster", fleet, "--pods", app)

    assert result.exit_code == 0
    assert result.stdout.startswith("No node is needed: every pod is placed")


def test_shrink_lists_nodes_and_budgets(run: Run, fleet: str) -> None:
    result = run("grow", "--shrink", "--cluster", fleet)

    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert text.startswith("2 of 3 nodes can go")
    assert "n3 b 4 cores, 8 GiB 0 0" in text
    document = document_of(run, "grow", "--shrink", "--cluster", fleet, "--zone", "b")
    assert [each["node"] for each in document["nodes"]] == ["n3"]
    assert document["candidates"] == 1


def test_shrink_proves_nothing_if_no_node_can_go(run: Run, tmp_path: Path) -> None:
    fleet = write(tmp_path / "one.json", node("n1"), pod("bare", "1", nodeName="n1"))
    text = " ".join(run("grow", "--shrink", "--cluster", fleet).stdout.split())

    assert text.startswith("None of 1 node can go")
    assert "No node was emptied in 2 trials." in text


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "use either --catalog FILE or --shrink"),
        (["--shrink", "--catalog", "x"], "use either --catalog FILE or --shrink"),
        (["--catalog", "x", "--zone", "a"], "--zone and --selector need --shrink"),
        (["--catalog", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (["--shrink", "--zone", "none"], '--zone: "none" is no zone of the cluster'),
        (["--shrink", "-l", "("], "is no label selector"),
    ],
)
def test_wrong_options_of_grow_are_errors(run: Run, fleet: str, args: list[str], text: str) -> None:
    result = run("grow", *args, "--cluster", fleet)

    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())


def test_drain_shows_moves_rounds_and_pods_that_end_with_the_node(run: Run, fleet: str) -> None:
    result = run("drain", "n1", "--cluster", fleet)

    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert text.startswith("Drained: n1")
    assert "Of 3 pods: 2 placed elsewhere, 1 ending with the node" in text
    assert "ReplicaSet default/web n1 n2 1 1 ReplicaSet default/web n1 n2 2 1" in text
    assert "default/web 1 2 2 2 0" in text


def test_drain_of_a_zone_leaves_pods_pending(run: Run, fleet: str) -> None:
    document = document_of(run, "drain", "a", "--cluster", fleet, "--force", status=1)

    assert document["nodes"] == ["n1", "n2"]
    assert document["counts"]["pending"] == 2, "one web pod, then the budget is used up"
    assert document["counts"]["blocked"] == 1
    assert "untolerated taint" in document["pods"][0]["reason"]
    assert document == document_of(
        run, "drain", "--zone", "a", "--cluster", fleet, "--force", status=1
    )


def test_drain_refuses_bare_pods_as_kubectl_does(run: Run, fleet: str) -> None:
    result = run("drain", "n2", "--cluster", fleet)

    assert result.exit_code == 1
    assert "Cannot be drained completely: n2" in result.stdout
    assert "Pods at which kubectl drain stops" in result.stdout
    assert run("drain", "n2", "--cluster", fleet, "--force").exit_code == 0


def test_drain_knows_pods_with_an_empty_dir(run: Run, tmp_path: Path) -> None:
    cached = owned_by(pod("c", nodeName="n1", volumes=[{"name": "v", "emptyDir": {}}]), "Job", "c")
    cluster = write(tmp_path / "c.json", node("n1"), node("n2"), cached)

    assert run("drain", "n1", "--cluster", cluster).exit_code == 1
    assert run("drain", "n1", "--cluster", cluster, "--delete-emptydir-data").exit_code == 0


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "no node is chosen"),
        (["n7"], 'NODE: "n7" is no node or zone of the cluster (it has n1, n2, n3, a, b)'),
        (["-l", "pool=x"], '--selector: "pool=x" selects no node'),
        (["n1", "--config", "none.yaml"], "none.yaml"),
    ],
)
def test_wrong_options_of_drain_are_errors(
    run: Run, fleet: str, args: list[str], text: str
) -> None:
    result = run("drain", *args, "--cluster", fleet)

    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())


def test_an_output_folder_is_only_replaced_on_request(run: Run, fleet: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    args = ("drain", "n1", "--cluster", fleet, "--output", out)

    assert run(*args).exit_code == 0
    assert {each.name for each in out.iterdir()} == {"drain.json", "pods.parquet"}
    assert "holds another answer; --replace replaces it" in run(*args).stderr
    assert run(*args, "--replace").exit_code == 0
    (out / "mine.txt").write_text("")
    assert "holds files that no what-if command wrote" in run(*args, "--replace").stderr


def test_settings_of_several_schedulers_are_noted(run: Run, fleet: str, tmp_path: Path) -> None:
    (tmp_path / "roadstead.yaml").write_text("schedulers: 3\n")

    result = run("drain", "n1", "--cluster", fleet, "--settings", tmp_path / "roadstead.yaml")

    assert result.exit_code == 0
    assert "schedulers: 3 are set; one decides what-if questions." in result.stderr


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_no_table_is_cut(
    run: Run, fleet: str, app: str, shapes: str, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    for args in (
        ("fit", "api", "bare", "--cluster", fleet, "--pods", app),
        ("grow", "--catalog", shapes, "--cluster", fleet, "--pods", app),
        ("grow", "--shrink", "--cluster", fleet),
        ("drain", "a", "--cluster", fleet),
    ):
        result = run(*args)
        lines = [line for line in result.stdout.splitlines() if fleet not in line]
        assert [line for line in lines if "…" in line and "… and" not in line] == []


def test_help_has_examples_and_exit_status(run: Run) -> None:
    for name in ("fit", "grow", "drain"):
        text = run(name, "--help").output
        assert "Examples:" in text
        assert "Exit status: 0" in text


def gpu_fleet(tmp_path: Path) -> str:
    """Write two nodes with a device each, and a pod on the first that requests one."""
    api = "resource.k8s.io/v1"
    served = thing(api, "DeviceClass", "gpu", spec={"extendedResourceName": "example.com/gpu"})
    slices = [
        thing(
            *(api, "ResourceSlice", name),
            spec={
                "driver": "gpu.example.com",
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "g0"}],
            },
        )
        for name in ("n1", "n2")
    ]
    there = owned_by(pod("d", nodeName="n1"), "ReplicaSet", "d")
    resources = there["spec"]["containers"][0]["resources"]
    resources["requests"]["example.com/gpu"] = "1"
    resources["limits"] = {"example.com/gpu": "1"}
    return write(tmp_path / "c.json", node("n1"), node("n2"), served, *slices, there)


def test_a_drained_pod_gets_devices_for_its_extended_resource_elsewhere(
    run: Run, tmp_path: Path
) -> None:
    settings = tmp_path / "roadstead.yaml"
    settings.write_text("featureGates: {DRAExtendedResource: true}\n")
    cluster = gpu_fleet(tmp_path)

    result = run("drain", "n1", "--cluster", cluster, "--settings", settings, "--format", "json")

    assert result.exit_code == 0, result.stderr
    assert "n2" in result.stdout
    without = run("drain", "n1", "--cluster", cluster, "--format", "json")
    assert without.exit_code != 0 or "Insufficient example.com/gpu" in without.stdout
