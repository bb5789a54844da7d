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
def test_nothing_is_asked_for_nothing(value):
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
def test_an_annotation_that_does_not_decode_asks_for_nothing_at_all(value):
    assert annotated(value) == ()


def test_keys_are_taken_in_any_spelling_as_go_takes_them():
    assert annotated({"PreferAvoidPods": [entry()]}) == (("ReplicaSet", "u-1"),)


def test_a_controller_that_is_missing_is_nobody():
    assert annotated({"preferAvoidPods": [{}]}) == (("", ""),)


def test_a_node_has_it_among_its_facts():
    text = json.dumps({"preferAvoidPods": [entry()]})
    manifest = {"metadata": {"name": "n", "annotations": {PREFER_AVOID_PODS: text}}}

    assert compile_node(objects.Node.model_validate(manifest)).avoids == (("ReplicaSet", "u-1"),)
    assert compile_node(objects.Node.model_validate({"metadata": {"name": "n"}})).avoids == ()
