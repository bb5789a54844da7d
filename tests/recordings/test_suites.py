"""Every suite of recordings: the comparisons, the cases counted as missing, the failures."""

import gzip
import json

import pytest

from scripts.recordings.config_cases import check_config
from scripts.recordings.label_cases import check_labels
from scripts.recordings.quantity_cases import check_arithmetic, check_quantity
from scripts.recordings.result import RecordingResult, differs
from scripts.recordings.suites import AFTER_FAILURE, NO_PATH, run_file
from tests.recordings.world import answered, pod, sequence, static, write

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def run(folder, document, *path_names, name="case"):
    return run_file(write(folder, document, name), path_names or ("plain",))


def test_a_planted_difference_in_a_quantity_is_found():
    case = {
        "in": "1.5Ki",
        "ok": True,
        "string": "1536",
        "value": "1536",
        "milliValue": "1536000",
        "format": "BinarySI",
        "sign": 1,
        "approxFloat64": "1536",
    }
    assert check_quantity(case)[1] == []

    assert check_quantity(case | {"value": "1537"})[1] == ["value: '1536' is not '1537'"]
    assert len(check_quantity({"in": "1", "ok": False, "error": "no", "sign": 0})[1]) > 1
    assert len(check_quantity(case | {"in": "12x"})[1]) > 1


def test_a_planted_difference_in_arithmetic_is_found():
    case = {"a": "1", "b": "2", "cmp": -1, "sum": "3", "sub": "-1"}

    assert check_arithmetic(case)[1] == []
    assert check_arithmetic(case | {"cmp": 1})[1] == ["cmp: -1 is not 1"]


@pytest.mark.parametrize(
    ("case", "other"),
    [
        (
            {"kind": "labelSelector", "selector": {"matchLabels": {"a": "b"}}, "labels": {}},
            {"match": False, "string": "a=b"},
        ),
        ({"kind": "labelSelector", "selector": None, "labels": {"a": "b"}}, {"match": False}),
        (
            {
                "kind": "nodeSelector",
                "selector": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
                    ]
                },
                "labels": {"a": "b"},
                "nodeName": "n1",
            },
            {"match": True},
        ),
        (
            {
                "kind": "preferredTerms",
                "selector": [
                    {
                        "weight": 3,
                        "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                    }
                ],
                "labels": {"a": "b"},
                "nodeName": "n1",
            },
            {"score": 3},
        ),
        (
            {
                "kind": "preferredTerms",
                "selector": [{"weight": 3, "preference": {"matchExpressions": [{"key": "a"}]}}],
                "labels": {},
                "nodeName": "n1",
            },
            {
                "error": '[0].matchExpressions[0].operator: Unsupported value: "": '
                'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
            },
        ),
        (
            {"kind": "toleration", "selector": {"operator": "Exists"}, "taints": {"key": "k"}},
            {"match": True},
        ),
    ],
)
def test_a_planted_difference_in_label_matching_is_found(case, other):
    ours, differences = check_labels(case | other)
    assert differences == []
    assert ours == case | other

    wrong = dict.fromkeys(other, "wrong")
    ours, differences = check_labels(case | wrong)
    assert len(differences) == len(other)
    assert ours == case | other


def test_any_of_several_invalid_labels_may_be_reported():
    selector = {"matchLabels": {"a": "-", "b": "-"}}
    case = {"kind": "labelSelector", "selector": selector, "labels": {}}
    messages = [check_labels(case | {"error": ""})[0]["error"]]
    messages += [
        check_labels(case | {"selector": {"matchLabels": {key: "-"}}, "error": ""})[0]["error"]
        for key in "ab"
    ]

    assert all(check_labels(case | {"error": error})[1] == [] for error in messages)


def test_a_planted_difference_in_a_configuration_is_found():
    sound = {"input": HEAD, "valid": True}
    ours, differences = check_config(sound)
    assert {each.split(":")[0] for each in differences} == {"effective", "defaulted"}
    recorded = sound | {key: ours[key] for key in ("effective", "defaulted")}
    assert check_config(recorded)[1] == []

    refused = {**sound, "valid": False, "stage": "decode", "errors": ["why"]}
    assert "valid: True is not False" in check_config(refused)[1]


def test_a_refusal_is_compared_by_stage_and_field():
    wrong = HEAD + "parallelism: 0\n"
    ours, _ = check_config({"input": wrong, "valid": False})
    recorded = {"input": wrong, "valid": False, "stage": ours["stage"], "errors": ours["errors"]}
    assert check_config(recorded)[1] == []
    assert check_config(recorded | {"errors": ["parallelism: other"]})[1] != []

    unknown = HEAD + "paralelism: 1\n"
    recorded = {"input": unknown, "valid": False, "stage": "decode"}
    right = 'strict decoding error: unknown field "paralelism"'
    assert check_config(recorded | {"errors": [right]})[1] == []
    (difference,) = check_config(recorded | {"errors": ['unknown field "other"']})[1]
    assert "do not name ['other']" in difference


