"""The owners of partitions, and the pods that are decided on own partitions alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.settings import Settings
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.partitions import Partition, partitions_of, reads_other_nodes
from roadstead.facts.pod import Volume
from roadstead.framework.cycle_state import CycleState
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from tests.actors.fleets import apps, near, spread
from tests.builders import node, pod

CLASSES = PodClasses()
SHARD_OF = {"n0": 0, "n1": 1, "n2": 2, "n3": 3, "n4": 0}


def waiting(uid="a", attempt=1, **facts):
    pod_class = CLASSES.pod_class(pod(**facts))
    return PodInCycle(uid, f"default/{uid}", pod_class, pod_class, attempt)


def partition(index=0, **settings):
    given_too = {"schedulers": 2, "partitions": 4, **settings}
    return Partition(Settings(mode="partitioned", **given_too), index, SHARD_OF)


@given(st.integers(1, 8), st.integers(0, 8), st.integers(0, 50))
def test_in_every_turn_each_shard_has_one_owner_and_each_owner_a_shard(schedulers, more, turn):
    partitions = schedulers + more

    parts = [partitions_of(partitions, rank, schedulers, turn) for rank in range(schedulers)]

    assert sorted(partition for part in parts for partition in part) == list(range(partitions))
    assert all(parts)


def test_partitions_pass_to_the_next_scheduler_each_turn_and_return():
    assert [partitions_of(4, 0, 2, turn) for turn in range(3)] == [(0, 2), (1, 3), (0, 2)]


def test_more_schedulers_than_shards_are_an_internal_error():
    with pytest.raises(AssertionError, match="3 schedulers cannot own 2 partitions"):
        partitions_of(2, 0, 3, 0)


def test_schedulers_of_one_profile_divide_the_shards():
    profiles = {"web": 2, "batch": 1}

    parts = [partition(index, schedulers=profiles).nodes.own for index in range(3)]

    assert parts == [(0, 2), (1, 3), (0, 1, 2, 3)]


def test_a_lease_contains_the_current_turn():
    mine = partition()
    mine.record_lease(waiting=0, turn=1)

    assert mine.nodes.own == (1, 3)


def test_pods_without_an_own_node_are_decided_on_all_nodes_until_the_next_lease():
    mine, pod_here = partition(), waiting()
    mine.pass_on(pod_here)
    assert not mine.tries_own_nodes_first(pod_here)
    assert mine.tries_own_nodes_first(waiting("b"))

    mine.record_lease(0, 0)
    assert mine.tries_own_nodes_first(pod_here)


def test_own_nodes_are_those_of_the_shards_in_this_turn():
    classes, mine = PodClasses(), partition()
    table = NodeTable(classes)
    for name in SHARD_OF:
        table.add_node(node(name))
    state = CycleState(len(table))

    def left():
        codes = mine.nodes.filter(state, waiting().pod_class, table).codes
        return [name for name, code in zip(table.names, codes, strict=True) if not code]

    assert left() == ["n0", "n2", "n4"]
    before = mine.nodes.state_version(waiting().pod_class)
    mine.record_lease(0, 1)
    assert left() == ["n1", "n3"]
    assert mine.nodes.state_version(waiting().pod_class) != before


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, False),
        ({"spread_constraints": (spread(when="ScheduleAnyway", selector=apps("a")),)}, False),
        ({"preferred_pod_affinity": (near(apps("a"), weight=1),)}, False),
        ({"spread_constraints": (spread(selector=apps("a")),)}, True),
        ({"pod_affinity": (near(apps("a")),)}, True),
        ({"pod_anti_affinity": (near(apps("a")),)}, True),
        ({"volumes": (Volume("v", "persistentVolumeClaim", ()),)}, True),
    ],
)
def test_pods_that_depend_on_other_nodes_are_decided_on_all_nodes(facts, expected):
    assert reads_other_nodes(pod(**facts)) == expected
    assert partition().tries_own_nodes_first(waiting(**facts)) != expected


def test_a_pod_that_was_tried_before_is_decided_on_all_nodes():
    assert not partition().tries_own_nodes_first(waiting(attempt=2))


def test_quality_first_always_uses_all_nodes():
    assert not partition(partition_policy="quality-first").tries_own_nodes_first(waiting())


def test_adaptive_uses_all_nodes_once_the_queue_is_short():
    mine = partition(partition_policy="adaptive", partition_long_queue_pods=10)
    assert mine.tries_own_nodes_first(waiting())

    mine.record_lease(waiting=10, turn=0)
    assert not mine.tries_own_nodes_first(waiting())

    mine.record_lease(waiting=11, turn=0)
    assert mine.tries_own_nodes_first(waiting())
