"""Sequences: one mistake is one mismatch, and every later step is compared on its own."""

import pytest

from roadstead.cycle.batch import Decision
from roadstead.protocol.errors import UnsupportedError
from scripts.recordings import sequence as module
from tests.recordings.world import (
    GATED,
    UNREADABLE_PREFERENCE,
    answered,
    changed,
    claiming,
    node,
    pod,
    replayed,
    sequence,
)

PATHS = ("plain", "batches", "1", "3")


def recording(folder):
    """Record pods that fill two nodes, a deletion that frees space, new nodes, and a failure."""
    pending = [pod(f"p{i}", cpu="2") for i in range(7)]
    pending.append(pod("fails", affinity=UNREADABLE_PREFERENCE))
    document = sequence(
        *(0, 1, 2, 3, 4, "ns/p1", "ns/unknown", 5, node("n4"), 6, node("n5"), 7), pending=pending
    )
    return answered(folder, document, "steps")


def test_equal_steps_are_no_mismatch_on_any_path(tmp_path):
    document = recording(tmp_path)

    for path_name in PATHS:
        result = replayed(tmp_path, document, path_name)

        assert result.mismatches == []
        assert (result.decisions, result.compared) == (8, 8)
        assert result.ours["steps"] == document["steps"]


@pytest.mark.parametrize("path_name", ["batches+runs", "2+runs"])
def test_kernel_batches_are_compared_except_for_the_names_of_the_best_nodes(tmp_path, path_name):
    document = recording(tmp_path)

    assert replayed(tmp_path, document, path_name).mismatches == []

    document["steps"][1] |= {"best": [], "total": 7}
    (mismatch,) = replayed(tmp_path, document, path_name).mismatches
    assert "step 1 ns/p1: total: " in mismatch
    assert "best" not in mismatch


def test_steps_have_the_recordings_form(tmp_path):
    steps = recording(tmp_path)["steps"]

    assert steps[0] == {
        "feasible": 2,
        "bestSize": 2,
        "best": ["n1", "n2"],
        "total": steps[0]["total"],
        "chosen": "n1",
    }
    assert steps[4]["message"].startswith("0/3 nodes are available: 1 node(s) had untolerated")
    assert (steps[4]["feasible"], steps[4]["bestSize"]) == (0, 0)
    assert steps[5] == steps[6] == steps[8] == {}
    assert steps[7]["chosen"] == "n2"
    assert (steps[11]["feasible"], steps[11]["bestSize"]) == (2, 0)
    assert steps[11]["error"].startswith('running PreScore plugin "NodeAffinity"')


@pytest.mark.parametrize("path_name", PATHS)
@pytest.mark.parametrize("field", ["feasible", "bestSize", "total", "best"])
def test_a_planted_difference_in_a_step_is_found_once(tmp_path, path_name, field):
    def change(document):
        document["steps"][1][field] = 99

    (mismatch,) = replayed(tmp_path, changed(recording(tmp_path), change), path_name).mismatches

    assert mismatch.startswith(f"sequence-000.json.gz step 1 ns/p1: {field}: ")
    assert mismatch.endswith(" is not 99")


@pytest.mark.parametrize("path_name", PATHS)
def test_after_a_different_choice_the_recorded_one_is_applied(tmp_path, path_name):
    # The recording is of a scheduler that put the second pod onto the first pod's node.
    document = recording(tmp_path)
    document["steps"][1]["chosen"] = "n1"

    result = replayed(tmp_path, document, path_name)

    assert result.compared == 8
    assert any("step 1 ns/p1: chosen: 'n2' is not 'n1'" in each for each in result.mismatches)
    third = next(each for each in result.mismatches if " step 2 " in each)
    assert "best: ['n2'] is not ['n1', 'n2']" in third


def test_a_pod_that_should_not_be_placed_is_removed_again(tmp_path):
    document = recording(tmp_path)
    document["steps"][3] = document["steps"][4]

    result = replayed(tmp_path, document)

    assert any("step 3 ns/p3: best" in each for each in result.mismatches)
    assert any("step 4 ns/p4: best" in each for each in result.mismatches)
    assert result.compared == 8


@pytest.mark.parametrize("path_name", PATHS)
def test_a_pod_that_needs_a_missing_plugin_is_placed_as_recorded(tmp_path, path_name):
    plain = [pod(f"p{i}", cpu="2") for i in range(5)]
    document = answered(tmp_path, sequence(*range(5), pending=plain), "steps")
    document = document | GATED
    asks = claiming("p2")["spec"]["containers"][0]["resources"]["requests"]
    document["pending"][2] = pod("p2", cpu="2")
    document["pending"][2]["spec"]["containers"][0]["resources"]["requests"] |= {
        "example.com/gpu": asks["example.com/gpu"]
    }

    result = replayed(tmp_path, document, path_name)

    assert result.unsupported == {"DynamicResources": 1}
    assert (result.compared, result.mismatches) == (4, [])
    assert "DRAExtendedResource" in result.ours["steps"][2]["unsupported"]


def test_a_step_that_needs_preemption_is_counted_under_it(tmp_path, monkeypatch):
    def needs_victims(profile, facts, diagnosis):
        raise UnsupportedError("DefaultPreemption", "", "spec.priority: 0")

    document = recording(tmp_path)
    monkeypatch.setattr(module, "run_post_filter", needs_victims)

    result = replayed(tmp_path, document)

    assert result.unsupported == {"DefaultPreemption": 1}
    assert (result.compared, result.mismatches) == (7, [])


def test_other_messages_and_errors_are_found(tmp_path):
    def change(document):
        document["steps"][4]["message"] = "other"
        document["steps"][11]["error"] = "other"

    message, error = replayed(tmp_path, changed(recording(tmp_path), change)).mismatches

    assert "step 4 ns/p4: message: '0/3" in message
    assert "step 11 ns/fails: error: 'running" in error


@pytest.mark.parametrize("path_name", PATHS)
def test_a_single_node_with_a_recorded_scoring_failure_is_expected_to_be_chosen(
    tmp_path, path_name
):
    # The recording scores nodes that upstream takes unscored, and binds nothing after a failure.
    pending = [pod("fills", cpu="3"), pod("fails", cpu="2", affinity=UNREADABLE_PREFERENCE)]
    document = answered(tmp_path, sequence(0, 1, pending=[pending[0], pod("fails", "2")]), "steps")
    document["pending"] = pending
    document["steps"][1] = {"feasible": 1, "bestSize": 0, "error": "running PreScore plugin"}

    assert replayed(tmp_path, document, path_name).mismatches == []

    document["steps"][1]["feasible"] = 2
    (mismatch,) = replayed(tmp_path, document, path_name).mismatches
    assert "step 1 ns/fails" in mismatch


def test_an_unknown_operation_is_never_ignored(tmp_path):
    document = recording(tmp_path)
    document["ops"][6] = {"op": "evict", "key": "ns/p0"}

    with pytest.raises(AssertionError, match="not known"):
        replayed(tmp_path, document)


def test_a_failed_decision_reports_the_number_of_passed_nodes():
    decision = Decision(None, None, 7, error="why")

    assert module.step_of(decision, None) == {"feasible": 7, "bestSize": 0, "error": "why"}
