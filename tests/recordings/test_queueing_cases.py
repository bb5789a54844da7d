"""Recorded hints, registered events and classification: replay, and detected differences."""

import gzip
import json
from pathlib import Path

import pytest

from scripts.recordings.cases import find_files
from scripts.recordings.queueing_cases import check_classification, events_check, hint_check
from scripts.recordings.suites import run_file

FILES = find_files([Path(__file__).parents[1] / "golden" / "queueing"])
NODE = {"metadata": {"name": "n1", "uid": "n1"}, "status": {"allocatable": {"pods": "10"}}}
POD = {"metadata": {"name": "p", "uid": "p"}, "spec": {"schedulingGates": [{"name": "g"}]}}
UNGATED = {"metadata": {"name": "p", "uid": "p"}, "spec": {}}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_hints_events_and_classifications_equal_upstreams(file):
    (answer,) = run_file(file, ["plain"])

    assert answer.result.mismatches == []
    assert not answer.result.unsupported
    assert answer.result.compared == answer.result.decisions > 0


def test_the_recordings_contain_every_plugin_with_hints():
    with gzip.open(FILES[0]) as file:
        registered = json.load(file)["registered"]
    with gzip.open(FILES[1]) as file:
        asked = {case["plugin"] for case in json.load(file)["cases"]}

    with_hints = {
        name for name, events in registered.items() if any(each["hasHint"] for each in events)
    }
    assert asked == with_hints


def hint_case(**changed):
    case = {
        "plugin": "SchedulingGates",
        "resource": "Pod",
        "action": "UpdatePodSchedulingGatesEliminated",
        "event": 0,
        "pod": POD,
        "old": POD,
        "new": UNGATED,
        "hint": "Queue",
    }
    return case | changed


def test_a_planted_difference_in_a_hint_is_found():
    check = hint_check(Path("case.json.gz"), {"objects": {}})

    assert check(hint_case())[1] == []
    assert check(hint_case(hint="QueueSkip"))[1] == ["hint: 'Queue' is not 'QueueSkip'"]
    assert check(hint_case(error="no"))[1] == ["error: None is not 'no'"]


def test_an_event_without_a_hint_is_queue():
    case = {"plugin": "NodeName", "resource": "Node", "action": "Add", "event": 0}
    check = hint_check(Path("case.json.gz"), {"objects": {}})

    assert check(case | {"pod": POD, "new": NODE, "hint": "Queue"})[1] == []


def test_a_pod_with_another_uid_is_another_pod():
    check = hint_check(Path("case.json.gz"), {"objects": {}})
    other = {"metadata": {"name": "q", "uid": "q"}, "spec": {}}

    assert check(hint_case(new=other, hint="QueueSkip"))[1] == []


def test_a_failing_hint_reports_its_error_and_counts_as_queue():
    bad = {"key": "cores", "operator": "Gt", "values": ["many"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [bad]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    pod = {"metadata": {"name": "p", "uid": "p"}, "spec": {"affinity": affinity}}
    case = {"plugin": "NodeAffinity", "resource": "Node", "action": "Add", "event": 0}

    ours, differences = hint_check(Path("case.json.gz"), {"objects": {}})(
        case | {"pod": pod, "new": NODE, "hint": "Queue"}
    )

    assert ours["hint"] == "Queue"
    assert "many" in str(ours["error"])
    assert len(differences) == 1


def test_a_planted_difference_in_registered_events_is_found():
    check = events_check(Path("case.json.gz"), {})
    node_add = {"resource": "Node", "actions": ["Add"], "hasHint": False}

    assert check({"name": "NodeName", "value": [node_add]})[1] == []
    assert len(check({"name": "NodeName", "value": []})[1]) == 1


def test_a_planted_difference_in_a_classification_is_found():
    label = NODE | {"metadata": {"name": "n1", "uid": "n1", "labels": {"a": "b"}}}
    node = {"kind": "Node", "old": NODE, "new": label}
    pod = {"kind": "Pod", "old": POD, "new": POD}

    assert check_classification(node | {"events": ["NodeUpdateNodeLabel"]})[1] == []
    assert check_classification(node | {"new": NODE, "events": None})[1] == []
    assert check_classification(pod | {"events": ["UnschedulablePodUpdate"]})[1] == []
    assert len(check_classification(node | {"events": None})[1]) == 1