def test_suites_without_scheduling_run_once(tmp_path):
    document = {"suite": "misc", "numFeasibleNodes": [], "nodeOrder": []}
    ops = [{"op": "add", "name": "n1", "labels": {}}]
    document["nodeOrder"] = [{"ops": ops, "order": ["n1"]}, {"ops": ops, "order": []}]
    document["numFeasibleNodes"] = [
        {"numAllNodes": 5000, "percentage": 0, "numNodesToFind": 500},
        {"numAllNodes": 5000, "percentage": 0, "numNodesToFind": 501},
    ]

    (answer,) = run(tmp_path, document, "plain", "1", "2")

    assert (answer.suite, answer.path_name) == ("misc", NO_PATH)
    assert (answer.result.decisions, answer.result.compared) == (4, 4)
    assert answer.result.mismatches == [
        "case.json.gz numFeasibleNodes[1]: numNodesToFind: 500 is not 501",
        "case.json.gz nodeOrder[1]: order: ['n1'] is not []",
    ]
    assert not answer.result.unsupported


def test_a_recording_runs_on_every_path(tmp_path):
    document = answered(tmp_path, static(pod("fits")), "expected")

    answers = run(tmp_path, document, "plain", "1", "2")

    assert [each.path_name for each in answers] == ["plain", "1", "2"]
    assert [each.result.mismatches for each in answers] == [[], [], []]
    assert answers[0].header == {
        "suite": "static",
        "name": "static-000",
        "nodes": ["n1", "n2", "n3"],
    }


def test_openb_is_a_suite_of_its_own(tmp_path):
    document = sequence(0, pending=[pod("p0")]) | {"workload": "openb"}

    (answer,) = run(tmp_path, document)

    assert answer.suite == "openb"


@pytest.mark.parametrize("suite", ["static", "sequence", "misc"])
def test_a_recording_that_can_not_be_run_fails_completely(tmp_path, suite):
    documents = {
        "static": static(pod("a"), pod("b")) | {"expected": [{}, {}]},
        "sequence": sequence(0, "ns/a", 0, pending=[pod("a")]),
        "misc": {"suite": "misc", "numFeasibleNodes": [{}, {}]},
    }
    documents["static"]["objects"]["nodes"][0]["status"]["allocatable"]["cpu"] = "12x"
    documents["sequence"]["pending"] = [{"spec": 3}]

    (answer,) = run(tmp_path, documents[suite])

    (mismatch,) = answer.result.mismatches
    assert mismatch.startswith("case.json.gz: failed: ")
    assert answer.result.unsupported == {AFTER_FAILURE: 2}
    answer.result.validate()


@pytest.mark.parametrize(
    "data",
    [
        b"not gzip",
        gzip.compress(b"not json", mtime=0),
        gzip.compress(b"[1]", mtime=0),
        gzip.compress(b"{}", mtime=0)[:-3],
        gzip.compress(b"[" * 200_000, mtime=0),
        gzip.compress(json.dumps({"suite": "other"}).encode(), mtime=0),
    ],
)
def test_an_invalid_recording_file_is_a_mismatch(tmp_path, data):
    path = tmp_path / "broken.json.gz"
    path.write_bytes(data)

    (answer,) = run_file(path, ("plain", "1"))

    assert answer.suite == "unreadable"
    assert len(answer.result.mismatches) == 1
    assert "broken.json.gz" in answer.result.mismatches[0]


def test_unaccounted_decisions_are_an_internal_error():
    result = RecordingResult(decisions=2)
    result.compare("here", "expected", {}, [])

    with pytest.raises(AssertionError, match="1 of 2"):
        result.validate()


def test_a_difference_names_its_place():
    assert differs("a", [1, {"b": [2, 3]}], [1, {"b": [2, 4]}]) == "a[1].b[1]: 3 is not 4"
    assert differs("a", [1], [1, 2]) == "a: [1] is not [1, 2]"
    assert differs("a", {"b": 1}, {"c": 1}) == "a: {'b': 1} is not {'c': 1}"
    assert differs("a", {"b": 1, "c": 2}, {"b": 1, "c": 3}) == "a.c: 2 is not 3"


ARGS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {"scoringStrategy": {"resources": [{"name": "cpu", "weight": "heavy"}]}}
"""
IN_ARGS = "decoding .profiles[0].pluginConfig[0]: decoding args for plugin NodeResourcesFit: "
WRONG_TYPE = "json: cannot unmarshal string into Go struct field ResourceSpec.%s of type int64"


@pytest.mark.parametrize(
    ("field", "differences"),
    [("scoringStrategy.resources.weight", 0), ("scoringStrategy.resources.name", 1)],
)
def test_fields_of_plugin_arguments_are_compared_with_their_place(field, differences):
    errors = [IN_ARGS + WRONG_TYPE % field]

    _, found = check_config({"input": ARGS, "valid": False, "stage": "decode", "errors": errors})

    assert len(found) == differences
