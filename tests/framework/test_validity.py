"""Results of a class are valid until its inputs change, or a pod that affects it moves."""

from roadstead.framework.plugin import Effect, FilterPlugin, FilterResult, Reads
from roadstead.framework.validity import Validity, inputs_of
from tests.builders import node, pod, profile_of, put, table_of

WEB, DB = pod(labels={"app": "web"}), pod(labels={"app": "db"})


class Watches(FilterPlugin):
    """A plugin for which pods of one app affect each other."""

    name = "Watches"
    reads = Reads.CLUSTER
    asked = 0

    def sign(self, pod):
        return pod.labels

    def effect(self, placed):
        Watches.asked += 1
        return Effect(placed.facts.labels, lambda pod: pod.facts.labels == placed.facts.labels)

    def filter(self, state, pod, table):
        return FilterResult()


class World:
    def __init__(self):
        Watches.asked = 0
        self.table = table_of(node("n1"), node("n2"))
        self.profile = profile_of(
            {"filter": ["Watches"]}, plugins=[Watches], classes=self.table.classes
        )
        self.pod_class = self.table.classes.pod_class(WEB)
        self.found()

    def found(self):
        inputs = inputs_of(self.table, self.profile, self.pod_class)
        self.validity = Validity(inputs, self.table.columns.changes)

    def holds(self):
        return self.validity.holds(
            self.table, self.profile, self.profile.cross_node, self.pod_class
        )


def test_results_are_valid_while_nothing_relevant_moves():
    world = World()
    assert world.holds()

    put(world.table, "n1", DB)
    assert world.holds()

    world.table.remove_pod("n1", world.table.classes.pod_class(DB))
    assert world.holds()


def test_results_are_invalid_after_a_relevant_pod_is_added_or_removed():
    world = World()
    put(world.table, "n1", DB, WEB)
    assert not world.holds()
    assert not world.holds()

    world.found()
    assert world.holds()
    world.table.remove_pod("n1", world.pod_class)
    assert not world.holds()


def test_known_irrelevant_pods_are_not_checked_again():
    world = World()
    for _ in range(3):
        put(world.table, "n2", DB)
        assert world.holds()

    assert Watches.asked == 1


def test_inputs_change_once_a_node_changes():
    world = World()
    before = inputs_of(world.table, world.profile, world.pod_class)
    put(world.table, "n1", WEB)
    assert inputs_of(world.table, world.profile, world.pod_class) == before

    world.table.update_node(node("n1", cpu=1))

    assert inputs_of(world.table, world.profile, world.pod_class) != before
