"""The initial size of a batch after earlier ones, and the effects of a batch of one pod."""

import pytest

from roadstead.cycle.batch import Batch, PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.node_search import NodeSearch
from roadstead.extenders.extender import Extender
from roadstead.extenders.sequence import Extenders
from roadstead.framework.plugin import PreFilterPlugin, PreFilterResult
from roadstead.framework.tie_break import TieBreak
from roadstead.protocol.status import unschedulable
from tests.builders import ROW_PLUGINS, node, pod, profile_of, table_of
from tests.extenders.servers import config_of


class Refuses(PreFilterPlugin):
    """A plugin that refuses all nodes to pods with a label."""

    name = "Refuses"

    def pre_filter(self, state, pod, table):
        return PreFilterResult(unschedulable("never")) if "no" in pod.labels else PreFilterResult()

    def sign(self, pod):
        return pod.labels


class LeavesAll:
    def call(self, verb, payload):
        return {"NodeNames": payload["NodeNames"]}


class World:
    """A cycle over four nodes, with an extender for every pod if one is given."""

    def __init__(self, *, is_extended=False):
        self.table = table_of(*(node(f"n{number}") for number in range(4)))
        points = {**ROW_PLUGINS, "preFilter": ["Refuses", *ROW_PLUGINS["preFilter"]]}
        profile = profile_of(points, plugins=[Refuses], classes=self.table.classes)
        config = config_of(node_cache_capable=True, filter_verb="filter")
        chain = Extenders([Extender(config, LeavesAll())]) if is_extended else None
        self.node_search = NodeSearch({"default-scheduler": 50}, chain) if is_extended else None
        self.cycle = BatchBuilder(
            self.table,
            {"default-scheduler": profile},
            TieBreak("first"),
            node_search=self.node_search,
        )
        self.profile = profile

    def pods(self, count, **facts):
        pod_class = self.table.classes.pod_class(pod(cpu=1, **facts))
        signature = self.profile.signature_of(pod_class, "")
        return [PodInCycle(f"u{n}", f"d/p{n}", pod_class, signature) for n in range(count)]


def test_a_batch_that_ended_early_makes_the_next_short_and_complete_ones_longer():
    world = World()
    pods, lengths = world.pods(50), []
    world.cycle.record_length(50, 50)
    for decided in (50, 3, 3, 6, 12, 0, 1, 2):
        lengths.append(len(world.cycle.next_batch(pods)))
        world.cycle.record_length(lengths[-1], decided)

    assert lengths == [50, 50, 3, 6, 12, 24, 1, 2]
    assert len(world.cycle.next_batch(pods)) == 4


def test_the_next_search_starts_after_that_of_a_single_decided_pod(monkeypatch):
    monkeypatch.setattr("roadstead.framework.sampling.MIN_FEASIBLE_NODES", 2)
    world = World(is_extended=True)
    world.node_search.start = 3
    (one,) = world.pods(1)
    task = world.cycle.begin([one])
    world.cycle.searched(task.run()).decide(one)
    assert world.node_search.start == 3

    world.cycle.record_length(1, 1)
    assert world.node_search.start == 1, "two of four nodes are evaluated"

    world.node_search.start = 2
    (refused,) = world.pods(1, labels={"no": "yes"})
    world.cycle.begin([refused])
    world.cycle.record_length(1, 1)
    assert world.node_search.start == 2, "no search starts"


@pytest.mark.parametrize("is_extended", [True, False])
def test_a_pod_refused_by_prefilter_is_not_sent_to_extenders(is_extended):
    world = World(is_extended=is_extended)
    (fits,), (refused,) = world.pods(1), world.pods(1, labels={"no": "yes"})
    if is_extended:
        assert not isinstance(world.cycle.begin([fits]), Batch)

    decision = world.cycle.begin([refused]).decide(refused)

    assert (decision.node_name, decision.error) == (None, "")
    assert decision.diagnosis.message() == "0/4 nodes are available: never."
