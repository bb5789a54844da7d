"""Hostile scenarios: each is refused with line, path and rule before anything runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from roadstead.protocol.errors import InputError
from tests.scenario.files import (
    DEPLOYMENT,
    FLEET,
    HEAD,
    POD,
    TASKS,
    loaded,
    read,
    scenario,
    written,
)

LONGEST_MESSAGE = 4_000
WORK = "workload: [{%s}]\n"


def task(arrivals: str = "poisson: {per_hour: 1}", more: str = "", pod: object = POD) -> str:
    pods = json.dumps([{"template": pod}])
    return f"workload:\n- arrivals: {{{arrivals}}}\n  {more}\n  pods: {pods}\n"


def deployment(more: str, template: object = POD) -> str:
    given = json.dumps(template)
    return f"workload:\n- deployment: {{name: api, template: {given}, {more}}}\n"


HOSTILE: dict[str, tuple[str | bytes, str]] = {
    # name: (text, part of the message)
    "empty": ("", "is empty; must be a mapping of kind Scenario"),
    "a list": ("- a", "list of 1: must be a mapping of kind Scenario"),
    "another kind": (HEAD.replace("Scenario", "Pod"), 'line 2: kind: "Pod": is not known'),
    "another version": (HEAD.replace("/v1", "/v9") + FLEET, "line 1: apiVersion:"),
    "not UTF-8": (b"kind: \xff\xfe", "is not UTF-8 text"),
    "alias bomb": (
        scenario("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n")
        + "\n".join(
            f"c{i}: &c{i} [{','.join([f'*c{i - 1}' if i else '*b'] * 10)}]" for i in range(9)
        ),
        "more than 1000000 values",
    ),
    "100,000 lists deep": (scenario("workload: " + "[" * 100_000), "deep"),
    "two documents": (f"{scenario()}---\n{scenario()}", "more than one document"),
    "a key twice": (scenario("seeds: 1\nseeds: 2"), 'key "seeds" is twice'),
    "an unknown key": (scenario("horizont: 1d"), "line 5: horizont: "),
    "an unknown key, with the closest one": (scenario("horizont: 1d"), "(did you mean horizon?)"),
    "an unknown key, deep": (
        scenario(task("poisson: {per_hours: 1}")),
        "line 6: workload[0].arrivals.poisson.per_hours: 1: unknown field (did you mean per_hour?)",
    ),
    "a key of another choice": (
        scenario(WORK % f"{TASKS}, rate: 2"),
        "line 5: workload[0].rate: 2: unknown field",
    ),
    "no choice": (
        scenario("events: [{at: 1h}]"),
        "events[0]: dict of 1: needs exactly one of lose",
    ),
    "two choices": (
        scenario(task("poisson: {per_hour: 1}, every: 1s")),
        "needs exactly one of poisson, every",
    ),
    "no fleet": (HEAD + "fleet: []", "line 4: fleet: is empty"),
    "no nodes": (scenario(fleet="fleet: [{generate: {nodes: 0}}]\n"), "nodes: 0: must be at least"),
    "too many nodes": (
        scenario(fleet="fleet: [{generate: {nodes: 1000001}}]\n"),
        "line 4: fleet[0].generate.nodes: 1000001: must be at most 1000000",
    ),
    "too many nodes together": (
        scenario(
            fleet="fleet: [{generate: {nodes: 600000, shape: cpu-4}},"
            " {generate: {nodes: 600000, shape: cpu-4}}]\n"
        ),
        "fleet[1].generate: makes more than 1,000,000 nodes in all",
    ),
    "a node name twice": (
        scenario(
            fleet="fleet: [{generate: {nodes: 1, name: a}}, {generate: {nodes: 1, name: a}}]\n"
        ),
        'has a node of the name "a-00000", as fleet[0] has',
    ),
    "an unknown shape": (
        scenario(fleet="fleet: [{generate: {nodes: 1, shape: cpu-7}}]\n"),
        'fleet[0].generate.shape: "cpu-7": is not a shape (there are: openb, cpu-4',
    ),
    "a negative amount": (
        scenario(fleet="fleet: [{generate: {nodes: 1, shape: {allocatable: {cpu: -1}}}}]\n"),
        "must not be negative",
    ),
    "a fraction of a GPU": (
        scenario(
            fleet="fleet: [{generate: {nodes: 1, shape: {allocatable: {nvidia.com/gpu: 500m}}}}]\n"
        ),
        "must be an integer",
    ),
    "a name that is none": (
        scenario(fleet="fleet: [{generate: {nodes: 1, name: 'A b'}}]\n"),
        "fleet[0].generate.name: ",
    ),
    "a negative rate": (scenario(task("poisson: {per_hour: -1}")), "-1: must be at least 1e-06"),
    "a rate of zero": (scenario(task("poisson: {per_hour: 0}")), "0: must be at least 1e-06"),
    "an enormous rate": (scenario(task("poisson: {per_hour: 1e30}")), "must be at most 1000000000"),
    "more pods than can be": (
        scenario(task("poisson: {per_hour: 1e9}") + "horizon: 365d\nsample: 1d"),
        "line 6: workload[0]: creates more than 1,000,000,000 pods before the horizon",
    ),
    "a rate that is no number": (
        scenario(task("poisson: {per_hour: .nan}")),
        "not a finite number",
    ),
    "an infinite rate": (scenario(task("poisson: {per_hour: .inf}")), "not a finite number"),
    "a rate as text": (scenario(task("poisson: {per_hour: '1'}")), "must be a number"),
    "a time without unit": (scenario("horizon: 7"), "line 5: horizon: 7: needs a unit"),
    "a time of nothing": (scenario("horizon: 0s"), "must be longer than 0"),
    "a negative time": (scenario(task("every: -1s")), '"-1s": must not be negative'),
    "a time beyond int64": (scenario("horizon: 99999999999999d"), "too long for a duration"),
    "a time beyond a century": (scenario("horizon: 40000d"), "must be at most 36500d"),
    "a time of nanoseconds": (scenario("start_delay: 1ns"), "whole number of microseconds"),
    "too many samples": (scenario("horizon: 30d\nsample: 1ms"), "sample is too short"),
    "an unordered distribution": (
        scenario(task(more="duration: {lognormal: {median: 2h, p99: 1h}}")),
        "line 7: workload[0].duration.lognormal: p99 must not be shorter than median",
    ),
    "a gang of nothing": (scenario(WORK % TASKS.replace("}}]", "}}, gang: 0]")), "test.yaml"),
    "a weight of zero": (
        scenario("workload: [{arrivals: {every: 1s}, pods: [{weight: 0, template: {spec: {}}}]}]"),
        "workload[0].pods[0].weight: 0: must be above 0",
    ),
    "a template without containers": (
        scenario(task(pod={"spec": {"containers": []}})),
        "line 8: workload[0].pods[0].template: ",
    ),
    "a template with an unknown field": (
        scenario(task(pod={"spec": {**POD["spec"], "nodeSelectr": {}}})),
        "nodeSelectr",
    ),
    "a template with a bad image port": (
        scenario(task(pod={"spec": {"containers": [{"name": "A B", "image": "x"}]}})),
        "workload[0].pods[0].template: ",
    ),
    "a template with a node": (
        scenario(task(pod={"spec": {**POD["spec"], "nodeName": "n"}})),
        "the scheduler places the pods of a scenario",
    ),
    "a template of another priority": (
        scenario(task(pod={"spec": {**POD["spec"], "priorityClassName": "high"}})),
        "is not a priority class",
    ),
    "an ephemeral volume": (
        scenario(
            task(
                pod={
                    "spec": {
                        **POD["spec"],
                        "volumes": [
                            {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
                        ],
                    }
                }
            )
        ),
        "is ephemeral",
    ),
    "a template without a pod": (
        scenario(task(pod={"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}})),
        "holds 0 objects with a pod template",
    ),
    "a template that is missing": (
        scenario("workload: [{arrivals: {every: 1s}, pods: [{template: none.yaml}]}]"),
        'line 5: workload[0].pods[0].template: "none.yaml": does not exist',
    ),
    "a template with too long a name": (
        scenario(f"workload: [{{arrivals: {{every: 1s}}, pods: [{{template: {'a' * 5000}}}]}}]"),
        "line 5: workload[0].pods[0].template: ",
    ),
    "manifests with too long a name": (
        scenario(fleet=f"fleet: [{{manifests: {'a' * 5000}}}]\n"),
        "line 4: fleet[0].manifests: ",
    ),
    "extends too long a name": (
        scenario(f"extends: {'a' * 5000}"),
        "line 5: extends: ",
    ),
    "a template that is a folder": (
        scenario("workload: [{arrivals: {every: 1s}, pods: [{template: .}]}]"),
        '".": is not a file',
    ),
    "a scenario as template": (
        scenario("workload: [{arrivals: {every: 1s}, pods: [{template: test.yaml}]}]"),
        "test.yaml: holds 0 objects with a pod template",
    ),
    "manifests that are missing": (
        scenario(fleet="fleet: [{manifests: [nodes/]}]\n"),
        'line 4: fleet[0].manifests: "nodes/": does not exist',
    ),
    "a trace that is missing": (
        scenario(fleet="fleet: [{trace: o.trace}]\n"),
        'line 4: fleet[0].trace: "o.trace": does not exist',
    ),
    "a trace that is none": (
        scenario(fleet="fleet: [{trace: test.yaml}]\n"),
        "is not a trace",
    ),
    "a configuration that is missing": (
        scenario("scheduler: {config: [none.yaml]}"),
        'line 5: scheduler.config[0]: "none.yaml": does not exist',
    ),
    "a configuration that is none": (scenario("scheduler: {config: [test.yaml]}"), "apiVersion"),
    "an unknown preset": (scenario("scheduler: {preset: [best]}"), '"best": is not a preset'),
    "a setting that is none": (
        scenario("scheduler: {settings: {worker: 2}}"),
        "line 5: scheduler.settings.worker: 2: unknown field (did you mean workers?)",
    ),
    "extends itself": (scenario("extends: test.yaml"), '"test.yaml": extends itself'),
    "extends nothing": (scenario("extends: none.yaml"), '"none.yaml": does not exist'),
    "replicas in the millions": (
        scenario(deployment("replicas: 10000000")),
        "workload[0].deployment.replicas: 10000000: must be at most 1000000",
    ),
    "a StatefulSet too large": (
        scenario(deployment("replicas: 20000").replace("deployment", "statefulSet")),
        "is more than a StatefulSet of a scenario may have",
    ),
    "a change before the creation": (
        scenario(deployment("at: 2h, scale: [{at: 1h, replicas: 2}]")),
        "changes must be between at and delete_at",
    ),
    "two controllers of one name": (
        scenario(deployment("replicas: 1") + deployment("replicas: 2").partition("\n")[2]),
        "line 7: workload[1].deployment",
    ),
    "a selector that does not match": (
        scenario(
            deployment(
                "replicas: 1",
                {
                    **DEPLOYMENT,
                    "spec": {**DEPLOYMENT["spec"], "selector": {"matchLabels": {"app": "web"}}},
                },
            )
        ),
        "does not match",
    ),
    "a percentage above 100": (
        scenario("events: [{at: 1h, drain: {nodes: 101%}}]"),
        "at most 100%",
    ),
    "a percentage in small steps": (
        scenario("events: [{at: 1h, drain: {nodes: 0.001%}}]"),
        "in steps of 0.01%",
    ),
    "a zone without nodes": (
        scenario("events: [{at: 1h, lose: {zone: zone-7}}]"),
        "line 5: events[0].lose: matches no node of the scenario",
    ),
    "a node that does not exist": (
        scenario("events: [{at: 1h, lose: {names: [x]}}]"),
        'events[0].lose.names[0]: "x": is not a node of the fleet',
    ),
    "an event without a time": (scenario("events: [{lose: {}}]"), "events[0]: needs at or every"),
    "an event longer than its interval": (
        scenario("events: [{every: 1h, for: 2h, lose: {}}]"),
        "for must be shorter than every",
    ),
    "an event without end": (
        scenario("events: [{every: 1us, lose: {nodes: 1}}]"),
        "events[0]: occurs more than 1,000,000 times",
    ),
    "nodes added without end": (
        scenario("events: [{every: 1m, add: {nodes: 10000, shape: cpu-4}}]\nhorizon: 30d"),
        "events[0]: adds more than 1,000,000 nodes",
    ),
    "a shape with too long a key of a taint": (
        scenario(
            f"shapes: {{s: {{allocatable: {{}}, taints: [{{key: {'a' * 400}}}]}}}}",
            "fleet: [{generate: {nodes: 1, shape: s}}]\n",
        ),
        "line 5: shapes.s: spec.taints[0].key: ",
    ),
    "a shape whose name is no prefix of nodes": (
        scenario(
            "shapes: {a_b: {allocatable: {}}}", "fleet: [{generate: {nodes: 1, shape: a_b}}]\n"
        ),
        'fleet[0].generate.shape: "a_b": makes names of nodes that are not allowed',
    ),
    "a taint without a key": (
        scenario("events: [{at: 1h, taint: {key: 'a b', effect: NoExecute}}]"),
        'events[0].taint.key: "a b": is not a key of a taint',
    ),
    "seeds that are equal": (scenario("seeds: [1, 1]"), "different seeds"),
    "a seed that is negative": (scenario("seeds: [-1]"), "must be seeds from 0"),
    "no memory": (scenario("limits: {memory_mib: 1}"), "must be at least 64"),
    "a column that is missing": (
        scenario(task("file: {path: test.yaml, column: at}")),
        "test.yaml: line 1: at: must be once in the header",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_scenario_is_refused(name: str, tmp_path: Path) -> None:
    text, expected = HOSTILE[name]
    path = tmp_path / "test.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())

    with pytest.raises(InputError) as refused:
        loaded(path)

    message = str(refused.value)
    assert expected in message
    assert str(tmp_path) in message, "the file is named"
    assert len(message) < LONGEST_MESSAGE


def test_scenarios_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path, f"{HEAD}extends: {(number + 1) % 3}.yaml\n", f"{number}.yaml")

    with pytest.raises(InputError, match=r"2\.yaml: line 4: extends: .*again"):
        loaded(tmp_path / "0.yaml")


def test_a_long_chain_of_scenarios_is_refused(tmp_path: Path) -> None:
    for number in range(20):
        written(tmp_path, f"{HEAD}extends: {number + 1}.yaml\n", f"{number}.yaml")

    with pytest.raises(InputError, match="chain of more than 10"):
        loaded(tmp_path / "0.yaml")


def test_a_link_that_leads_to_itself_is_refused(tmp_path: Path) -> None:
    os.symlink("loop.yaml", tmp_path / "loop.yaml")
    path = written(
        tmp_path, scenario("workload: [{arrivals: {every: 1s}, pods: [{template: loop.yaml}]}]")
    )

    with pytest.raises(InputError, match=r"does not exist|cannot be read"):
        loaded(path)
    with pytest.raises(InputError, match=r'"loop\.yaml": does not exist'):
        loaded(written(tmp_path, scenario("extends: loop.yaml")))


def test_the_work_for_each_problem_does_not_grow_with_their_number() -> None:
    def lines_run(count: int) -> int:
        found = 0

        def trace(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
            nonlocal found
            found += event == "line"
            return trace if "roadstead" in frame.f_code.co_filename else None

        text = scenario(f"events: [{{at: 1h, drain: {{names: {[1] * count}}}}}]")
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with pytest.raises(InputError, match=f"{count} problems"):
                read(text)
        finally:
            sys.settrace(before)
        return found

    assert lines_run(400) < 3 * lines_run(200)


def test_all_problems_of_a_document_are_reported_by_line(tmp_path: Path) -> None:
    path = written(tmp_path, scenario("seed: 1\nhorizon: 7\nevents:\n- at: -1s\n  lose: {}\n"))

    with pytest.raises(InputError) as refused:
        loaded(path)

    lines = str(refused.value).splitlines()
    assert "3 problems" in lines[0]
    assert [line.split(": ")[0].strip() for line in lines[1:]] == ["line 5", "line 6", "line 8"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("at\n1\nnan\n", 'line 3: at: "nan" is not a number of s'),
        ("at\n1\n-2\n", 'line 3: at: "-2" is not a number of s'),
        ("at\n1e5\n", 'line 2: at: "1e5" is not a number of s'),
        ("at\n99999999999999\n", "is more than 100 years in s"),
        ("at\n", "at: has no rows"),
        ("", "line 1: at: must be once in the header"),
        ("at,at\n1,2\n", "must be once in the header"),
        ("at,b\n1\n", "line 2: has 1 cells for 2 columns"),
        ('at\n"1\n', "is not CSV"),
    ],
)
def test_a_hostile_column_is_refused_with_its_line(
    content: str, expected: str, tmp_path: Path
) -> None:
    written(tmp_path, content, "times.csv")
    path = written(tmp_path, scenario(task("file: {path: times.csv, column: at}")))

    with pytest.raises(InputError) as refused:
        loaded(path)

    assert f"times.csv: {expected}" in str(refused.value) or expected in str(refused.value)
