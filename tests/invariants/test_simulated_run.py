"""The rules of a simulated run accept what can happen, and find every planted fault."""

from dataclasses import replace

import pytest

from roadstead.invariants.simulated_rows import (
    ClassSampleRow,
    NodeRow,
    PodRow,
    RunRows,
    SampleRow,
)
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
        first_tried_us=bound,
        waited_us=None if bound is None else bound - created,
    )


def sample_rows(time_us, pending, running, ended):
    return [
        SampleRow(time_us, "pending", pending),
        SampleRow(time_us, "running", running),
        SampleRow(time_us, "running", running, "z"),
        SampleRow(time_us, "ended", ended),
    ]


GOOD = RunRows(
    pods=(
        pod_row(0, bound=10, ended=50),
        pod_row(1, bound=50, ended=None),
        pod_row(2, bound=20, ended=20),
        pod_row(3),
        pod_row(4, ended=30, ending="deleted"),
    ),
    requests={0: {"cpu": 600}},
    nodes=(NodeRow(0, "n1", {"cpu": 1000}, 110, "z"),),
    bound_attempts=((10, 0, "n1"), (50, 1, "n1"), (20, 2, "n1")),
    samples=(*sample_rows(0, 5, 0, 0), *sample_rows(40, 2, 1, 2), *sample_rows(100, 1, 1, 3)),
    first_attempts={0: 10, 1: 50, 2: 20},
    class_samples=(
        ClassSampleRow(0, 0, 5, 5, 0, 0, 0),
        ClassSampleRow(40, 0, 5, 2, 1, 1, 1),
        ClassSampleRow(100, 0, 5, 1, 1, 2, 1),
    ),
)


def found(**changes):
    return [(each.rule, each.text) for each in check_run(replace(GOOD, **changes))]


def with_pod(index, /, **changes):
    pods = list(GOOD.pods)
    pods[index] = replace(pods[index], **changes)
    return tuple(pods)


def with_class_sample(index, /, **changes):
    rows = list(GOOD.class_samples)
    rows[index] = replace(rows[index], **changes)
    return {"class_samples": tuple(rows)}


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
        ({"pods": with_pod(0, waited_us=9)}, "one place", "waited 9 us, and 10 by its creation"),
        ({"pods": with_pod(3, waited_us=0)}, "one place", "waited 0 us, and None by its creation"),
        (
            {"pods": with_pod(0, first_tried_us=9)},
            "one place",
            "was first tried at 9 us, and at 10",
        ),
        (
            {"pods": with_pod(3, first_tried_us=9)},
            "one place",
            "was first tried at 9 us, and at None",
        ),
        ({"pods": with_pod(0, first_tried_us=11)}, "one place", "not in order"),
        ({"first_attempts": {}}, "one place", "and at None by its attempts"),
        (with_class_sample(1, created=6), "conservation", "6 created pods are not the sum of"),
        (with_class_sample(1, created=6, pending=3), "conservation", "3 pending pods, and 2"),
        (with_class_sample(1, finished=2, removed=0), "conservation", "0 removed pods, and 1"),
        (with_class_sample(2, pod_class=1), "conservation", "5 created pods, and 0"),
        ({"class_samples": GOOD.class_samples[:2]}, "conservation", "2 pending pods, and 1"),
        (with_class_sample(0, pod_class=None, created=4), "conservation", "4 created pods, and 5"),
        (
            {"samples": (*sample_rows(0, 5, 0, 0), SampleRow(40, "running", 3, "z"))},
            "conservation",
            "3 running pods, and 1 by the rows",
        ),
        (
            {"samples": (SampleRow(40, "running", 1), SampleRow(40, "running", 1, "y"))},
            "conservation",
            "0 running pods, and 1 by the rows",
        ),
    ],
)
def test_a_planted_fault_is_found(changes, rule, text):
    assert any(each == rule and text in words for each, words in found(**changes)), found(**changes)


def test_a_node_that_shrinks_below_its_pods_is_no_violation():
    shrunk = (*GOOD.nodes, NodeRow(60, "n1", {"cpu": 100}, 110, "z"))

    assert found(nodes=shrunk) == []


def test_devices_serve_resources_that_their_class_names_on_nodes_without_them():
    requests = {0: {"cpu": 600, "example.com/gpu": 1}}
    assert found(requests=requests)[0][0] == "capacity"
    served = {0: frozenset({"example.com/gpu"})}
    assert not found(requests=requests, from_devices=served)
    nodes = (NodeRow(0, "n1", {"cpu": 1000, "example.com/gpu": 0}, 110),)
    assert found(requests=requests, from_devices=served, nodes=nodes)[0][0] == "capacity"


def test_classes_without_rows_of_their_own_are_compared_together():
    pods = (*GOOD.pods, replace(pod_row(5), pod_class=7))
    others = ClassSampleRow(0, None, 1, 1, 0, 0, 0)
    samples = tuple(
        replace(each, value=each.value + (each.metric == "pending")) for each in GOOD.samples
    )

    assert found(pods=pods, samples=samples, class_samples=(*GOOD.class_samples, others)) == []


def test_pods_move_with_the_zone_of_their_node():
    moved = (*GOOD.nodes, NodeRow(30, "n1", {"cpu": 1000}, 110, "y"))
    in_zones = [SampleRow(20, "running", 1, "z"), SampleRow(40, "running", 1, "y")]

    classes = ClassSampleRow(20, 0, 5, 3, 1, 1, 0), GOOD.class_samples[1]

    assert found(nodes=moved, samples=tuple(in_zones), class_samples=classes) == []
