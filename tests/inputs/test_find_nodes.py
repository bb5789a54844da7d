"""Nodes are found by name, zone and label selector; a wrong one is an error that helps."""

import pytest

from roadstead.facts.selectors import Requirement
from roadstead.inputs.find_nodes import find_nodes, parse_selector
from roadstead.protocol.errors import InputError
from tests.builders import node

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
NODES = [
    node("n1", labels={ZONE: "a", REGION: "eu", "pool": "web"}),
    node("n2", labels={ZONE: "b", REGION: "eu", "pool": "batch", "gpu": ""}),
    node("n3", labels={ZONE: "b", REGION: "us"}),
    node("a"),
]


def names(*args, **more):
    return [each.name for each in find_nodes(NODES, *args, **more)]


def test_names_are_nodes_and_then_zones():
    assert names(["n2", "n1"]) == ["n1", "n2"]
    assert names(["eu/b"]) == ["n2"]
    assert names(["b"]) == ["n2", "n3"]
    assert names(["a"]) == ["a"], "the node, not the zone"


def test_zones_and_selectors_add_nodes():
    assert names(zones=["a"]) == ["n1"]
    assert names(["n3"], ["eu/b"], "pool=web") == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("pool=web", ["n1"]),
        ("pool==web", ["n1"]),
        ("pool", ["n1", "n2"]),
        ("!pool", ["n3", "a"]),
        ("pool!=web", ["n2", "n3", "a"]),
        ("pool in (web, batch),gpu", ["n2"]),
        ("pool notin (web)", ["n2", "n3", "a"]),
        ("gpu=", ["n2"]),
        (" pool = web , ! gpu ", ["n1"]),
    ],
)
def test_selectors_are_those_of_kubectl(selector, found):
    assert names(selector=selector) == found


def test_a_selector_is_parsed_to_requirements():
    assert parse_selector("a in (y,x),!b") == (
        Requirement("a", "In", ("x", "y")),
        Requirement("b", "DoesNotExist"),
    )
    assert parse_selector("") == ()


@pytest.mark.parametrize(
    "selector",
    [
        ",",
        "a,",
        "a=b, ",
        "a=b,,c",
        "a in x",
        "a in (x",
        "=a",
        "a>1",
        "a b",
        "!",
        "(",
        "\n",
        "a" * 10_001,
    ],
)
def test_a_wrong_selector_is_an_error(selector):
    with pytest.raises(InputError) as error:
        parse_selector(selector)

    assert error.value.field == "--selector"
    assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"names": ["n22"]}, r'NODE: "n22" is no node or zone of the cluster \(did you mean n2'),
        ({"names": ["x" * 500]}, r"is no node or zone of the cluster \(it has n1, n2"),
        ({"zones": ["c"]}, r'--zone: "c" is no zone of the cluster \(it has eu/a, eu/b, us/b\)'),
        ({"selector": "pool=none"}, r'--selector: "pool=none" selects no node'),
    ],
)
def test_unknown_nodes_are_errors_with_a_hint(args, text):
    with pytest.raises(InputError, match=text):
        find_nodes(NODES, **args)


def test_a_cluster_without_zones_is_reported():
    with pytest.raises(InputError, match="it has none"):
        find_nodes([node("n1")], zones=["a"])
