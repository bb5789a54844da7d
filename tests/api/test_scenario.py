"""`roadstead.Scenario`, `Fleet` and `Workload`: the fields of a scenario document, in Python."""

import inspect
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import roadstead
from roadstead import Fleet, Scenario, Workload
from roadstead.config.reader import read_document
from roadstead.config.scenario.examples import example_text, list_examples
from roadstead.config.scenario.schema import Scenario as Schema
from roadstead.config.scenario.structure import fields_of, known_keys
from roadstead.config.scenario.workload import TraceWorkload

TASK = {"spec": {"containers": [{"name": "main", "image": "task"}]}}
CONTROLLERS = {
    "deployment": "deployment",
    "replica_set": "replicaSet",
    "stateful_set": "statefulSet",
    "daemon_set": "daemonSet",
    "job": "job",
}


def small(**keys):
    tasks = Workload.arrivals(TASK, every="1m", duration="10m", name="tasks")
    fleet = [Fleet.generate(2, shape="cpu-8")]
    return Scenario("small", **{"fleet": fleet, "workload": [tasks], "horizon": "1h", **keys})


def arguments(method):
    return set(inspect.signature(method).parameters) - {"self"}


def test_the_arguments_of_a_scenario_are_the_keys_of_its_schema():
    head = {"apiVersion", "kind", "metadata", "extends"}

    assert arguments(Scenario.__init__) == {
        *(key for key, _ in fields_of(Schema) if key not in head),
        *known_keys(Schema, ["metadata"]),
    }


def test_the_methods_and_arguments_of_entries_are_the_keys_of_the_schema():
    def methods(kind):
        return {name for name, _ in inspect.getmembers(kind, inspect.isfunction)} - {
            name for name, _ in inspect.getmembers(kind.__mro__[1], inspect.isfunction)
        }

    assert methods(Fleet) == set(known_keys(Schema, ["fleet", 0]))
    assert arguments(Fleet.generate) == set(known_keys(Schema, ["fleet", 0, "generate"]))
    assert methods(Workload) == {"trace", "arrivals", *CONTROLLERS}
    assert {"trace", "arrivals", *CONTROLLERS.values()} <= set(known_keys(Schema, ["workload", 0]))
    for method, key in CONTROLLERS.items():
        found = arguments(getattr(Workload, method))
        assert found == set(known_keys(Schema, ["workload", 0, key])), method
    arrivals = set(known_keys(Schema, ["workload", 0, "arrivals"]))
    assert arguments(Workload.arrivals) == arrivals | {"pods", "duration", "name"}
    of_trace = {key for key, _ in fields_of(TraceWorkload)}
    assert arguments(Workload.trace) == of_trace - {"trace"} | {"file"}


def test_omitted_arguments_are_omitted_from_the_document():
    assert small().document() == {
        "apiVersion": "roadstead.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "small"},
        "fleet": [{"generate": {"nodes": 2, "shape": "cpu-8"}}],
        "workload": [
            {
                "name": "tasks",
                "duration": "10m",
                "arrivals": {"every": "1m"},
                "pods": [{"template": TASK}],
            }
        ],
        "horizon": "1h",
    }


@pytest.mark.parametrize("name", list_examples())
def test_the_yaml_of_a_scenario_is_read_back_as_the_same_document(name, tmp_path):
    path = tmp_path / f"{name}.yaml"
    path.write_text(example_text(name))
    scenario = Scenario.load(path)

    assert read_document(scenario.to_yaml(), source="") == scenario.document()
    assert scenario.document() == read_document(example_text(name), source="")


def test_texts_that_yaml_reads_as_numbers_stay_texts():
    labels = {"a": "1e3", "b": "y", "c": "0o17", "d": "1_000", "e": "null", "f": "1:30"}
    shape = {"allocatable": {"cpu": 4}, "labels": labels}
    scenario = Scenario("odd", fleet=[Fleet.generate(1, shape=shape)])

    assert read_document(scenario.to_yaml(), source="") == scenario.document()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"fleet": [Fleet.generate(0)]}, "scenario: fleet[0].generate.nodes: 0: must be "),
        ({"fleet": [{"generate": {"node": 1, "nodes": 1}}]}, "unknown field (did you mean nodes?)"),
        ({"fleet": Fleet.generate(1)}, "scenario: fleet: "),
        ({"horizon": 7}, "scenario: horizon: 7: needs a unit"),
        ({"seeds": 0}, "scenario: seeds: 0: must be 1 to"),
        (
            {"workload": [Workload.arrivals(TASK)]},
            "workload[0].arrivals: dict of 0: needs exactly one of",
        ),
        ({"events": [{"at": "1h", "loose": {}}]}, "scenario: events[0]: "),
        ({"limits": {"pods": object()}}, "scenario: is no JSON document"),
    ],
)
def test_an_error_names_the_key(keys, message):
    with pytest.raises(roadstead.InputError) as raised:
        small(**keys)

    assert message in str(raised.value)
    assert "line" not in str(raised.value)


