"""`roadstead scenario`: the figures of a scenario, its errors, and the examples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roadstead.cli.scenario_command import EXAMPLES
from roadstead.config.scenario.examples import example_text, list_examples
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import TraceBuilder
from roadstead.fleet.trace_file import write_trace
from roadstead.protocol.errors import InputError
from tests.cli.conftest import Run
from tests.scenario.files import NAMED_POD, scenario, write_json, written

TASKS = json.dumps(
    {
        "name": "tasks",
        "arrivals": {"every": "1m"},
        "duration": "1h",
        "pods": [{"template": "task.yaml", "gang": 2}],
    }
)
WEB = json.dumps({"deployment": {"name": "web", "template": "task.yaml", "replicas": 3}})
BODY = f"""workload: [{TASKS}, {WEB}]
events:
- {{at: 1h, lose: {{zone: zone-1}}, for: 10m}}
- {{nodes: {{mtbf: 19h, mttr: 1h}}}}
horizon: 10h
seeds: 2
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_json(tmp_path, "task.yaml", {"apiVersion": "v1", "kind": "Pod", **NAMED_POD})
    return written(tmp_path, scenario(BODY))


def test_check_prints_the_figures_of_a_scenario(run: Run, path: Path) -> None:
    result = run("scenario", "check", path)

    assert result.exit_code == 0
    lines = [line.strip() for line in result.stdout.splitlines()]
    figures = dict(line.split("  ", 1) for line in lines if "  " in line)
    assert {name: text.strip() for name, text in figures.items()} == {
        "scenario": "test",
        "nodes": "4 in 2 zones: zone-0 2, zone-1 2",
        "cpu": "32 cores",
        "memory": "128 GiB",
        "arrivals": "600 expected, 60 per hour",
        "controllers": "1 with 3 pods at first",
        "events": "2, which occur 3 times",
        "horizon": "10h, 120 samples",
        "runs": "2: 2 seeds, configuration default",
    }
    assert "tasks: 60 per hour, 600 in all, 1,200 pods" in lines
    assert "Deployment default/web: 3 pods" in lines
    assert "at 1h: lose 2 nodes for 10m" in lines
    assert "4 nodes fail at random, 2 times; repair 1h" in lines
    assert any("placed alone" in line for line in lines)


def test_check_prints_the_same_figures_as_json(run: Run, path: Path) -> None:
    result = run("scenario", "check", path, "--format", "json")

    figures = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (figures["nodes"], figures["zones"]) == (4, {"zone-0": 2, "zone-1": 2})
    assert figures["sources"] == [
        {"name": "tasks", "per_hour": 60.0, "arrivals": 600.0, "pods": 1_200.0}
    ]
    assert [each["action"] for each in figures["events"]] == ["lose", "fail"]
    assert figures["horizon_us"] == 36_000_000_000
    assert figures["seeds"] == [0, 1]


def test_an_error_names_file_line_path_and_rule(run: Run, path: Path) -> None:
    path.write_text(path.read_text().replace("seeds: 2", "seed: 2"))

    result = run("scenario", "check", path)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (f"{path}: line 10: seed: 2: unknown field (did you mean seeds?)\n")


PLUGIN = """from roadstead.framework.per_node import NodePlugin


class Small(NodePlugin):
    name = "Small"

    def score(self, pod, node):
        return 1
"""
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"score": {"enabled": [{"name": "Small"}]}}}],
}


def test_a_configuration_may_name_a_plugin_of_the_command_line(
    run: Run, path: Path, here: Path
) -> None:
    written(here, PLUGIN, "small_scenario_plugin.py")
    write_json(path.parent, "small.yaml", CONFIG)
    plugin = ("--plugin", "small_scenario_plugin:Small")
    text = path.read_text()

    added = run("scenario", "check", path, *plugin)
    path.write_text(f"{text}scheduler: {{config: [small.yaml]}}")
    unknown = run("scenario", "check", path)
    named = run("scenario", "check", path, *plugin)
    path.write_text(f"{text}scheduler: {{preset: [binpack]}}")
    unused = run("scenario", "check", path, *plugin)

    assert "configuration plugins" in added.stdout
    assert unknown.exit_code == 2
    assert "Small" in unknown.stderr
    assert "configuration small" in named.stdout
    assert "Plugin Small is not used" in unused.stdout


def test_a_missing_scenario_is_an_error(run: Run, tmp_path: Path) -> None:
    result = run("scenario", "check", tmp_path / "none.yaml")

    assert result.exit_code == 2
    assert "none.yaml: cannot be read: No such file or directory" in result.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_a_valid_scenario_with_comments(
    name: str, run: Run, tmp_path: Path
) -> None:
    builder = TraceBuilder("openb", {"default": ()})
    builder.add_node(NodeFacts("n"))
    builder.add_pod("p", "u", PodFacts(), 10, 70)
    write_trace(tmp_path / "openb.trace", builder.build())
    path = tmp_path / "example.yaml"

    made = run("scenario", "init", name, "-o", path)
    checked = run("scenario", "check", path)

    assert made.exit_code == 0
    assert checked.exit_code == 0, checked.stderr
    assert f"scenario {name}" in " ".join(checked.stdout.split())
    assert path.read_text().count("# ") >= 4


def test_init_prints_a_small_scenario_by_default(run: Run) -> None:
    assert run("scenario", "init").stdout == example_text("small")


def test_init_replaces_a_file_only_with_force(run: Run, path: Path) -> None:
    before = path.read_text()

    refused = run("scenario", "init", "-o", path)
    assert refused.exit_code == 2
    assert "exists already" in refused.stderr
    assert path.read_text() == before

    assert run("scenario", "init", "-o", path, "--force").exit_code == 0
    assert path.read_text() == example_text("small")


def test_the_command_knows_all_examples_and_an_unknown_one_is_an_error() -> None:
    assert list_examples() == EXAMPLES

    with pytest.raises(InputError, match="there are: gpu, openb, small, zone-loss"):
        example_text("large")
