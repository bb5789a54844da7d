"""Taints, cordons, drains, and nodes that are added and removed, through the engine."""

from dataclasses import replace

import pytest

from roadstead.facts.pod import Owner
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.facts.taints import Taint
from roadstead.simulator.node_events import NodeEventPlan, NodeTarget
from roadstead.simulator.scenario import BudgetPlan
from roadstead.simulator.share import Share
from tests.simulator.fault_plans import (
    LIFECYCLE,
    Pods,
    S,
    event_of,
    node_of,
    nodes_of,
    on_node,
    plan_of,
    played,
    pod_facts,
    tolerating,
    tolerations,
)

WEB = (("app", "web"),)
OF_WEB = LabelSelector((Requirement("app", "In", ("web",)),))


# Taints, cordons, nodes that come and go.


@pytest.mark.parametrize(
    ("lifecycle", "ended"),
    [
        (LIFECYCLE, {"a": (130, "evicted")}),
        (tolerating("dirty", None), {}),
        (tolerating("dirty", 60), {"a": (190, "evicted")}),
        (tolerating("dirty", 60, "very"), {"a": (130, "evicted")}),
        (tolerating("dirty", 200), {}),
    ],
)
def test_a_taint_evicts_pods_that_do_not_tolerate_it_for_so_long(lifecycle, ended):
    pods = Pods(((0, "a", on_node("n0")),), lifecycle=lifecycle)
    event = event_of("taint", 100, "n0", for_s=150, taint=Taint("dirty", "", "NoExecute"))

    history, engine = played(plan_of(nodes_of(2), pods, events=[event]))

    assert history.ended == ended, "30 s of grace included"
    assert not engine.nodes["n0"].taints


def test_a_pod_that_is_bound_to_a_tainted_node_is_evicted_after_its_toleration():
    facts = on_node("n0", tolerations=tolerations("dirty"))
    pods = Pods(((50, "a", facts),), lifecycle=tolerating("dirty", 60))
    nodes = (node_of("n0", taints=(Taint("dirty", "", "NoExecute"),)), node_of("n1"))

    history, _ = played(plan_of(nodes, pods))

    assert history.ended == {"a": (140, "evicted")}


def test_a_taint_that_replaced_another_one_gives_it_back():
    own = Taint("k", "own", "NoSchedule")
    nodes = (node_of("n0", taints=(own,)), node_of("n1"))
    event = event_of("taint", 10, "n0", for_s=10, taint=Taint("k", "other", "NoSchedule"))

    history, engine = played(plan_of(nodes, events=[event]))

    assert history.noted("tainted", "taint removed") == [
        (10, "tainted", "n0"),
        (20, "taint removed", "n0"),
    ]
    assert engine.nodes["n0"].taints == (own,)


def test_a_node_is_schedulable_again_when_both_of_its_cordons_are_over():
    events = [
        event_of("cordon", 10, "n0", for_s=50),
        event_of("drain", 20, "n0", for_s=100, index=1),
    ]
    pods = Pods(((30, "a", on_node("n0")),))

    history, _ = played(plan_of(nodes_of(2), pods, events=events))

    assert history.bound == [(120, "a", "n0")]


def test_nodes_are_added_and_removed_after_their_drain():
    event = event_of("add", 100, for_s=200, every_us=1_000 * S, nodes=(node_of("x"),))
    pods = Pods(((150, "a", on_node("x")),))

    history, engine = played(plan_of(nodes_of(2), pods, events=[event], horizon_s=1_200))

    assert history.ended == {"a": (330, "evicted")}
    assert history.noted("node added", "drained", "node removed") == [
        (100, "node added", "x"),
        (330, "drained", "x"),
        (330, "node removed", "x"),
        (1_100, "node added", "x-1"),
    ]
    assert set(engine.nodes) == {"n0", "n1", "x-1"}


def test_pods_of_a_removed_node_are_lost():
    plan = plan_of(
        nodes_of(2), Pods(((0, "a", on_node("n0")),)), events=[event_of("remove", 9, "n0")]
    )

    history, _ = played(plan)

    assert history.ended == {"a": (9, "lost")}


