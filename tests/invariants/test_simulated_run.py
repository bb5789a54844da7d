"""The rules of a simulated run accept what can happen, and find every planted fault."""

from dataclasses import replace

import pytest

from roadstead.invariants.simulated_rows import NodeRow, PodRow, RunTables, SampleRow
from roadstead.invariants.simulated_run import check_run


def pod_row(number, *, bound=None, ended=None, node="n1", ending="done", created=0):
    return PodRow(
        number,
        f"default/p{number}",
        0,
        created,
        bound,
        bound,
        ended,
        None if ended is None else ending,
        None if bound is None else node,
    )


def sample_rows(time_us, pending, running, ended):
    return [
        SampleRow(time_us, "pending", pending),
        SampleRow(time_us, "running", running),
        SampleRow(time_us, "ended", ended),
    ]


GOOD = RunTables(
    pods=(
        pod_row(0, bound=10, ended=50),
        pod_row(1, bound=50, ended=None),
        pod_row(2, bound=20, ended=20),
        pod_row(3),
        pod_row(4, ended=30, ending="deleted"),
    ),
    requests={0: {"cpu": 600}},
    nodes=(NodeRow(0, "n1", {"cpu": 1000}, 110),),
    bound_attempts=((10, 0, "n1"), (50, 1, "n1"), (20, 2, "n1")),
    samples=(*sample_rows(0, 5, 0, 0), *sample_rows(40, 2, 1, 2), *sample_rows(100, 1, 1, 3)),
)


def found(**changes):
    return [(each.rule, each.text) for each in check_run(replace(GOOD, **changes))]


def with_pod(index, /, **changes):
    pods = list(GOOD.pods)
    pods[index] = replace(pods[index], **changes)
    return tuple(pods)


def test_a_run_that_keeps_the_rules_has_no_violations():
    assert found() == []


def test_a_pod_that_ends_when_another_is_bound_makes_room_for_it():
    assert GOOD.pods[0].ended_us == GOOD.pods[1].bound_us
    assert found() == []


@pytest.mark.parametrize(
    ("changes", "rule", "text"),
    [
        ({"pods": with_pod(1, uid="default/p0")}, "one place", "is in the table twice"),
        ({"pods": with_pod(0, ended_us=5)}, "one place", "not in order"),
        ({"pods": with_pod(3, node="n1")}, "one place", "has a node without a bind"),
        ({"pods": with_pod(0, ending=None)}, "one place", "has an end without a time"),
        ({"pods": with_pod(4, number=9)}, "conservation", "is in no row"),
        ({"pods": with_pod(0, ended_us=60)}, "capacity", "1200 of cpu, of 1000"),
        ({"nodes": ()}, "capacity", "there was no such node"),
        ({"nodes": (NodeRow(0, "n1", {"cpu": 1000}, 0),)}, "capacity", "1 pods, and room for 0"),
        ({"nodes": (NodeRow(0, "n1", {}, 9),)}, "capacity", "600 of cpu, of 0"),
        (
            {"nodes": (*GOOD.nodes, NodeRow(60, "n1", None, 0))},
            "capacity",
            "was removed at 60 us with 1 pods",
        ),
        ({"bound_attempts": GOOD.bound_attempts[1:]}, "one place", "was bound by 0 attempts"),
        (
            {"bound_attempts": (*GOOD.bound_attempts, (10, 0, "n1"))},
            "one place",
            "was bound by 2 attempts",
        ),
        (
            {"bound_attempts": ((10, 0, "n2"), *GOOD.bound_attempts[1:])},
            "one place",
            "was bound to n2",
        ),
        ({"samples": tuple(sample_rows(40, 3, 1, 2))}, "conservation", "3 pending pods, and 2"),
    ],
)
def test_a_planted_fault_is_found(changes, rule, text):
    assert any(each == rule and text in words for each, words in found(**changes)), found(**changes)


def test_a_node_that_shrinks_below_its_pods_is_no_violation():
    shrunk = (*GOOD.nodes, NodeRow(60, "n1", {"cpu": 100}, 110))

    assert found(nodes=shrunk) == []


def test_devices_serve_resources_that_their_class_names_on_nodes_without_them():
    requests = {0: {"cpu": 600, "example.com/gpu": 1}}
    assert found(requests=requests)[0][0] == "capacity"
    served = {0: frozenset({"example.com/gpu"})}
    assert not found(requests=requests, from_devices=served)
    nodes = (NodeRow(0, "n1", {"cpu": 1000, "example.com/gpu": 0}, 110),)
    assert found(requests=requests, from_devices=served, nodes=nodes)[0][0] == "capacity"
