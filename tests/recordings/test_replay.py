"""The comparison itself: every difference from a recording is found."""

from types import SimpleNamespace

import pytest

from roadstead.cycle.batch import PodInCycle
from scripts.recordings import replay
from scripts.recordings.report import notes_on
from scripts.recordings.result import RecordingResult
from tests.recordings.world import (
    GATED,
    UNREADABLE_PREFERENCE,
    answered,
    changed,
    claiming,
    pod,
    replayed,
    static,
)

PATHS = ("plain", "batches", "batches+kernel", "batches+runs", "1", "2", "2+runs")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Record a pod that fits, one that does not, one that fails and one that is gated."""
    folder = tmp_path_factory.mktemp("recording")
    pending = (
        pod("fits"),
        pod("large", cpu="100"),
        pod("fails", affinity=UNREADABLE_PREFERENCE),
        pod("gated", schedulingGates=[{"name": "g"}]),
    )
    return answered(folder, static(*pending), "expected")


def test_equal_answers_are_no_mismatch_on_any_path(tmp_path, recording):
    for path_name in PATHS:
        result = replayed(tmp_path, recording, path_name)

        assert (result.decisions, result.compared) == (4, 4)
        assert result.mismatches == []


def set_score(entry):
    entry["scores"][0]["raw"][0] += 1


def set_normalized(entry):
    entry["scores"][2]["normalized"][1] -= 1


def set_weight(entry):
    entry["scores"][0]["weight"] = 7


def set_total(entry):
    entry["total"][0] += 1


def set_best(entry):
    entry["best"] = entry["best"][1:]


def set_best_total(entry):
    entry["bestTotal"] += 1


def drop_status(entry):
    entry["filter"][2] = 0


def set_reason(entry):
    entry["filterStatuses"][0]["reasons"] = ["another"]


def set_code(entry):
    entry["filterStatuses"][0]["code"] = "Unschedulable"


def set_plugin(entry):
    entry["filterStatuses"][0]["plugin"] = "NodeName"


def drop_filter(entry):
    del entry["filter"]


def set_feasible(entry):
    entry["feasible"] = entry["feasible"][:1]


def set_skipped(entry):
    entry["preFilter"]["skipped"].pop()


def set_pre_score_skipped(entry):
    entry["preScoreSkipped"].append("NodeResourcesFit")


def set_node_names(entry):
    entry["preFilter"]["allNodes"] = False


def add_field(entry):
    entry["nominatedFits"] = True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_score, "scores[0].raw[0]: 0 is not 1"),
        (set_normalized, "scores[2].normalized[1]"),
        (set_weight, "scores[0].weight: 3 is not 7"),
        (set_total, "total[0]"),
        (set_best, "best: ['n1', 'n2'] is not ['n2']"),
        (set_best_total, "bestTotal"),
        (drop_status, "filter[2]"),
        (
            set_reason,
            "filter[2].reasons[0]: 'node(s) had untolerated taint {t: }' is not 'another'",
        ),
        (set_code, "filter[2].code: 'UnschedulableAndUnresolvable' is not 'Unschedulable'"),
        (set_plugin, "filter[2].plugin: 'TaintToleration' is not 'NodeName'"),
        (drop_filter, "filter: [0, 0, "),
        (set_feasible, "feasible: ['n1', 'n2'] is not ['n1']"),
        (set_skipped, "preFilter.skipped"),
        (set_pre_score_skipped, "preScoreSkipped"),
        (set_node_names, "preFilter.allNodes: True is not False"),
        (add_field, "nominatedFits: None is not True"),
    ],
)
def test_a_planted_difference_is_found(tmp_path, recording, change, message):
    planted = changed(recording, lambda document: change(document["expected"][0]))

    result = replayed(tmp_path, planted)

    (mismatch,) = result.mismatches
    assert mismatch.startswith("static-000.json.gz ns/fits: ")
    assert message in mismatch
    assert result.compared == 4


def set_message(entry):
    entry["message"] = entry["message"].replace("0/3", "0/4")


def drop_message(entry):
    del entry["message"]


def set_post_filter_code(entry):
    entry["postFilter"]["status"]["code"] = "Success"


def set_nomination(entry):
    entry["postFilter"]["nominatedNode"] = "n1"


def add_acceptable(entry):
    entry["postFilter"]["acceptable"] = ["n1"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_message, "message: '0/3"),
        (drop_message, "message: '0/3"),
        (set_post_filter_code, "postFilter.status.code: 'Unschedulable' is not 'Success'"),
        (set_nomination, "postFilter.nominatedNode: '' is not 'n1'"),
        (add_acceptable, "postFilter.acceptable: None is not ['n1']"),
    ],
)
def test_a_difference_in_the_messages_of_failed_pods_is_found(tmp_path, recording, change, message):
    planted = changed(recording, lambda document: change(document["expected"][1]))

    (mismatch,) = replayed(tmp_path, planted).mismatches

    assert message in mismatch


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_best, "decision: best: ['n1', 'n2'] is not ['n2']"),
        (set_best_total, "decision: bestTotal"),
        (set_feasible, "decision: feasible: 2 is not 1"),
    ],
)
def test_a_wrong_decision_is_found_without_an_explanation(tmp_path, recording, change, message):
    planted = changed(recording, lambda document: change(document["expected"][0]))

    (mismatch,) = replayed(tmp_path, planted, explains=False).mismatches

    assert message in mismatch
    assert replayed(tmp_path, recording, explains=False).mismatches == []


def test_other_cycle_errors_and_gates_are_found(tmp_path, recording):
    def change(document):
        document["expected"][2]["cycleError"] = "other"
        document["expected"][3]["preEnqueue"]["reasons"] = ["other"]

    fails, gated = replayed(tmp_path, changed(recording, change)).mismatches

    assert "ns/fails: cycleError" in fails
    assert "ns/gated: preEnqueue.reasons[0]" in gated


def test_scores_and_candidates_are_compared_only_if_recorded(tmp_path, recording):
    def change(document):
        for entry in document["expected"]:
            entry.pop("scores", None)

    assert replayed(tmp_path, changed(recording, change)).mismatches == []


def test_statuses_may_be_numbered_in_any_way(tmp_path, recording):
    def change(document):
        entry = document["expected"][0]
        entry["filterStatuses"] = [{"code": "Error"}, *entry["filterStatuses"]]
        entry["filter"] = [code + 1 if code > 0 else code for code in entry["filter"]]

    assert replayed(tmp_path, changed(recording, change)).mismatches == []


def test_only_the_status_of_a_random_choice_is_compared(tmp_path, recording):
    def change(document):
        answer = document["expected"][1]["postFilter"]
        answer |= {"exhaustive": False}
        del answer["nominatedNode"]

    assert replayed(tmp_path, changed(recording, change)).mismatches == []


class WithoutPostFilter:
    """A path on which preemption is always needed and never available."""

    names_best = True

    def __init__(self, entry):
        self._entry = entry

    def add_nodes(self, nodes):
        pass

    def prepare(self, identity, facts):
        return PodInCycle(identity.uid, identity.key, None, None)

    def explain(self, pod):
        return SimpleNamespace(as_recorded=lambda: self._entry)


def test_running_pods_use_their_resources_on_every_path(tmp_path):
    running = pod("running", cpu="4", nodeName="n1")
    document = answered(tmp_path, static(pod("fits"), bound=[running]), "expected")

    assert document["expected"][0]["feasible"] == ["n2"]
    for path_name in PATHS:
        assert replayed(tmp_path, document, path_name).mismatches == []


def test_without_post_filter_the_rest_is_compared_and_the_case_counted(tmp_path, monkeypatch):
    recorded = {
        "pod": "ns/large",
        "feasible": [],
        "best": [],
        "message": "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes",
        "postFilter": {"status": {"code": "Success"}, "nominatedNode": "n1"},
    }
    ours = recorded | {
        "message": "0/3 nodes are available: 3 Insufficient cpu.",
        "postFilter": {"unsupported": "DefaultPreemption: spec.priority: 0"},
    }
    monkeypatch.setattr(replay, "open_path", lambda *_: WithoutPostFilter(ours))
    document = static(pod("large")) | {"expected": [recorded]}

    result = replayed(tmp_path, document)
    assert (result.compared, result.mismatches) == (1, [])
    assert result.partly == {"DefaultPreemption": 1}
    total = RecordingResult()
    total.add(result)
    assert list(notes_on(total)) == ["1 compared but for PostFilter: DefaultPreemption"]

    recorded["message"] = "0/3 nodes are available: 3 Too many pods."
    (mismatch,) = replayed(tmp_path, document).mismatches
    assert "message: '0/3 nodes are available: 3 Insufficient cpu.' is not" in mismatch


@pytest.mark.parametrize("path_name", PATHS)
def test_a_pod_that_needs_a_missing_plugin_is_counted_under_it(tmp_path, path_name):
    document = static(pod("fits"), claiming("claims"), pod("last")) | GATED
    document["expected"] = [*answered(tmp_path, static(pod("fits")), "expected")["expected"]] * 3
    document["expected"][2] = document["expected"][2] | {"pod": "ns/last"}

    result = replayed(tmp_path, document, path_name)

    assert (result.decisions, result.compared, result.mismatches) == (3, 2, [])
    assert result.unsupported == {"DynamicResources": 1}
    assert result.ours["expected"][1]["pod"] == "ns/claims"
    assert "DRAExtendedResource" in result.ours["expected"][1]["unsupported"]


def test_a_choice_other_than_the_first_of_the_best_is_found(tmp_path, recording):
    def change(document):
        document["expected"][0]["best"] = ["n2"]

    (mismatch,) = replayed(tmp_path, changed(recording, change)).mismatches

    assert "decision: node: 'n1' is not 'n2'" in mismatch


def test_a_decision_that_raises_is_a_mismatch_and_the_others_are_compared(tmp_path, recording):
    def change(document):
        document["pending"][1]["spec"]["schedulerName"] = "unknown"

    result = replayed(tmp_path, changed(recording, change))

    (mismatch,) = result.mismatches
    assert "ns/large: failed: KeyError: 'unknown'" in mismatch
    assert result.compared == 4


def of_path(monkeypatch, **changes):
    """Change every path so that its decisions differ from its explanations."""
    real = replay.open_path

    def opened(*arguments):
        path = real(*arguments)
        decide = path.decide
        path.decide = lambda pods: [each._replace(**changes) for each in decide(pods)]
        return path

    monkeypatch.setattr(replay, "open_path", opened)


@pytest.mark.parametrize(
    ("pod_name", "changes", "message"),
    [
        ("fits", {"total": 1}, "decision: bestTotal: 1 is not "),
        ("fits", {"feasible": 3}, "decision: feasible: 3 is not 2"),
        ("fits", {"best": ("n1",)}, "decision: best: ['n1'] is not ['n1', 'n2']"),
        ("large", {"post_filter": None}, "decision: message: "),
        ("large", {"post_filter": None}, "decision: postFilter.status: None is not "),
        ("fails", {"error": "other"}, "decision: cycleError: 'other' is not "),
        ("fails", {"feasible": 3}, "decision: feasible: 3 is not 2"),
    ],
)
def test_a_decision_that_differs_from_its_explanation_is_found(
    tmp_path, recording, monkeypatch, pod_name, changes, message
):
    index = [each["metadata"]["name"] for each in recording["pending"]].index(pod_name)
    alone = {key: [recording[key][index]] for key in ("pending", "expected")}
    of_path(monkeypatch, **changes)

    (mismatch,) = replayed(tmp_path, recording | alone).mismatches

    assert message in mismatch


@pytest.mark.parametrize("path_name", PATHS)
def test_a_single_node_is_explained_as_recorded_and_decided_like_upstream(tmp_path, path_name):
    running = [pod(name, cpu="4", nodeName=node) for name, node in (("a", "n1"),)]
    fails = static(pod("fails", affinity=UNREADABLE_PREFERENCE), bound=running)
    document = answered(tmp_path, fails, "expected")
    (entry,) = document["expected"]

    assert (entry["feasible"], entry["best"]) == (["n2"], [])
    assert entry["cycleError"].startswith("running PreScore plugin")
    assert replayed(tmp_path, document, path_name).mismatches == []

    entry["feasible"] = ["n1"]
    (mismatch,) = replayed(tmp_path, document, path_name).mismatches
    assert "decision: node: 'n2' is not 'n1'" in mismatch
