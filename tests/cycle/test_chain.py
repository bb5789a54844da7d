"""The pods that are decided on the same table after a preempting or a nominated pod."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from roadstead.config.concurrency import DecisionTime, JobTime
from roadstead.cycle import chain
from roadstead.cycle.batch import Decision
from roadstead.cycle.needs import YieldToMessages
from roadstead.cycle.node_search import NodeSearch
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.protocol.status import unschedulable
from tests.builders import pod
from tests.cycle.test_ends_of_batches import full
from tests.cycle.test_scheduling_cycle import World

URGENT = {"cpu": 600, "priority": 10}


def nominated(world, *nodes):
    """Return pods that are each nominated to one of the nodes."""
    found = world.pods(len(nodes), **URGENT)
    pod_class = world.nodes.table.classes.pod_class
    return [
        one._replace(pod_class=pod_class(replace(one.pod_class.facts, nominated_node_name=node)))
        for one, node in zip(found, nodes, strict=True)
    ]


def outcome(world):
    """Return (node, nominated node) of each decision."""
    return [
        (each.node_name, each.post_filter and each.post_filter.nominated_node)
        for each in world.decisions
    ]


def on(world, name):
    return {each.uid for each in world.nodes.table.residents.on(name)}


def test_victims_are_removed_immediately_and_restored_unless_the_cache_confirms():
    world = full(World())

    world.decide(world.pods(3, **URGENT))

    assert {name for _, name in outcome(world)[:2]} == {"n1", "n2"}
    assert on(world, "n1") == on(world, "n2") == set()
    assert [*world.nodes.table.nominations.to("n1").values()] == [1]
    world.nodes.tentative.undo_unconfirmed()
    assert (on(world, "n1"), on(world, "n2")) == ({"low-n1"}, {"low-n2"})
    assert not world.nodes.table.nominations
    world.nodes.table.validate()


def test_nominated_pods_are_placed_on_their_nodes_in_one_batch():
    world = World()

    assert world.decide(nominated(world, "n2", "n1")) == (["n2", "n1"], 2)


def test_a_nominated_pod_that_does_not_fit_its_node_ends_the_chain():
    world = full(World())
    first, second = nominated(world, "n1", "n2")

    assert world.decide([first, second]) == ([None], 1)


def test_after_a_placed_pod_no_pod_preempts_and_others_are_decided():
    world = World()
    low = world.nodes.table.classes.pod_class(pod(cpu=900, priority=-1))
    world.nodes.table.add_pod("n2", low, uid="low", key="d/low")
    (first,) = nominated(world, "n1")
    small, large = world.pods(3, cpu=100)[1], world.pods(3, **URGENT)[2]

    assert world.decide([first, small, large]) == (["n1", small and "n1"], 2)
    assert on(world, "n2") == {"low"}


def test_pods_that_can_not_preempt_are_decided_in_one_batch():
    world = full(World())
    high = world.nodes.table.classes.pod_class(pod(cpu=50, priority=20))
    for name in ("n1", "n2"):
        world.nodes.table.add_pod(name, high, uid=f"high-{name}", key=f"d/high-{name}")

    assert world.decide(world.pods(3, cpu=1000, priority=10)) == ([None] * 3, 3)

    assert {each.post_filter.nominated_node for each in world.decisions} == {""}


@pytest.mark.parametrize(("claim", "left"), [("", 1), ("d/c", 0)])
def test_a_claim_that_loses_its_allocation_ends_the_chain(claim, left):
    """The table does not show that its devices are free."""
    first, second = World().pods(2)
    builder = SimpleNamespace(
        searches_nodes=lambda pod: False, next_batch=list, record_length=lambda *_: None
    )
    found = chain.Chain(builder, None, [first], [first, second])
    result = PostFilterResult(unschedulable("no"), deallocated=claim)

    found.record_batch([Decision(first, None, post_filter=result)], 1)

    assert len(found.pods) == left


def test_a_chain_is_no_longer_than_messages_may_wait(monkeypatch):
    monkeypatch.setattr(chain, "MAX_BATCHES", 2)
    world = World()

    assert world.decide(nominated(world, "n1", "n2", "n1")) == (["n1", "n2"], 2)


def test_a_chain_ends_if_its_batches_are_slow():
    world = World()
    world.happens[YieldToMessages] = lambda: setattr(world, "now_s", world.now_s + 1.2)

    assert world.decide(nominated(world, *["n1", "n2"] * 2)) == (["n1", "n2"], 2)


@pytest.mark.parametrize(
    "searches_nodes",
    [
        {"node_search": NodeSearch({"default-scheduler": 50})},
        {"latency": DecisionTime(batch=JobTime(job_s=1.0, task_s=0.0))},
    ],
)
def test_sampled_pods_and_pods_with_decision_time_form_no_chain(searches_nodes):
    world = World(**searches_nodes)

    assert world.decide(nominated(world, "n1", "n2")) == (["n1"], 1)


def test_with_scoring_workers_only_nominated_pods_continue_a_chain_without_them():
    world = full(World(limit_batch=lambda cycle, pods: pods[:1]))
    first, second, third = world.pods(3, **URGENT)
    assert world.decide([first, second]) == ([None], 1)

    world = World(limit_batch=lambda cycle, pods: pods[:1])
    assert world.decide([*nominated(world, "n1", "n2"), third]) == (["n1", "n2"], 2)
