"""`roadstead.sweep` and `roadstead.compare`: what they play, return, keep and refuse."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import roadstead
from roadstead.api import sweep as sweep_module
from roadstead.api.scenario import scenario_file
from roadstead.api.scenario_runs import scenario_runs
from roadstead.config.scenario.vary import packed
from roadstead.config.settings import Settings
from roadstead.sweeps.tasks import Plain
from tests.api.test_simulation import SCENARIO

CONTAINER = {"name": "main", "image": "i", "resources": {"requests": {"cpu": 3}}}
BUSY: dict[str, Any] = SCENARIO | {
    "workload": [
        {
            "name": "tasks",
            "arrivals": {"poisson": {"per_hour": 60}},
            "duration": "10m",
            "pods": [{"template": {"spec": {"containers": [CONTAINER]}}}],
        }
    ],
}
RATE = "workload.tasks.arrivals.poisson.per_hour"


def test_a_sweep_has_points_runs_and_a_table(tmp_path: Path) -> None:
    seen = []

    swept = roadstead.sweep(BUSY, {RATE: [10, 60]}, output=tmp_path / "out", progress=seen.append)

    assert [(each.values[RATE], each.seed) for each in swept.runs] == [
        (10, 0),
        (10, 1),
        (60, 0),
        (60, 1),
    ]
    few, many = (each.metrics["utilization cpu"] for each in swept.points)
    assert few.low <= few.median <= few.high
    assert few.median < many.median
    table = swept.to_arrow()
    assert table.column_names[:3] == [RATE, "seed", "placed_share"]
    assert table.column(RATE).to_pylist() == ["10", "10", "60", "60"]
    assert json.loads((tmp_path / "out" / "sweep.json").read_text()) == swept.document()
    assert seen[-1].done == seen[-1].total == 4


@pytest.mark.parametrize("name", ["sweep.json", "sweep.csv"])
def test_a_result_that_cannot_be_written_is_named_and_not_half_written(
    tmp_path: Path, fill_disk_at: Callable[[str], None], name: str
) -> None:
    fill_disk_at(name)
    with pytest.raises(roadstead.InputError, match=f"{name}: cannot be written: No space left"):
        roadstead.sweep(BUSY, {RATE: [10]}, seeds=1, output=tmp_path / "out")
    assert not (tmp_path / "out" / name).exists()


class Opened(Exception):
    """Raised where tasks would start, with the settings and the number of jobs."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> None:
    class Launcher:
        def open_tasks(self, work: object, settings: Settings, jobs: int | None, _: object) -> None:
            raise Opened(settings.ray.address, jobs)

    monkeypatch.setattr(sweep_module, "open_launcher", Launcher)


@pytest.mark.parametrize(
    ("given", "address", "jobs"),
    [
        ({"ray_address": "auto"}, "auto", None),
        ({"ray_address": "h1:6379", "jobs": 1}, "h1:6379", 1),
        ({"ray_address": "local", "jobs": 3}, "local", 3),
        ({"jobs": 3}, None, 3),
    ],
)
@pytest.mark.usefixtures("opened")
def test_a_sweep_is_played_by_the_processes_that_are_asked_for(
    given: dict[str, Any], address: str | None, jobs: int | None
) -> None:
    with pytest.raises(Opened) as found:
        roadstead.sweep(BUSY, **given)
    with pytest.raises(Opened) as compared:
        roadstead.compare("default", "binpack", scenario=BUSY, **given)

    assert found.value.args == compared.value.args == (address, jobs)


@pytest.mark.parametrize("given", [{}, {"jobs": 1}, {"ray_address": "local"}])
@pytest.mark.usefixtures("opened")
def test_a_sweep_is_played_in_this_process_unless_others_are_asked_for(
    given: dict[str, Any],
) -> None:
    assert len(roadstead.sweep(BUSY, **given).runs) == 2


def test_a_sweep_continues_from_its_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    swept = roadstead.sweep(BUSY, {RATE: [10, 60]}, output=out)
    lines = (out / "results.jsonl").read_text().splitlines(keepends=True)
    (out / "results.jsonl").write_text("".join(lines[:3]))
    seen = []

    again = roadstead.sweep(BUSY, {RATE: [10, 60]}, output=out, resume=True, progress=seen.append)

    assert again.document() == swept.document()
    assert seen[0].restored == 2
    with pytest.raises(roadstead.InputError, match="holds other files"):
        roadstead.sweep(BUSY, {RATE: [10, 60]}, output=out)


def test_configurations_are_compared_on_a_scenario(tmp_path: Path) -> None:
    compared = roadstead.compare(
        "default", "binpack", scenario=BUSY, seeds=3, output=tmp_path / "out"
    )

    assert (compared.a, compared.b, compared.pairs, compared.left_out) == (
        "default",
        "binpack",
        3,
        0,
    )
    assert compared["placed_share"].pairs == 3
    assert compared.to_arrow().num_rows == len(compared.differences)
    assert compared.document()["confidence"] == 0.95
    with pytest.raises(KeyError):
        _ = compared["nothing"]
    swept = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert swept["vary"] == {"config": ["default", "binpack"]}


