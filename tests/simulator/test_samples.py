"""The samples of a run: amounts by zone, why pods wait, the largest pod, pods by class."""

import pytest

from roadstead.simulator.class_totals import ClassTotals
from roadstead.simulator.play import Variant, play
from roadstead.simulator.simulated_pods import ClassCounts
from tests.builders import node, pod
from tests.simulator.plays import SECOND_US, plan_of
from tests.tables import read_rows

ZONE = "topology.kubernetes.io/zone"
GIB = 1 << 30
SMALL, BIG = pod(cpu=1000, memory=GIB), pod(cpu=9000, memory=GIB)


def nodes():
    """Return a node with much CPU and one with much memory, in two zones."""
    return [
        node("n1", cpu=8000, memory=2 * GIB, labels={ZONE: "a"}),
        node("n2", cpu=2000, memory=64 * GIB, labels={ZONE: "b"}),
    ]


@pytest.fixture
def tables(tmp_path):
    """Play arrivals; return a function that reads the rows of a table."""

    def played(arrivals, **more):
        plan = plan_of(nodes(), arrivals, sample_us=0, **more)
        readings = {"read_processor_s": lambda: 0.0, "read_memory_bytes": lambda: 0}
        play(plan, Variant(), tmp_path, None, **readings)
        return lambda name: [
            row for part in sorted((tmp_path / name).iterdir()) for row in read_rows(part)
        ]

    return played


def values(rows, metric, at_s=100):
    """Return by zone and resource the values of a metric."""
    return {
        (row["zone"], row["resource"]): row["value"]
        for row in rows
        if row["metric"] == metric and row["time_us"] == at_s * SECOND_US
    }


def test_running_pods_are_counted_by_zone(tables):
    arrivals = [(1.0, "a", SMALL, None), (2.0, "b", SMALL, None), (3.0, "c", SMALL, 5.0)]
    rows = tables(arrivals)("samples")

    running = values(rows, "running")

    assert running["", ""] == 2
    assert running["a", ""] + running["b", ""] == 2


def test_the_largest_pod_has_room_on_one_node_in_all_resources(tables):
    rows = tables([(1.0, "a", SMALL, 5.0)])("samples")

    largest, free = values(rows, "largest pod"), values(rows, "largest free")

    assert (free["", "cpu"], free["", "memory"]) == (8000, 64 * GIB), "on different nodes"
    assert (largest["", "cpu"], largest["", "memory"]) == (2000, 2 * GIB)
    assert largest["a", "cpu"] == largest["b", "cpu"] == 2000


def test_the_largest_pod_has_the_proportions_of_the_median(tables):
    arrivals = [(1.0 + k, f"p{k}", SMALL, 0.5) for k in range(3)]
    arrivals.append((9.0, "big", pod(cpu=7000), 0.5))
    rows = tables(arrivals)("samples")

    assert values(rows, "largest pod")["", "memory"] == 2 * GIB


def test_a_fleet_without_pods_has_no_largest_pod(tables):
    assert not values(tables([])("samples"), "largest pod")


def test_waiting_pods_are_counted_by_reason(tables):
    arrivals = [(1.0, "x", BIG, None), (2.0, "y", BIG, None)]
    arrivals.append((3.0, "z", pod(cpu=9000, memory=99 * GIB), None))
    read = tables(arrivals)

    assert values(read("samples"), "pending by reason") == {
        ("", "Insufficient cpu"): 3,
        ("", "Insufficient memory"): 1,
    }
    first = read("attempts")[0]
    assert dict(zip(first["reasons"], first["reason_nodes"], strict=True)) == {
        "Insufficient cpu": 2
    }


def test_classes_have_rows_where_they_changed(tables):
    arrivals = [(1.0, "a", SMALL, 5.0), (2.0, "b", SMALL, None), (3.0, "x", BIG, None)]
    read = tables(arrivals)

    classes = {row["class"]: row["cpu_milli"] for row in read("classes")}
    rows = [row for row in read("class_samples") if row["time_us"] == 100 * SECOND_US]

    found = {classes[row["class"]]: tuple(row.values())[2:] for row in rows}
    assert found == {1000: (2, 0, 1, 1, 0), 9000: (1, 1, 0, 0, 0)}


def test_equal_facts_are_one_class_and_unchanged_ones_have_no_row():
    totals, facts = ClassTotals(), pod(cpu=1)
    one, same = ClassCounts(facts, created=2), ClassCounts(facts, created=3)
    other, rest = ClassCounts(pod(cpu=2), created=1), ClassCounts(None, created=7)
    numbers = {facts: 4, pod(cpu=2): 2}

    def changed():
        return list(totals.changed([one, same, other, rest], numbers.__getitem__))

    assert [row[:2] for row in changed()] == [(None, 7), (2, 1), (4, 5)]
    assert changed() == []
    same.running = 1
    assert changed() == [(4, 5, 4, 1, 0, 0)]
