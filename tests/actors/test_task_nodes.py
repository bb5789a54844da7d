"""The nodes of a sweep: tasks are spread, and no node gets more than its CPUs."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roadstead.actors.runtime.ray_placement import RayNode
from roadstead.actors.sweeps.task_nodes import TaskNodes


def node(name, cpus=4.0, free=None):
    return RayNode(name, name, f"10.0.0.{name[1:]}", 1, cpus, cpus if free is None else free)


def begun(nodes, count):
    return [nodes.begin().id for _ in range(count)]


def test_tasks_go_to_the_node_with_the_most_room():
    nodes = TaskNodes()
    nodes.use([node("h1", 2.0), node("h2", 4.0), node("h3", 1.0)], {})

    assert nodes.capacity == 7
    assert begun(nodes, 7) == ["h2", "h2", "h1", "h2", "h1", "h2", "h3"]


def test_a_limit_of_tasks_holds_for_all_nodes_together():
    nodes = TaskNodes(3)
    nodes.use([node("h1"), node("h2")], {})

    assert nodes.capacity == 3
    assert begun(nodes, 3) == ["h1", "h2", "h1"]


@pytest.mark.parametrize(
    ("cpus", "free", "running", "room"),
    [
        (4.0, 1.0, 3, 4),  # the three are of this sweep
        (4.0, 0.5, 0, 0),  # others use the node
        (4.0, 4.0, 3, 4),  # Ray does not count the three yet
        (0.0, 0.0, 0, 0),  # a head without CPUs
        (3.0000001, 2.9999999999, 0, 3),
    ],
)
def test_the_capacity_of_a_node_is_its_free_cpus_and_those_of_this_sweep(cpus, free, running, room):
    nodes = TaskNodes()

    nodes.use([node("h1", cpus, free)], {"h1": running})

    assert nodes.capacity == room


def test_a_node_that_others_filled_keeps_its_tasks_and_gets_no_further_ones():
    nodes = TaskNodes()
    nodes.use([node("h1"), node("h2")], {})
    begun(nodes, 8)

    nodes.use([node("h1", 4.0, 0.0), node("h2", 4.0, 0.0)], {"h1": 1, "h2": 4})
    assert nodes.capacity == 8
    for _ in range(4):
        nodes.end("h1")

    assert nodes.capacity == 1 + 4
    assert begun(nodes, 1) == ["h1"]


def test_a_lost_node_is_not_used_again_even_if_it_is_listed():
    nodes = TaskNodes()
    nodes.use([node("h1"), node("h2")], {})
    begun(nodes, 2)

    nodes.lose({"h2"})
    nodes.end("h2")
    nodes.use([node("h1"), node("h2")], {"h1": 1})

    assert nodes.capacity == 4
    assert begun(nodes, 3) == ["h1"] * 3


class Nodes(RuleBasedStateMachine):
    """Any sequence of looks, starts, ends and losses."""

    def __init__(self):
        super().__init__()
        self.nodes = TaskNodes(10)
        self.on = []
        self.lost = set()

    @rule(free=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), unique_by=lambda p: p[0]))
    def look(self, free):
        found = [node(f"h{number}", 4.0, float(min(cpus, 4))) for number, cpus in free]
        self.nodes.use(found, self.nodes.running)

    @rule()
    def begin(self):
        if len(self.on) < self.nodes.capacity and not any(each in self.lost for each in self.on):
            chosen = self.nodes.begin().id
            assert chosen not in self.lost
            self.on.append(chosen)

    @precondition(lambda self: self.on)
    @rule(place=st.integers(0, 99))
    def end(self, place):
        self.nodes.end(self.on.pop(place % len(self.on)))

    @rule(number=st.integers(1, 4))
    def lose(self, number):
        self.lost.add(f"h{number}")
        self.nodes.lose({f"h{number}"})

    @invariant()
    def it_is_valid(self):
        self.nodes.validate()
        assert sum(self.nodes.running.values()) == len(self.on)
        assert all(count <= 4 for count in self.nodes.running.values())


TestNodes = Nodes.TestCase