def test_results_and_their_folders_are_compared_by_seed(tmp_path: Path) -> None:
    played = roadstead.simulate(BUSY, output=tmp_path / "a")
    fewer = BUSY | {"seeds": 3, "fleet": [{"generate": {"nodes": 1, "shape": "cpu-8"}}]}
    swept = roadstead.sweep(fewer)

    compared = roadstead.compare(played, swept)

    assert (compared.pairs, compared.left_out) == (2, 1)
    assert compared["utilization cpu"].difference > 0
    assert roadstead.compare(tmp_path / "a", swept).differences == compared.differences
    # One seed: no interval.
    one = roadstead.compare(roadstead.simulate(BUSY, seed=0), roadstead.sweep(fewer, seeds=1))
    assert one.to_arrow().column("student_low").null_count == len(one.differences)


PLUGIN = """
from roadstead.framework.per_node import NodePlugin


class Odd(NodePlugin):
    name = "Odd"

    def score(self, pod, node):
        return 100 * (int(node.name[-1]) % 2)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "swept_plugin.py").write_text(PLUGIN)
    yield "swept_plugin.py"
    sys.modules.pop("swept_plugin", None)


def test_plugins_of_one_side_are_compared_with_the_other(tmp_path: Path, plugin: str) -> None:
    out = tmp_path / "out"

    found = roadstead.compare(scenario=BUSY, plugin_b=plugin, output=out, tables=True)

    assert (found.a, found.b, found.pairs) == ("no plugin", plugin, 2)
    assert "plugin swept_plugin" in found.inputs
    assert json.loads((out / "compare.json").read_text()) == found.document()
    assert "Over time" in (out / "report.html").read_text()
    finished = roadstead.compare(out, out, output=tmp_path / "again")
    assert finished.differences
    assert (tmp_path / "again" / "compare.csv").is_file()


def test_a_plugin_is_played_in_every_combination(plugin: str) -> None:
    with_it = roadstead.sweep(BUSY, {"seeds": [1]}, plugin=plugin, seeds=1)
    varied = roadstead.sweep(BUSY, {"plugin": [None, plugin]}, seeds=1)

    assert varied.runs[1].metrics == with_it.runs[0].metrics
    assert "plugin swept_plugin" in cast("dict[str, str]", with_it.document()["inputs"])


def test_a_process_without_the_plugin_fails_with_instructions(tmp_path: Path) -> None:
    played = scenario_runs(
        {"scenario": cast("Plain", packed(scenario_file(BUSY))), "plugin_dir": ""}
    )
    task: dict[str, Plain] = {"values": {}, "seed": 0, "tables": "", "digests": []}

    with pytest.raises(roadstead.InputError, match=r"cannot be loaded .*; install its package on"):
        played(task | {"plugins": ["absent_plugin:Absent"]})


def test_code_that_differs_from_that_of_the_driver_is_refused(tmp_path: Path, plugin: str) -> None:
    scenario = cast("Plain", packed(scenario_file(BUSY)))
    played = scenario_runs({"scenario": scenario, "plugin_dir": str(tmp_path)})
    task: dict[str, Plain] = {"values": {}, "seed": 0, "tables": ""}
    task |= {"plugins": ["swept_plugin:Odd"], "digests": [["swept_plugin", "0" * 64]]}

    with pytest.raises(roadstead.InputError, match="differs from the code"):
        played(task)


def test_wrong_arguments_are_input_errors(tmp_path: Path) -> None:
    refused = [
        (lambda: roadstead.sweep(BUSY, {"fleet.0.generate.node": [9]}), 'has no key "node"'),
        (lambda: roadstead.sweep(BUSY, {RATE: []}), "has no values"),
        (lambda: roadstead.sweep(BUSY, {RATE: 5}), "must be a list of values"),  # type: ignore[dict-item]
        (lambda: roadstead.sweep(BUSY, {"config": "binpack"}), "must be a list of values"),
        (lambda: roadstead.sweep(BUSY, "config=a"), "must be a mapping"),  # type: ignore[arg-type]
        (lambda: roadstead.sweep(BUSY, {RATE: [1, 1]}), "has a value twice"),
        (lambda: roadstead.sweep(BUSY, {RATE: [-1]}), "workload"),
        (lambda: roadstead.sweep(BUSY, seeds=0), "must be 1 to 10,000"),
        (lambda: roadstead.sweep(BUSY, jobs=0), "must be 1 to 10,000"),
        (lambda: roadstead.sweep(BUSY, ray_address="ray://h:1"), "an address of Ray Client"),
        (lambda: roadstead.compare("a", "b", ray_address="auto"), "has no use without a scenario"),
        (lambda: roadstead.sweep(BUSY, tables=True), "needs output"),
        (lambda: roadstead.sweep(BUSY, resume=True), "needs output"),
        (lambda: roadstead.compare("default", "default", scenario=BUSY), "is the same config"),
        (lambda: roadstead.compare(tmp_path, tmp_path), "holds no run of"),
        (lambda: roadstead.compare("a", "b", seeds=3), "has no use without a scenario"),
        (lambda: roadstead.compare("a", "b", plugin_b="m:C"), "has no use without a scenario"),
        (lambda: roadstead.compare("a", "b", tables=True), "has no use without a scenario"),
        (lambda: roadstead.compare(tmp_path), "holds no run of"),
        (lambda: roadstead.compare(scenario=BUSY), "a: is missing"),
        (lambda: roadstead.compare("default", scenario=BUSY), "b: is missing"),
        (lambda: roadstead.sweep(BUSY, {"plugin": [5]}), "must be MODULE:CLASS"),
    ]
    for call, rule in refused:
        with pytest.raises(roadstead.InputError, match=rule):
            call()