def test_a_value_that_no_document_has_is_refused_by_its_entry():
    with pytest.raises(roadstead.InputError, match="Workload: is no JSON document"):
        Workload.deployment({"spec": {1, 2}})


def test_iterables_become_lists():
    assert small(seeds=range(2, 4)).document()["seeds"] == [2, 3]


def test_check_reads_files_relative_to_the_directory_in_which_the_scenario_was_made(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("task.yaml").write_text(
        str({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "t"}, **TASK})
    )
    scenario = small(workload=[Workload.deployment(Path("task.yaml"), replicas=3)])
    missing = small(workload=[Workload.deployment("none.yaml")])
    monkeypatch.chdir("/")

    summary = scenario.check()

    assert (summary.nodes, summary.controllers[0].replicas) == (2, 3)
    with pytest.raises(roadstead.InputError, match=r"workload\[0\].deployment.template"):
        missing.check()


def test_a_changed_copy_leaves_the_original_as_it_is():
    scenario = small()

    changed = scenario.with_values(
        {
            "workload.tasks.arrivals": {"every": "2m"},
            "fleet": [Fleet.generate(3, shape="cpu-4")],
            "config": "binpack",
            "start_delay": "1s",
        }
    )

    assert changed.document()["workload"][0]["arrivals"] == {"every": "2m"}
    assert changed.document()["scheduler"] == {"config": [], "preset": ["binpack"]}
    assert changed.check().nodes == 3
    assert scenario.document() == small().document()
    again = changed.with_values({"horizon": "2h"})
    assert again.document() == {**changed.document(), "horizon": "2h"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"fleet.0.generate.node": 3}, 'scenario: "fleet.0.generate.node": has no key "node"'),
        ({"horizon": 3}, "scenario with horizon=3: horizon: 3: needs a unit"),
        ({"workload.task.arrivals": {}}, 'has no entry "task"'),
        ({"plugin": "mine.py"}, "scenario: plugin: is no key of a scenario"),
    ],
)
def test_a_wrong_change_names_the_key(values, message):
    with pytest.raises(roadstead.InputError) as raised:
        small().with_values(values)

    assert message in str(raised.value)


def test_a_scenario_that_extends_another_has_its_keys(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base.yaml").write_text(small().to_yaml())
    (tmp_path / "base" / "far.yaml").write_text(small().to_yaml())
    head = "apiVersion: roadstead.dev/v1\nkind: Scenario\nmetadata: {name: mine}\n"
    (tmp_path / "near.yaml").write_text(f"{head}extends: base.yaml\n")
    (tmp_path / "mine.yaml").write_text(f"{head}extends: base/far.yaml\n")

    near = Scenario.load(tmp_path / "near.yaml")

    assert near.name == "mine"
    assert "extends" not in near.to_yaml()
    assert near.document()["fleet"] == small().document()["fleet"]
    with pytest.raises(roadstead.InputError, match="are relative"):
        Scenario.load(tmp_path / "mine.yaml").to_yaml()


def test_simulate_sweep_and_compare_play_a_scenario(tmp_path):
    scenario = small(horizon="10m")

    played = roadstead.simulate(scenario, output=tmp_path / "run")
    swept = roadstead.sweep(scenario, {"workload.tasks.arrivals.every": ["1m", "2m"]})
    compared = roadstead.compare("default", "binpack", scenario=scenario)

    assert played.summary.created == 10
    assert (tmp_path / "run" / "scenario.yaml").read_text() == scenario.to_yaml()
    assert roadstead.load_run(tmp_path / "run").why("pod-0-3").pod.node
    assert len(swept.runs) == 2
    assert compared.pairs == 1


def test_frames_of_tables_without_rows_have_their_types(monkeypatch):
    fake = SimpleNamespace(DataFrame=dict, Series=lambda values, dtype: (list(values), dtype))
    monkeypatch.setitem(sys.modules, "pandas", fake)

    events = roadstead.simulate(small(horizon="5m", workload=[])).to_pandas("events")

    assert events["time_us"] == ([], np.int64)
    assert events["what"] == ([], str)


def test_entries_are_equal_if_their_content_is():
    assert Fleet.trace("a.trace") == Fleet.trace(Path("a.trace"))
    assert len({Fleet.generate(1), Fleet.generate(1), Fleet.generate(2)}) == 2
    assert Fleet.trace("a") != Workload.trace("a")
    assert repr(Fleet.generate(1)) == '<Fleet {"generate": {"nodes": 1}}>'
    assert repr(small(seeds=2)) == "<Scenario small: 2 seeds>"
