import json

import pytest

from roadstead.facts.avoid_pods import PREFER_AVOID_PODS, avoided_controllers
from roadstead.facts.compile import compile_node
from roadstead.protocol import objects


def entry(kind="ReplicaSet", uid="u-1", **controller):
    owner = {"apiVersion": "v1", "kind": kind, "name": "foo", "uid": uid, "controller": True}
    return {"podSignature": {"podController": owner | controller}, "reason": "some reason"}


def annotated(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return avoided_controllers({PREFER_AVOID_PODS: text, "other": "{}"})


def test_each_entry_names_a_controller():
    both = [entry("ReplicationController", "u-2"), entry(), entry()]

    assert annotated({"preferAvoidPods": both}) == (
        ("ReplicaSet", "u-1"),
        ("ReplicationController", "u-2"),
    )


@pytest.mark.parametrize(
    "value", ["", "null", "{}", {"preferAvoidPods": None}, {"preferAvoidPods": []}]
)
def test_an_empty_annotation_names_no_controller(value):
    assert annotated(value) == ()
    assert avoided_controllers({}) == ()


@pytest.mark.parametrize(
    "value",
    [
        "not JSON",
        "[]",
        '"text"',
        '{"preferAvoidPods": NaN}',
        "[" * 100_000,
        {"preferAvoidPods": {}},
        {"preferAvoidPods": [7]},
        {"preferAvoidPods": [entry(), {"podSignature": []}]},
        {"preferAvoidPods": [{"podSignature": {"podController": "x"}}]},
        {"preferAvoidPods": [entry(uid=7)]},
        {"preferAvoidPods": [entry(name=["x"])]},
    ],
)
def test_an_invalid_annotation_names_no_controller_at_all(value):
    assert annotated(value) == ()


def test_keys_may_have_any_case_like_in_go():
    assert annotated({"PreferAvoidPods": [entry()]}) == (("ReplicaSet", "u-1"),)


def test_an_entry_without_a_controller_names_an_empty_one():
    assert annotated({"preferAvoidPods": [{}]}) == (("", ""),)


def test_the_avoided_controllers_are_a_fact_of_the_node():
    text = json.dumps({"preferAvoidPods": [entry()]})
    manifest = {"metadata": {"name": "n", "annotations": {PREFER_AVOID_PODS: text}}}

    assert compile_node(objects.Node.model_validate(manifest)).avoids == (("ReplicaSet", "u-1"),)
    assert compile_node(objects.Node.model_validate({"metadata": {"name": "n"}})).avoids == ()


def test_half_a_surrogate_pair_is_replaced_as_in_go():
    entry = r'{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "\ud800"}}}'

    found = avoided_controllers({PREFER_AVOID_PODS: f'{{"preferAvoidPods": [{entry}]}}'})

    assert found == (("ReplicaSet", "\ufffd"),)