def test_events_repeat_until_their_end():
    event = NodeEventPlan(
        0, "cordon", 100 * S, 200 * S, 50 * S, 600 * S, NodeTarget(share=Share(1))
    )

    history, _ = played(plan_of(nodes_of(20), events=[event]), seed=3)

    assert history.times("cordoned") == [100, 300, 500]
    assert history.times("uncordoned") == [150, 350, 550]
    chosen = [event.chosen(nodes_of(20), 3, number) for number in range(3)]
    assert [(subject,) for _, _, subject in history.noted("cordoned")] == chosen


# Drains and budgets.


def test_a_drain_evicts_with_grace_and_leaves_the_pods_of_daemon_sets():
    owner = Owner("DaemonSet", "agent", "agent")
    pods = Pods(((0, "a", on_node("n0")), (0, "agent", on_node("n0", owner=owner))))

    history, engine = played(plan_of(nodes_of(2), pods, events=[event_of("drain", 60, "n0")]))

    assert history.ended == {"a": (90, "evicted")}
    assert [each[:3] for each in history.notes] == [
        (60, "drain began", "n0"),
        (60, "pod evicted", "default/a"),
        (90, "drained", "n0"),
    ]
    assert engine.nodes["n0"].unschedulable


def web_pods(number, at_s=0, **more):
    return Pods(
        tuple((at_s, f"w{i}", on_node(f"n{i % 2}", labels=WEB)) for i in range(number)), **more
    )


def budget(**shares):
    return BudgetPlan("default", "web", OF_WEB, **shares)


def test_a_drain_evicts_as_many_pods_as_the_budget_allows_and_tries_the_others_again():
    plan = plan_of(
        nodes_of(2),
        web_pods(4),
        Pods(((200, "late", on_node("n1", labels=WEB)),), index=1),
        events=[event_of("drain", 61, "n0", for_s=1_000)],
        budgets=(budget(min_available=Share(3)),),
    )

    history, _ = played(plan)

    assert history.times("pod evicted") == [61, 201], "every 5 s from 61 s on"
    assert history.noted("eviction refused") == [(61, "eviction refused", "default/w2")]
    assert history.times("drained") == [231]


def test_a_drain_that_its_budget_forbids_is_unfinished_when_its_time_is_over():
    plan = plan_of(
        nodes_of(2),
        web_pods(4),
        events=[event_of("drain", 60, "n0", for_s=600)],
        budgets=(budget(max_unavailable=Share(0)),),
    )

    history, engine = played(plan)

    assert not history.ended
    assert history.times("drain unfinished") == [660]
    assert not engine.nodes["n0"].unschedulable


def test_an_eviction_that_two_budgets_concern_is_refused():
    budgets = (budget(min_available=Share(0)), replace(budget(min_available=Share(0)), name="b"))
    plan = plan_of(nodes_of(2), web_pods(1), events=[event_of("drain", 60, "n0")], budgets=budgets)

    history, _ = played(plan)

    assert "2 budgets" in history.notes[-1][3]
    assert not history.ended


@pytest.mark.parametrize(("others", "victim"), [(0, "other"), (1, "w0")])
def test_preemption_reads_the_budgets_as_they_are_at_the_time(others, victim):
    """The victim of lower priority is preferred, unless its budget allows no disruption."""
    pods = Pods(
        (
            (0, "w0", on_node("n0", 900, labels=WEB)),
            (0, "other", on_node("n1", 900, priority=1)),
            *((50, f"w{1 + i}", on_node("n2", 400, labels=WEB)) for i in range(others)),
            (100, "high", pod_facts(500, priority=10)),
        )
    )
    plan = plan_of(
        (*nodes_of(2), node_of("n2", cpu_milli=400)),
        pods,
        budgets=(budget(min_available=Share(1)),),
    )

    history, _ = played(plan)

    assert history.ended == {victim: (100, "preempted")}


def test_a_node_that_is_removed_during_its_drain_is_removed_once():
    plan = plan_of(
        nodes_of(2),
        Pods(((150, "a", on_node("x", labels=WEB)),)),
        events=[
            event_of("add", 100, for_s=200, nodes=(node_of("x"),)),
            event_of("remove", 500, "x", index=1),
        ],
        budgets=(budget(max_unavailable=Share(0)),),
    )

    history, _ = played(plan)

    assert history.noted("drained", "node removed") == [(500, "node removed", "x")]
    assert history.ended == {"a": (500, "lost")}
