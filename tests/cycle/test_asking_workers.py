"""The classes of a batch for which workers are asked."""

import numpy as np
import pytest

from roadstead.cycle import class_results
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.node_search import NodeSearch
from roadstead.framework.tie_break import TieBreak
from roadstead.framework.worker_results import WorkerResults
from tests.builders import ROW_PLUGINS, node, pod, profile_of, table_of
from tests.peculiar_plugins import LikesDigits

POINTS = {**ROW_PLUGINS, "score": [*ROW_PLUGINS["score"], ("LikesDigits", 2)]}


class World:
    """A cycle over two nodes, with a user's plugin that scores the pods."""

    def __init__(self, points=POINTS, node_search=None):
        self.table = table_of(node("n1"), node("n2"))
        classes = self.table.classes
        self.profile = profile_of(points, plugins=[LikesDigits], classes=classes)
        profiles = {"default-scheduler": self.profile}
        self.cycle = BatchBuilder(self.table, profiles, TieBreak("first"), node_search=node_search)

    def pods(self, *cpus, **facts):
        """Return pods, of one class if their requests are equal."""
        pod_classes = [self.table.classes.pod_class(pod(cpu=cpu, **facts)) for cpu in cpus]
        return [
            PodInCycle(f"u{n}", f"d/p{n}", pod_class, self.profile.signature_of(pod_class, ""))
            for n, pod_class in enumerate(pod_classes)
        ]

    def give(self, pods):
        for each in pods:
            nothing = np.ones(len(self.table), dtype=np.bool_)
            given = WorkerResults(self.table.node_version, self.table.version, nothing, {}, {})
            self.cycle.store_worker_results(each.signature, given)


def test_one_pod_of_each_class_is_named_in_the_order_of_the_batch():
    world = World()
    pods = world.pods(300, 100, 300, 200)

    assert world.cycle.missing_classes(pods) == [pods[0], pods[1], pods[3]]
    assert world.cycle.missing_classes([]) == []


def test_known_classes_are_evaluated_again_after_a_node_is_added():
    world = World()
    pods = world.pods(100, 200, 300)
    world.cycle.begin(pods[:2])
    assert world.cycle.missing_classes(pods) == pods[2:]

    world.table.add_node(node("n3"))
    assert world.cycle.missing_classes(pods) == pods


def test_workers_results_are_kept_for_the_batch_and_requested_only_on_demand():
    world = World()
    pods = world.pods(100, 200, 300)
    world.give(pods[:2])

    assert world.cycle.missing_classes(pods) == pods[2:]
    assert world.cycle.missing_classes(pods, with_stored=True) == pods

    world.cycle.begin(pods[:1])
    world.table.add_node(node("n3"))
    assert world.cycle.missing_classes(pods) == [pods[0], pods[2]], "the batch used the results"


def test_beyond_a_bound_the_oldest_results_of_workers_are_dropped(monkeypatch):
    monkeypatch.setattr(class_results, "MAX_WORKER_RESULTS", 2)
    world = World()
    pods = world.pods(100, 200, 300)
    world.give(pods)

    assert world.cycle.missing_classes(pods) == pods[:1]


def test_pods_of_no_profile_are_skipped():
    world = World()
    (unscheduled,), (known,) = world.pods(100, scheduler_name="other"), world.pods(100)

    assert world.cycle.missing_classes([unscheduled, known]) == [known]


@pytest.mark.parametrize(
    "world", [World(ROW_PLUGINS), World(node_search=NodeSearch({"default-scheduler": 50}))]
)
def test_without_user_plugins_or_with_sampling_no_worker_is_asked(world):
    assert world.cycle.missing_classes(world.pods(100)) == []
