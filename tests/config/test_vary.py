"""Variants of a scenario: which keys there are, and what a value replaces."""

import json

import pytest

from roadstead.config.scenario.vary import (
    configs_of,
    packed,
    plugins_of,
    read_axis,
    unpacked,
    vary,
)
from roadstead.protocol.errors import InputError
from tests.scenario.files import TASKS, read, scenario, written

FILE = read(scenario(f"workload: [{{name: tasks, {TASKS}}}, {{name: others, {TASKS}}}]\n"))


def test_an_entry_of_a_list_has_its_number_or_its_name():
    named = read_axis(FILE, "workload.others.arrivals.poisson.per_hour=1,2.5")
    numbered = read_axis(FILE, "workload.1.arrivals.poisson.per_hour=1,2.5")

    assert named.path == numbered.path == ("workload", 1, "arrivals", "poisson", "per_hour")
    assert named.values == (1, 2.5)


def test_the_name_of_a_controller_is_that_of_its_entry():
    file = read(scenario("workload: [{deployment: {name: web, template: t.yaml, replicas: 3}}]\n"))

    assert read_axis(file, "workload.web.deployment.replicas=4").path[1] == 0


def test_only_the_named_value_is_replaced():
    made = vary(FILE, {"workload.tasks.arrivals.poisson.per_hour": 7})

    first, second = made.scenario.workload
    assert first.arrivals.poisson.per_hour == 7
    assert second == FILE.scenario.workload[1]
    assert FILE.scenario.workload[0].arrivals.poisson.per_hour == 60, "the original is unchanged"


def test_a_key_that_the_scenario_leaves_out_can_be_varied():
    assert vary(FILE, {"start_delay": "3s"}).scenario.start_delay == 3_000_000
    assert vary(FILE, {"limits.pods": 5}).scenario.limits.pods == 5


def test_a_key_without_a_value_may_have_keys_below_it():
    file = read(scenario(f"workload: [{{duration: null, {TASKS}}}]\n"))

    made = vary(file, {"workload.0.duration.exponential.mean": "1h"})

    assert made.scenario.workload[0].duration.exponential.mean == 3_600_000_000


def test_names_in_a_key_may_have_dots():
    shape = '{allocatable: {cpu: "4", nvidia.com/gpu: "1"}, labels: {app: a, app.k8s.io/name: b}}'
    tasks = f"workload: [{{name: v1.2, {TASKS}}}]\n"
    file = read(scenario(tasks, f"fleet: [{{generate: {{nodes: 1, shape: {shape}}}}}]\n"))
    above = "fleet.0.generate.shape"

    made = vary(
        file,
        {
            f"{above}.allocatable.nvidia.com/gpu": "8",
            f"{above}.labels.app": "c",
            f"{above}.labels.app.k8s.io/name": "d",
            "workload.v1.2.arrivals.poisson.per_hour": 7,
        },
    )

    found = made.scenario.fleet[0].generate.shape
    assert str(found.allocatable["nvidia.com/gpu"]) == "8"
    assert found.labels == {"app": "c", "app.k8s.io/name": "d"}
    assert made.scenario.workload[0].arrivals.poisson.per_hour == 7


def test_a_document_that_is_larger_as_json_can_be_varied_and_packed():
    template = {"metadata": {"annotations": {"about": "ä" * 300_000}}}
    work = {"arrivals": {"every": "1s"}, "pods": [{"template": template}]}
    file = read(scenario(f"workload: {json.dumps([work], ensure_ascii=False)}"))

    made = vary(file, {"seeds": 3})

    assert unpacked(packed(made)).scenario == made.scenario


def test_a_value_may_be_a_mapping():
    axis = read_axis(FILE, "workload.tasks.arrivals={every: 1m},{every: 2m}")

    assert axis.values == ({"every": "1m"}, {"every": "2m"})


def test_a_configuration_is_a_file_or_an_included_one(tmp_path):
    written(tmp_path, "", "mine.yaml")
    file = read(scenario("scheduler: {preset: [default, spread]}\n"), tmp_path)

    assert configs_of(vary(file, {"config": "mine.yaml"})) == ["mine.yaml"]
    assert vary(file, {"config": "binpack"}).scenario.scheduler.preset == ["binpack"]
    assert vary(file, {"scheduler.preset": "spread"}).scenario.scheduler.preset == ["spread"]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ("fleet.0.generate.node=3", 'has no key "node" (near: nodes'),
        ("horizn=1d", "near: horizon"),
        ("confg=default", "near: config"),
        ("workload.taks.arrivals=1", "want 0 to 1, tasks"),
        ("workload.2.arrivals=1", 'has no entry "2"'),
        (f"workload.{'9' * 5_000}.arrivals=1", "has no entry"),
        ("workload.=1", 'has no entry ""'),
        ("horizon..=1", "nothing below it"),
        ("horizon.hours=1", "nothing below it"),
        ("horizon", "must be KEY="),
        ("horizon=", "must be KEY="),
        ("horizon=1d,1d", "has a value twice"),
        ("horizon=[", "--vary"),
    ],
)
def test_a_wrong_key_is_refused_with_near_names(given, rule):
    file = read(scenario(f"horizon: 1d\nworkload: [{{name: tasks, {TASKS}}}, {{{TASKS}}}]\n"))

    with pytest.raises(InputError) as refused:
        read_axis(file, given)
    assert rule in str(refused.value)


def test_an_entry_of_an_empty_list_is_refused():
    file = read(scenario("workload: []\n"))

    with pytest.raises(InputError, match='has no entry "0": the list is empty'):
        read_axis(file, "workload.0.rate=2")


def test_an_impossible_value_is_refused_with_the_key():
    with pytest.raises(InputError, match=r"with fleet.0.generate.nodes=-8.*at least 1"):
        vary(FILE, {"fleet.0.generate.nodes": -8})


def test_a_packed_scenario_is_the_same_and_finds_its_files(tmp_path):
    file = read(scenario("scheduler: {config: [mine.yaml]}\n"), tmp_path)

    again = unpacked(json.loads(json.dumps(packed(file))))

    assert again.scenario == file.scenario
    assert again.file(("scheduler", "config", 0), "mine.yaml") == tmp_path / "mine.yaml"


@pytest.mark.parametrize(
    ("value", "plugins"), [(None, ()), ("m:C", ("m:C",)), (["m:C", "f.py"], ("m:C", "f.py"))]
)
def test_plugins_of_a_combination_change_nothing_in_the_scenario(value, plugins):
    values = {"plugin": value}

    assert plugins_of(values) == plugins
    assert vary(FILE, values).document == vary(FILE, {}).document
    assert read_axis(FILE, "plugin=null,mine.py").values == (None, "mine.py")
