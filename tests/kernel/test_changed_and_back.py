"""Shared results of the classes of one shape may be recomputed for other own nodes, and be used
again after the own nodes are as before."""

import pytest

from roadstead.cycle.batch import CompiledKernel, PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.partitions import OwnNodes
from roadstead.framework.tie_break import TieBreak
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.nodes.pod_class import PodClasses
from tests.builders import ROW_PLUGINS, node, pod, profile_of, table_of

SMALL, LARGE = pod(cpu=100), pod(cpu=200)


class Scheduler:
    """A scheduler that owns a part of three nodes, and decides with the kernel."""

    def __init__(self):
        table = table_of(*(node(f"n{n}", cpu=4000) for n in range(3)), classes=PodClasses())
        self.own = OwnNodes({"n0": 0, "n1": 1, "n2": 1}, (1,))
        profile = profile_of(ROW_PLUGINS, classes=table.classes).with_filter(self.own)
        self.coverage, self._table, self._profile, self._count = DecisionCounts(), table, profile, 0
        profiles = {"default-scheduler": profile}
        self._cycle = BatchBuilder(
            *(table, profiles, TieBreak("first")),
            compiled_kernel=CompiledKernel(load(), self.coverage),
        )

    def node_for(self, facts):
        """Return the node of one more pod, decided in a batch of its own."""
        self._count += 1
        pod_class = self._table.classes.pod_class(facts)
        uid = f"u{self._count}"
        one = PodInCycle(uid, f"ns/{uid}", pod_class, self._profile.signature_of(pod_class, uid))
        batch = self._cycle.begin([one])
        (decision,) = batch.decide_by_kernel([one]) or (batch.decide(one),)
        batch.flush()
        return decision.node_name


@pytest.mark.parametrize("other", [SMALL, LARGE])
def test_own_nodes_that_change_and_change_back_are_the_nodes_used(other):
    scheduler = Scheduler()
    assert scheduler.node_for(SMALL) == "n1"
    assert scheduler.node_for(LARGE) == "n2"

    scheduler.own.own = (0,)
    assert scheduler.node_for(other) == "n0"

    scheduler.own.own = (1,)
    assert [scheduler.node_for(each) for each in (LARGE, SMALL)] == ["n1", "n2"]
    assert scheduler.coverage.by_kernel == 5
