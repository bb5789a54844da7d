"""A moment of a simulated run as the inputs of what-if questions: what its tables show."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from roadstead.api.moment import RunMoment, load_moment, time_of
from roadstead.api.run_query import RunQuery
from roadstead.cli.main import build_cli
from roadstead.protocol.errors import InputError
from tests.cli.conftest import Run
from tests.cli.plain_launcher import PlainLauncher
from tests.scenario.files import written

MINUTE_US = 60_000_000

SCENARIO = """apiVersion: roadstead.dev/v1
kind: Scenario
metadata: {name: moment}
fleet: [{generate: {nodes: 3, shape: cpu-8, zones: 3}}]
workload:
- name: tasks
  arrivals: {every: 1m, count: 30}
  duration: 10m
  pods: [{template: {metadata: {name: task}, spec: {containers: [
    {name: main, image: i, resources: {requests: {cpu: 3}}}]}}}]
- deployment:
    name: web
    replicas: 2
    template: {metadata: {labels: {app: web}}, spec: {containers: [
      {name: main, image: i, resources: {requests: {cpu: 100m}}}]}}
events:
- at: 15m
  lose: {zone: zone-1}
  for: 20m
- at: 41m
  remove: {nodes: 1}
scheduler: {config: [default.yaml, binpack.yaml]}
horizon: 1h
seeds: [3]
"""
BINPACK = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the scenario, its inputs and its runs."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "binpack.yaml").write_text(BINPACK)
    (folder / "default.yaml").write_text(BINPACK.replace("Most", "Least"))
    written(folder, SCENARIO, "moment.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(build_cli(PlainLauncher), ["simulate", "moment.yaml"])
    assert result.exit_code == 0, result.stderr
    return folder


@pytest.fixture
def played(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a copy of the folder; return its runs."""
    monkeypatch.chdir(shutil.copytree(original, tmp_path / "copy"))
    return tmp_path / "copy" / "moment.run"


def moment_of(folder: Path, at_us: int) -> RunMoment:
    return load_moment(folder, at_us, (), lambda name, engine: None)


def pods_of_tables(folder: Path, at_us: int) -> tuple[dict[str, str], list[str]]:
    """Nodes of the pods on nodes, and the waiting pods, after all events of a time."""
    query = RunQuery(folder)
    alive = "FROM pods WHERE created_us <= $at AND (ended_us IS NULL OR ended_us > $at)"
    on = query.execute(f"SELECT uid, node {alive} AND bound_us <= $at", {"at": at_us}).rows
    waiting = f"SELECT uid {alive} AND (bound_us IS NULL OR bound_us > $at) ORDER BY number"
    return (
        {str(uid): str(node) for uid, node in on},
        [str(uid) for (uid,) in query.execute(waiting, {"at": at_us}).rows],
    )


@pytest.mark.parametrize("minute", [0, 7, 14, 15, 16, 22, 36, 45, 60])
@pytest.mark.parametrize("name", ["default-3", "binpack-3"])
def test_the_pods_of_a_moment_are_those_of_the_tables(played: Path, name: str, minute: int) -> None:
    at_us = minute * MINUTE_US
    loaded = moment_of(played / name, at_us).loaded

    on, waiting = pods_of_tables(played / name, at_us)
    assert {who.uid: node for who, _, node in loaded.inputs.running} == on
    assert [who.uid for who, _ in loaded.inputs.pending] == waiting


def test_a_moment_has_the_nodes_and_the_taints_of_its_time(played: Path) -> None:
    before, during, after = (
        {each.name: each for each in moment_of(played, minute * MINUTE_US).loaded.inputs.nodes}
        for minute in (14, 20, 50)
    )

    assert not any(each.taints for each in before.values())
    lost = [each.zone for each in during.values() if each.taints]
    assert [zone.rpartition(":")[2] for zone in lost] == ["zone-1"]
    assert len(before) == len(during) == len(after) + 1


def test_the_configuration_is_that_of_the_run(played: Path) -> None:
    config = moment_of(played / "binpack-3", 0).config

    assert (config.text, config.source) == (BINPACK, "binpack")


@pytest.mark.parametrize("minute", [3, 12, 59])
def test_a_question_at_a_time_counts_the_resources_free_at_that_time(
    run: Run, played: Path, minute: int
) -> None:
    result = run("fit", "web", "--run", played, "--at", f"{minute}m", "--format", "json")
    inputs = moment_of(played, minute * MINUTE_US).loaded.inputs

    used = Counter[str]()
    for _, facts, node in inputs.running:
        used[node] += dict(facts.requests)["cpu"]
    free = {each.name: dict(each.allocatable)["cpu"] - used[each.name] for each in inputs.nodes}
    assert json.loads(result.stdout)["replicas"] == sum(each // 100 for each in free.values())


def test_a_zone_is_drained_at_a_moment(run: Run, played: Path) -> None:
    result = run("drain", "zone-0", "--run", played, "--at", "3m", "--force", "--format", "json")

    assert result.exit_code in (0, 1), result.stderr
    on, _ = pods_of_tables(played / "default-3", 3 * MINUTE_US)
    document = json.loads(result.stdout)
    moved = {each["pod"]: each["node"] for each in document["pods"]}
    assert moved, document
    assert all(on[pod] == node for pod, node in moved.items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--at", "2h"), "--at: 2h is after the end of the run (1h)"),
        (("--at", "5"), '--at: "5" is not a duration'),
        (("--plugin", "no_such:Plugin"), "no_such"),
        (("--cluster", "x.yaml"), "--run excludes --cluster, --pods and --trace"),
    ],
)
def test_wrong_moments_are_refused(
    run: Run, played: Path, options: tuple[str, ...], message: str
) -> None:
    result = run("fit", "task", "--run", played, *options)

    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_moment_without_a_run_is_refused(run: Run) -> None:
    result = run("fit", "task", "--cluster", "x.yaml", "--at", "1h")

    assert "--at needs --run" in result.stderr


def test_a_changed_input_is_named(run: Run, played: Path) -> None:
    (copy,) = played.rglob("inputs/*/binpack.yaml")
    copy.write_text(BINPACK.replace("Most", "Least"))

    result = run("grow", "--shrink", "--run", played)

    assert result.exit_code == 2
    assert 'inputs: "binpack.yaml" is not what the run was played with' in result.stderr


def test_times_are_read_as_in_a_scenario() -> None:
    assert time_of("1h30m") == 90 * MINUTE_US
    with pytest.raises(InputError, match="--at"):
        time_of("yesterday")
