"""The first commands of a new user, on a cluster with the long names of clouds."""

import io

import click
import pytest
from rich.console import Console

from roadstead.bench.metrics import WorkloadResult
from roadstead.cli.bench_table import print_bench
from roadstead.cli.main import build_cli
from roadstead.cli.notes import wrapped
from tests.bench.test_result import FIGURES, MACHINE
from tests.cli.manifests import deployment, node, pod, write
from tests.cli.plain_launcher import PlainLauncher
from tests.cli.test_stress import SMALL

WIDTHS = ("80", "120", "200")
POOL = "gke-prod-europe-west4-memory-optimized-pool-3f8c48ce"
NODES = tuple(f"{POOL}-sx{n:02}" for n in range(6))
LARGE = "train-recommendation-model-nightly"
WORKLOAD = "storefront-frontend-production"


@pytest.fixture
def cloud(tmp_path):
    """Write nodes of three zones with long names, a GPU each, and a resource of amount 0."""
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
    """Write a workload that fits, one that does not, and a pending pod."""
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
    # The path alone may be longer than a line.
    assert f"({cloud}and1more)" in "".join(result.stdout.split())

    words = [word.rstrip(",") for line in lines_of(result, width) for word in line.split()]
    assert set(NODES) <= set(words)
    assert f"default/{WORKLOAD}" in words
    assert "hugepages-2Mi" not in words
    # Each zone has figures before and after for five resources.
    assert words.count("→") == 1 + 3 * 5


def test_schedule_prints_reasons_and_pods_before_utilization(run, cloud, app):
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
    outcomes = [WorkloadResult(FIGURES, (20.0,))]

    print_bench(console, outcomes, MACHINE, "abc")

    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in console.file.getvalue()
    assert FIGURES.name in " ".join(lines).split()


@pytest.mark.parametrize("width", WIDTHS)
def test_stress_repeats_the_swept_values_beside_every_figure(run, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    sweep = ("--decision-time", "0.1,10", "--conflicts", "fit,version")

    lines = lines_of(run("stress", *SMALL, *sweep), width)

    assert any(line.split()[:2] == ["0.1", "fit"] for line in lines)
    assert all(line.startswith(("0.1 ", "10")) for line in lines if "version" in line.split())


EXPLAINED = (
    "Explained on the cluster as given, without the 8 other pending pods; --after-run schedules "
    "them first.\n"
)


def test_explain_reports_that_other_pending_pods_use_no_resources(run, cloud, app):
    given = ("--cluster", cloud, "--pods", app)

    assert EXPLAINED in run("explain", WORKLOAD, *given).stderr
    last = run("explain", WORKLOAD, *given, "--after-run").stderr
    assert "Explained on" not in last
    assert "Explained as the last pod: the 8 other pending pods are scheduled first." in last


def test_a_single_pod_is_explained_without_a_note_on_others(run, cloud, tmp_path):
    alone = write(tmp_path / "alone.json", pod("web-0"))
    assert "Explained on" not in run("explain", "web-0", "--cluster", cloud, "--pods", alone).stderr


def test_check_reports_a_missing_folder(run, tmp_path):
    result = run("check", tmp_path / "none")
    assert (result.exit_code, result.stderr) == (2, f"{tmp_path}/none: does not exist\n")


def test_notes_are_wrapped_between_words_and_names_stay_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    note = (
        f"Left out, for lack of a plugin in this version: 1 pod (shop/{NODES[0]}).\nA second line."
    )

    assert wrapped(note).splitlines() == [
        "Left out, for lack of a plugin in this",
        "  version: 1 pod",
        f"  (shop/{NODES[0]}).",
        "A second line.",
    ]


def test_notes_are_one_line_without_a_terminal(run, cloud, app, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert EXPLAINED in run("explain", WORKLOAD, "--cluster", cloud, "--pods", app).stderr


def commands(group, *names):
    """Yield every command with its names."""
    yield names
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            yield from commands(group.get_command(context, name), *names, name)


COMMANDS = tuple(commands(build_cli(PlainLauncher)))


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_no_help_is_wider_than_80_columns(run, monkeypatch, names):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(*names, "--help").stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == [], "shorten these lines of the help"


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_every_help_has_an_example_of_its_command(run, names):
    examples = run(*names, "--help").stdout.partition("Examples:")[2]
    call = " ".join(("roadstead", *names))
    assert f"  {call}" in examples, f'add an example "{call} …" below "Examples:" in the docstring'


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_every_help_has_exit_statuses_or_whole_summaries_of_its_commands(run, names):
    text, _, listed = run(*names, "--help").stdout.partition("Commands:\n")

    assert ("Exit status:" in text) != bool(listed and names), (
        "add the exit status to the docstring"
    )
    cut = [line for line in listed.splitlines() if line.endswith("...")]
    assert cut == [], "give these commands a short_help"
