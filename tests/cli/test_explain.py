"""`roadstead explain`: one pod, node by node."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest

from roadstead.facts.compile import compile_pod
from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.trace_file import write_trace
from roadstead.manifests import read_manifests
from roadstead.protocol.objects import Pod
from tests.cli.conftest import Run
from tests.cli.manifests import deployment, node, owned_by, pod, write
from tests.cli.plain_launcher import PlainLauncher, World


def document_of(run: Run, *args: object) -> dict[str, object]:
    result = run("explain", *args, "--format", "json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert isinstance(document, dict)
    return document


def test_json_is_exactly_the_explanation(
    run: Run, launcher: PlainLauncher, cluster: str, pods: str
) -> None:
    document = document_of(run, "large", "--cluster", cluster, "--pods", pods)

    world = World(launcher.inputs, launcher.plan)
    assert document["pod"] == "default/large"
    assert document["feasible"] == ["n-2"]
    assert document["filter"] == [1, 2, 0]
    given = read_manifests([pods], stdin=BytesIO()).pods
    (large,) = [each for each in given if name_of(each) == "large"]
    explanation = world.cycle.explain(world.in_cycle(compile_pod(large)))
    assert document == {**explanation.as_recorded(), "nodes": ["n-1", "n-10", "n-2"]}


def name_of(pod: Pod) -> str:
    return pod.metadata.name


def test_the_table_has_scores_best_node_first_and_reasons_of_filtered_nodes(
    run: Run, cluster: str, pods: str
) -> None:
    result = run("explain", "small", "--cluster", cluster, "--pods", pods)

    lines = result.stdout.splitlines()
    assert lines[:2] == ["default/small: 2 of 3 nodes are feasible", "n-2 has the highest total"]
    (start,) = [at for at, line in enumerate(lines) if line.split()[:2] == ["node", "total"]]
    assert [line.split()[0] for line in lines[start + 1 : start + 3]] == ["n-2", "n-1"]
    assert "NodeResourcesBalancedAllocation" in result.stdout
    assert "node(s) had untolerated taint {k: v}" in result.stdout


def test_a_pod_that_fits_nowhere_is_shown_with_its_message(
    run: Run, cluster: str, pods: str
) -> None:
    result = run("explain", "giant", "--cluster", cluster, "--pods", pods)

    text = " ".join(result.stdout.split())
    assert text.startswith("default/giant: no node is feasible 0/3 nodes are available: ")
    assert "Scores" not in text


def test_pending_pods_stay_pending_unless_the_run_is_explained_after(
    run: Run, launcher: PlainLauncher, cluster: str, pods: str
) -> None:
    args = ("small", "--cluster", cluster, "--pods", pods)
    before = document_of(run, *args)
    assert launcher.inputs.pending == ()

    after = document_of(run, *args, "--after-run")

    names = [identity.name for identity, _ in launcher.inputs.pending]
    assert names == ["large", "giant"]
    assert before["best"] == ["n-2"]
    assert after["best"] == ["n-1"]


def test_a_running_pod_is_explained_as_if_it_were_pending(
    run: Run, launcher: PlainLauncher, cluster: str
) -> None:
    document = document_of(run, "old", "--cluster", cluster)

    assert launcher.inputs.running == ()
    assert document["feasible"] == ["n-1", "n-2"]


def test_the_explanation_is_computed_in_this_process_by_default(
    run: Run, launcher: PlainLauncher, cluster: str, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("batch: 1\n")
    runtimes = []
    for options in ([], ["--runtime", "ray"], ["--settings", settings]):
        document_of(run, "old", "--cluster", cluster, *options)
        runtimes.append(launcher.plan.settings.runtime)

    assert runtimes == ["inline", "ray", "ray"]


def test_a_pod_of_a_trace_is_found_by_name_and_by_key(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "small.trace"
    write_trace(path, generate_fleet(4, 5, 0))

    for name in ("pod-000003", "demo/pod-000003"):
        assert document_of(run, name, "--trace", path)["pod"] == "demo/pod-000003"


def test_top_limits_nodes_and_names_and_the_rest_is_counted(run: Run, tmp_path: Path) -> None:
    fleet = [node(f"ok-{i}") for i in range(4)] + [node(f"no-{i}", cpu="0") for i in range(5)]
    cluster = write(tmp_path / "c.json", *fleet, pod("p"))

    short = run("explain", "p", "--cluster", cluster, "--top", 2).stdout
    whole = run("explain", "p", "--cluster", cluster, "--top", 0).stdout

    assert "… and 2 more nodes; --top 0 shows all" in short
    assert "no-0, no-1 and 3 more" in short
    assert "ok-2" not in short
    assert "more" not in whole
    assert all(f"no-{i}" in whole for i in range(5))
    assert all(f"\nok-{i} " in whole for i in range(4))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("web", 'POD: "web" matches 2 pods: use one of a/web, b/web\n'),
        ("zzz", 'POD: "zzz" is no pod or workload of the inputs (they have web, other-1)\n'),
        (
            "other-3",
            'POD: "other-3" is no pod or workload of the inputs (did you mean other-1?)\n',
        ),
        (
            "b/wed",
            'POD: "b/wed" is no pod or workload of the inputs (did you mean b/web, a/web?)\n',
        ),
        ("sts/web", 'POD: "sts/web" is no pod or workload of the inputs (did you mean web?)\n'),
    ],
)
def test_an_ambiguous_or_unknown_name_exits_2(
    run: Run, tmp_path: Path, name: str, text: str
) -> None:
    both = (pod("web", namespace="a"), pod("web", namespace="b"), pod("other-1"))
    cluster = write(tmp_path / "c.json", node("n"), *both)

    result = run("explain", name, "--cluster", cluster)

    assert result.exit_code == 2
    assert result.stderr.endswith(text)
    assert document_of(run, "b/web", "--cluster", cluster)["pod"] == "b/web"


@pytest.fixture
def mixed(tmp_path: Path) -> str:
    """Write two nodes and pods that are pending for four reasons; two could be scheduled."""
    gated = pod("gated", schedulingGates=[{"name": "example.com/quota"}])
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    large = [owned_by(pod(f"db-{i}", "9"), "StatefulSet", "db") for i in range(5)]
    return write(
        tmp_path / "mixed.json",
        *(node("n-1"), node("n-2")),
        *(gated, pod("lost", volumes=[claim]), *large, pod("bare-1", "9"), pod("bare-2", "9")),
        *(pod("good-1", "3"), pod("good-2", "3")),
        deployment("none", 0),
    )


def test_all_pending_pods_are_explained_by_workload_and_reason(run: Run, mixed: str) -> None:
    result = run("explain", "--all-pending", "--cluster", mixed)

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "Pending pods: 11. Each by itself, 2 can be scheduled, 9 cannot"
    heads = [line for line, before in zip(lines[1:], lines, strict=False) if not before]
    assert [head for head in heads if not head.startswith("Filtered out")] == [
        "StatefulSet default/db, 5 pods: no node is feasible",
        "Pods without a controller, 2 pods: no node is feasible",
        "Pod default/gated: does not enter the queue: SchedulingGates: waiting for ",
        "Pod default/lost: no node is feasible",
        "Pods without a controller, 2 pods: 2 of 2 nodes are feasible",
    ]
    assert "Pods: default/db-0, default/db-1, default/db-2 and 2 more" in lines
    assert 'persistentvolumeclaim "data" not found' in result.stdout
    assert "    2  NodeResourcesFit: Insufficient cpu" in "\n".join(lines)
    assert max(map(len, lines)) <= 80


def test_all_pending_as_json_has_the_explanation_of_each_section(run: Run, mixed: str) -> None:
    document = document_of(run, "--all-pending", "--cluster", mixed)

    assert (document["pending"], document["afterRun"]) == (11, False)
    sections = document["sections"]
    assert isinstance(sections, list)
    assert [(each["workload"], each["state"], each["count"]) for each in sections] == [
        ("StatefulSet default/db", "unschedulable", 5),
        ("", "unschedulable", 2),
        ("", "gated", 1),
        ("", "unschedulable", 1),
        ("", "schedulable", 2),
    ]
    assert sections[0]["pods"] == [f"default/db-{i}" for i in range(5)]
    assert sections[0]["reason"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    for each in sections:
        assert each["explanation"] == document_of(run, each["pods"][0], "--cluster", mixed)


def test_after_run_explains_the_remaining_pods(run: Run, mixed: str) -> None:
    document = document_of(run, "--all-pending", "--after-run", "--cluster", mixed)

    sections = document["sections"]
    assert isinstance(sections, list)
    pods = [name for each in sections for name in each["pods"]]
    assert (document["pending"], document["afterRun"], len(pods)) == (8, True, 8)
    assert not any("good" in name for name in pods)


@pytest.mark.parametrize("options", [(), ("--after-run",)])
def test_no_pending_pods_are_not_an_error(run: Run, cluster: str, options: tuple[str, ...]) -> None:
    args = ("--all-pending", *options, "--cluster", cluster)

    result = run("explain", *args)

    assert (result.exit_code, result.stdout) == (0, "No pod is pending: every pod has a node.\n")
    assert document_of(run, *args)["sections"] == []


def test_a_run_that_places_all_pods_leaves_none_pending(run: Run, tmp_path: Path) -> None:
    cluster = write(tmp_path / "c.json", node("n"), pod("a"), pod("b"))

    result = run("explain", "--all-pending", "--after-run", "--cluster", cluster)

    assert result.exit_code == 0
    assert result.stdout == "No pod is pending: the run placed all 2.\n"


@pytest.mark.parametrize("pods", [(), ("old", "--all-pending")])
def test_a_pod_and_all_pending_exclude_each_other(
    run: Run, cluster: str, pods: tuple[str, ...]
) -> None:
    result = run("explain", *pods, "--cluster", cluster)

    assert result.exit_code == 2
    assert "either POD or --all-pending" in result.stderr


@pytest.mark.parametrize("what", ["small", "--all-pending"])
def test_a_page_is_written_in_addition_to_the_output(
    run: Run, cluster: str, pods: str, tmp_path: Path, what: str
) -> None:
    path = tmp_path / "why.html"
    args = ("explain", what, "--cluster", cluster, "--pods", pods)

    result = run(*args, "--html", path)

    assert result.stdout == run(*args).stdout
    assert result.stderr.endswith(f"Written to {path}\n")
    text = path.read_text()
    assert text.startswith("<!doctype html>")
    assert all(each in text for each in ("n-1", "n-2", "NodeResourcesBalancedAllocation"))


def test_an_existing_page_is_replaced_only_with_force(
    run: Run, cluster: str, tmp_path: Path
) -> None:
    path = tmp_path / "why.html"
    path.write_text("mine")
    args = ("explain", "old", "--cluster", cluster, "--html", path)

    refused = run(*args)

    assert refused.exit_code == 2
    assert refused.stderr == f"{path}: exists; --force replaces it\n"
    assert (refused.stdout, path.read_text()) == ("", "mine")

    assert run(*args, "--force").exit_code == 0
    assert path.read_text().startswith("<!doctype html>")


def test_a_page_that_can_not_be_written_is_refused_before_the_run(
    run: Run, cluster: str, tmp_path: Path
) -> None:
    result = run("explain", "old", "--cluster", cluster, "--html", tmp_path / "no" / "why.html")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no such directory" in result.stderr
