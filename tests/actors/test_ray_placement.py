"""The Ray node of each process of a run, and the errors where no node fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.actors.runtime.ray_placement import (
    PlacementConstraints,
    RayNode,
    Unplaceable,
    place,
    room_for,
)

NAMES = ["control", "scheduler-0", "scheduler-1", "worker-0", "worker-1"]


def node(name, free=4.0, cpus=4.0, **labels):
    return RayNode(f"id-{name}", name, f"10.0.0.{name[-1]}", 7000, cpus, free, labels)


def names(placed):
    return {process: each.name for process, each in placed.items()}


def test_control_runs_on_the_drivers_node_and_the_other_processes_are_spread():
    nodes = [node("h1"), node("h2"), node("h3")]

    placed = place(NAMES, nodes, PlacementConstraints(driver_node_id="id-h2"), {})

    assert names(placed)["control"] == "h2"
    assert {names(placed)["scheduler-0"], names(placed)["scheduler-1"]} == {"h1", "h3"}
    assert names(placed)["worker-0"] != names(placed)["worker-1"]


def test_control_in_three_processes_stays_on_one_node():
    placed = place(
        ["queue", "cache", "binder"], [node("h1", free=2.0), node("h2")], PlacementConstraints(), {}
    )

    assert set(names(placed).values()) == {"h2"}


def test_control_runs_on_the_node_of_the_rest_of_control():
    nodes = [node("h1"), node("h2", free=1.0)]

    placed = place(
        ["binder"],
        nodes,
        PlacementConstraints(driver_node_id="id-h1"),
        {"queue": "id-h2", "cache": "id-h2"},
    )

    assert names(placed) == {"binder": "h2"}


def test_a_replaced_worker_avoids_the_node_of_the_other_worker():
    nodes = [node("h1", free=3.0), node("h2", free=4.0)]

    placed = place(["worker-1"], nodes, PlacementConstraints(), {"worker-0": "id-h2"})

    assert names(placed) == {"worker-1": "h1"}


def test_labels_choose_the_nodes_of_a_role():
    nodes = [node("h1"), node("h2", zone="a")]

    placed = place(
        NAMES, nodes, PlacementConstraints(cpus=0.5, labels={"scheduler": {"zone": "a"}}), {}
    )

    assert names(placed)["scheduler-0"] == names(placed)["scheduler-1"] == "h2"


def test_a_label_that_no_node_has_is_named():
    placed = place(
        ["worker-0"], [node("h1")], PlacementConstraints(labels={"worker": {"zone": "a"}}), {}
    )

    assert placed == Unplaceable("no node has the labels that the worker needs (zone=a)")


def test_an_error_about_too_few_cpus_has_the_numbers():
    placed = place(NAMES, [node("h1", free=1.0), node("h2", free=0.5)], PlacementConstraints(), {})

    assert placed == Unplaceable(
        "the scheduler wants 1 CPU on one node, and the most that is free is 0.5 on h2 (10.0.0.2);"
        " in all 0.5 of 8 CPUs are free"
    )


def test_the_binder_needs_a_node_with_the_journal():
    constraints = PlacementConstraints(journal_node_ids=frozenset({"id-h2"}))

    assert names(place(["control"], [node("h1"), node("h2")], constraints, {})) == {"control": "h2"}
    assert place(["worker-0"], [], PlacementConstraints(), {}) == Unplaceable(
        "there is no node for the worker"
    )
    lost = place(["control"], [node("h1")], constraints, {})
    assert lost == Unplaceable("no node left has the folder of the journal")


COPIED = ["control", "journal-copy", "scheduler-0"]


def test_the_copy_of_the_journal_is_on_another_node_than_control():
    nodes = [node("h1"), node("h2"), node("h3", free=3.0)]

    placed = names(place(COPIED, nodes, PlacementConstraints(driver_node_id="id-h2"), {}))

    assert (placed["control"], placed["journal-copy"]) == ("h2", "h1")


def test_the_copy_prefers_a_node_that_control_could_run_on():
    nodes = [node("h1"), node("h2", disk="ssd"), node("h3", free=2.0, disk="ssd")]

    placed = names(
        place(COPIED, nodes, PlacementConstraints(labels={"control": {"disk": "ssd"}}), {})
    )

    assert (placed["control"], placed["journal-copy"]) == ("h2", "h3")


def test_a_replaced_copy_returns_to_its_disk():
    nodes = [node("h1"), node("h2"), node("h3", free=1.0)]
    constraints = PlacementConstraints(last_copy_node_id="id-h3")

    placed = place(["journal-copy"], nodes, constraints, {"control": "id-h1"})

    assert names(placed) == {"journal-copy": "h3"}


def test_a_copy_without_a_second_node_has_no_place():
    assert place(COPIED, [node("h1")], PlacementConstraints(), {}) == Unplaceable(
        "the copy of the journal needs another node than the binder's, and there is none"
    )
    assert place(
        COPIED, [node("h1"), node("h2", free=0.0)], PlacementConstraints(), {}
    ) == Unplaceable(
        "the copy of the journal wants 1 CPU on one node, and the most that is free is 0 on h2 "
        "(10.0.0.2); in all 0 of 4 CPUs are free"
    )


@given(
    st.lists(st.integers(0, 16), min_size=1, max_size=6),
    st.integers(1, 6),
    st.integers(0, 6),
    st.sampled_from([0.0, 0.5, 1.0, 2.0]),
)
def test_no_node_gets_more_than_is_free_and_every_process_is_placed(
    free, schedulers, workers, cpus
):
    nodes = [node(f"h{i}", free=float(many), cpus=16.0) for i, many in enumerate(free)]
    processes = [
        "control",
        *(f"scheduler-{i}" for i in range(schedulers)),
        *(f"worker-{i}" for i in range(workers)),
    ]

    placed = place(processes, nodes, PlacementConstraints(cpus), {})

    if isinstance(placed, Unplaceable):
        assert sum(int(many / cpus) for many in free) < len(processes)
        return
    assert placed.keys() == set(processes)
    for each in nodes:
        assert sum(cpus for on in placed.values() if on.id == each.id) <= each.free_cpus + 1e-6


@pytest.mark.parametrize(
    ("cpus", "labels", "room"), [(1, {}, 5), (2, {}, 2), (0, {}, 5), (1, {"d": "x"}, 2)]
)
def test_room_is_counted_on_nodes_with_the_labels_of_the_role(cpus, labels, room):
    nodes = [
        RayNode("1", "h1", "10.0.0.1", 1, cpus=4.0, free_cpus=3.5),
        RayNode("2", "h2", "10.0.0.2", 1, cpus=4.0, free_cpus=2.0, labels={"d": "x"}),
        RayNode("3", "h3", "10.0.0.3", 1, cpus=4.0, free_cpus=0.0, labels={"d": "x"}),
    ]

    constraints = PlacementConstraints(cpus=cpus, labels={"worker": labels})
    assert room_for("worker", [], nodes, constraints, {}) == room


@pytest.mark.parametrize(
    ("cpus", "labels", "control", "room"),
    [
        (1.0, {"d": "x"}, ["control"], 16),
        (1.0, {}, ["control"], 46),
        (1.0, {}, ["queue", "cache", "binder"], 44),
        (3.0, {}, ["control"], 13),
        (9.0, {}, ["control"], 1),
        (17.0, {}, ["control"], 0),
    ],
)
def test_workers_may_use_the_resources_left_by_control_and_schedulers(cpus, labels, control, room):
    nodes = [node("h1", 16.0, 16.0), node("h2", 16.0, 16.0), node("h3", 16.0, 16.0, d="x")]
    constraints = PlacementConstraints(cpus, {"worker": labels}, driver_node_id="id-h1")
    others = [*control, "scheduler-0"]

    assert room_for("worker", others, nodes, constraints, {}) == room

    workers = [f"worker-{index}" for index in range(room)]
    more = [*workers, f"worker-{room}"]
    if room:
        assert isinstance(place([*others, *workers], nodes, constraints, {}), dict)
    assert isinstance(place([*others, *more], nodes, constraints, {}), Unplaceable)
