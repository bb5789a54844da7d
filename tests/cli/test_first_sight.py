"""What a newcomer sees first, on a cluster with the long names that clouds give."""

import io

import pytest
from rich.console import Console

from roadstead.bench.figures import Outcome
from roadstead.cli.bench_table import print_bench
from tests.bench.test_result import FIGURES, MACHINE
from tests.cli.manifests import deployment, node, pod, write
from tests.cli.test_stress import SMALL

WIDTHS = ("80", "120", "200")
POOL = "gke-prod-europe-west4-memory-optimized-pool-3f8c48ce"
NODES = tuple(f"{POOL}-sx{n:02}" for n in range(6))
LARGE = "train-recommendation-model-nightly"
WORKLOAD = "storefront-frontend-production"


@pytest.fixture
def cloud(tmp_path):
    """Nodes of three zones, with resources that none of them has."""
    nodes = [node(name, zone=f"europe-west4-{'abc'[n % 3]}") for n, name in enumerate(NODES)]
    for each in nodes:
        each["status"]["allocatable"] |= {
            "ephemeral-storage": "47093746742",
            "hugepages-2Mi": "0",
            "nvidia.com/gpu": "1",
        }
    return write(tmp_path / "cloud.json", *nodes)


@pytest.fixture
def app(tmp_path):
    """A workload that fits, one that does not, and a pod that waits."""
    return write(
        tmp_path / "app.json",
        deployment(WORKLOAD, 6),
        deployment(LARGE, 2, cpu="64"),
        pod("gated", namespace="shop", schedulingGates=[{"name": "acme.io/wait-for-approval"}]),
    )


def lines_of(result, width):
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line for line in lines if len(line) > int(width)] == []
    assert [line for line in lines if "…" in line and "… and" not in line] == []
    return lines


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("form", ["table", "wide"])
def test_schedule_cuts_no_line_no_name_and_no_figure(run, cloud, app, monkeypatch, form, width):
    monkeypatch.setenv("COLUMNS", width)
    result = run("schedule", "--cluster", cloud, "--pods", app, "-o", form)
    assert f"({cloud} and 1 more)" in " ".join(result.stdout.split())

    words = [word.rstrip(",") for line in lines_of(result, width) for word in line.split()]
    assert set(NODES) <= set(words)
    assert f"default/{WORKLOAD}" in words
    assert "hugepages-2Mi" not in words
    # Each zone has a figure before and one after of five resources.
    assert words.count("→") == 1 + 3 * 5


def test_schedule_says_why_and_which_pod_before_how_full_the_nodes_are(run, cloud, app):
    shown = run("schedule", "--cluster", cloud, "--pods", app).stdout

    assert shown.index("Why pods are pending") < shown.index("Utilization")
    reasons = shown[shown.index("Why pods are pending") : shown.index("Utilization")]
    assert f"default/{LARGE}-" in reasons[reasons.index("Insufficient cpu") :]


@pytest.mark.parametrize("width", WIDTHS)
def test_plugin_list_cuts_no_line_and_no_name(run, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    words = " ".join(lines_of(run("plugin", "list"), width)).split()
    assert "NodeResourcesBalancedAllocation" in words


@pytest.mark.parametrize("width", [80, 120])
def test_bench_keeps_every_figure_on_a_terminal(width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    outcomes = [Outcome(FIGURES, (20.0,))]

    print_bench(console, outcomes, MACHINE, "abc")

    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in console.file.getvalue()
    assert FIGURES.name in " ".join(lines).split()


@pytest.mark.parametrize("width", WIDTHS)
def test_stress_keeps_the_swept_values_beside_every_figure(run, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    sweep = ("--decision-time", "0.1,10", "--conflicts", "fit,version")

    lines = lines_of(run("stress", *SMALL, *sweep), width)

    assert any(line.split()[:2] == ["0.1", "fit"] for line in lines)
    assert all(line.startswith(("0.1 ", "10")) for line in lines if "version" in line.split())
