"""Batches over a table of all nodes continue after placements that matter on other nodes."""

import pytest

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.node_search import NodeSearch
from roadstead.facts.pod import Volume
from roadstead.framework.tie_break import TieBreak
from tests.actors.fleets import apps, near, spread
from tests.builders import node, pod, table_of
from tests.local.test_paths import profiles_of
from tests.strategies import ZONE

WEB = apps("web")
APART = {"labels": {"app": "web"}, "pod_anti_affinity": (near(WEB),)}
SPREAD = {"labels": {"app": "web"}, "spread_constraints": (spread(selector=WEB),)}


class World:
    """Three nodes in three zones, and pods of one batch."""

    def __init__(self, *facts, cpu=4000):
        hosts = (
            node(f"n{n}", cpu=cpu, labels={ZONE: zone, "kubernetes.io/hostname": f"n{n}"})
            for n, zone in enumerate("abc")
        )
        self.table = table_of(*hosts)
        self.profiles = profiles_of(self.table.classes)
        self.cycle = BatchBuilder(self.table, self.profiles, TieBreak("first"))
        self.pods = [self._in_cycle(number, each) for number, each in enumerate(facts)]

    def _in_cycle(self, number, facts):
        pod_class = self.table.classes.pod_class(facts)
        signature = self.profiles["default-scheduler"].signature_of(pod_class, f"u{number}")
        return PodInCycle(f"u{number}", f"default/p{number}", pod_class, signature)

    def decided(self):
        """Return the nodes of the first pods; None for no node, and an end where the batch ends."""
        batch = self.cycle.begin(self.pods)
        nodes = []
        for each in self.pods:
            decision = batch.decide(each)
            if decision is None:
                return [*nodes, "end"]
            nodes.append(decision.node_name)
        self.table.validate()
        return nodes


@pytest.mark.parametrize("facts", [APART, SPREAD])
def test_pods_that_affect_each_other_are_decided_in_one_batch(facts):
    world = World(*[pod(cpu=100, **facts)] * 3)

    assert sorted(world.decided()) == ["n0", "n1", "n2"]


def test_a_pod_that_fits_nowhere_after_earlier_placements_is_rejected():
    world = World(*[pod(cpu=100, **APART, preemption_policy="Never")] * 4)

    assert sorted(world.decided()[:3]) == ["n0", "n1", "n2"]
    assert world.cycle.begin(world.pods[3:]).decide(world.pods[3]).node_name is None
    assert World(*[pod(cpu=100, **APART, preemption_policy="Never")] * 4).decided()[3] is None


def test_a_batch_ends_before_an_eviction_for_its_own_placements():
    world = World(*[pod(cpu=100, **APART)] * 3, pod(cpu=100, priority=10, **APART))

    assert world.decided()[3:] == ["end"]


def test_a_batch_still_ends_for_pods_with_volumes():
    volumes = (Volume("v", "gcePersistentDisk", (("pdName", "disk"),)),)
    world = World(*[pod(cpu=100, volumes=volumes, **APART)] * 2)

    assert world.decided() == ["n0", "end"]


@pytest.mark.parametrize("shares", [{}, {"default-scheduler": 50}])
def test_the_nomination_of_a_pod_that_fits_nowhere_counts_for_no_later_pod(shares):
    """Upstream withdraws it before the next pod is decided, so the batch ends there."""
    large = pod(cpu=5000, nominated_node_name="n0", preemption_policy="Never")
    world = World(large, pod(cpu=4000))
    world.cycle = BatchBuilder(
        world.table, world.profiles, TieBreak("first"), node_search=NodeSearch(shares)
    )
    world.table.nominate("n0", world.pods[0].pod_class)

    assert world.decided() == [None, "end"]

    world.table.withdraw("n0", world.pods[0].pod_class)
    del world.pods[0]
    assert world.decided() == ["n0"]
