"""The cores of node life one by one: budgets, tolerations, rates, marks, health, drains."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from weakref import WeakSet

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.pod import Owner, PodFacts, PodIdentity
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.facts.taints import Taint
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.simulator.nodes.budgets import Budgets, replicas_at
from roadstead.simulator.nodes.drains import Drains
from roadstead.simulator.nodes.eviction_rate import EvictionRate, ZoneState, zone_rate, zone_state
from roadstead.simulator.nodes.health import NodeHealth, TaintAction, TaintChange
from roadstead.simulator.nodes.marks import NodeMarks
from roadstead.simulator.nodes.taint_evictions import TaintEvictions, tolerated_us
from roadstead.simulator.scenario import (
    BudgetPlan,
    ControllerChange,
    ControllerPlan,
    InitialPod,
    PodLifecycle,
    PodTemplatePlan,
    TimedToleration,
)
from roadstead.simulator.share import Share
from roadstead.simulator.simulated_pods import LifeState, SimulatedPod
from roadstead.simulator.times import NEVER_US
from tests.simulator.fault_plans import TIMINGS, S, node_of, pod_facts

WEB = (("app", "web"),)
WEB_FACTS = PodFacts(labels=WEB)
OF_WEB = LabelSelector((Requirement("app", "In", ("web",)),))
HALF = Share(basis_points=5_000)


def life_of(name, facts=WEB_FACTS, state=LifeState.RUNNING, no_execute=()):
    identity = PodIdentity(f"default/{name}", "default", name)
    return SimulatedPod(
        0, identity, facts, 0, 0, -1, NEVER_US, 0, state=state, node="n0", no_execute=no_execute
    )


def controller(kind="Deployment", replicas=5, **more):
    template = PodTemplatePlan("web", WEB_FACTS, PodLifecycle())
    return ControllerPlan(0, kind, "default", "web", (template,), replicas, **more)


def allowed(plan, healthy, *controllers, pods=(), now_us=0):
    budgets = Budgets([plan], controllers, pods)
    for number in range(healthy):
        budgets.count(life_of(f"p{number}"), is_node_ready=True)
    (found,) = budgets.recount(now_us) or ()
    return found.disruptions_allowed


def budget(selector=OF_WEB, **shares):
    return BudgetPlan("default", "web", selector, **shares)


# Budgets.


@pytest.mark.parametrize(
    ("shares", "healthy", "expected"),
    [
        ({"min_available": Share(3)}, 5, 2),
        ({"min_available": Share(3)}, 3, 0),
        ({"min_available": Share(3)}, 1, 0),
        ({"max_unavailable": Share(2)}, 5, 2),
        ({"max_unavailable": Share(2)}, 4, 1),
        ({"max_unavailable": Share(9)}, 2, 2),
        # Half of 5 replicas is rounded up to 3, both as available and as unavailable.
        ({"min_available": HALF}, 5, 2),
        ({"max_unavailable": HALF}, 5, 3),
        ({}, 5, 0),
    ],
)
def test_disruptions_are_allowed_by_healthy_pods_and_replicas(shares, healthy, expected):
    assert allowed(budget(**shares), healthy, controller()) == expected


def test_a_share_of_pods_without_a_controller_allows_nothing():
    assert allowed(budget(max_unavailable=Share(2)), 5) == 0
    assert allowed(budget(min_available=HALF), 5) == 0
    assert allowed(budget(min_available=Share(2)), 5) == 3


@pytest.mark.parametrize("kind", ["Job", "DaemonSet"])
def test_a_share_allows_nothing_with_controllers_that_have_no_replicas(kind):
    both = controller(), controller(kind)

    assert allowed(budget(max_unavailable=Share(2)), 5, *both) == 0
    assert allowed(budget(min_available=Share(2)), 5, *both) == 3


def test_the_owners_of_pods_at_the_start_have_as_many_replicas_as_pods():
    def initial(kind, name):
        facts = replace(WEB_FACTS, owner=Owner(kind, "web", "uid"))
        return InitialPod(PodIdentity(name, "default", name), facts, "n0", PodLifecycle())

    sets = [initial("ReplicaSet", f"p{number}") for number in range(4)]

    assert allowed(budget(max_unavailable=Share(1)), 4, pods=sets) == 1
    assert allowed(budget(max_unavailable=Share(1)), 3, pods=sets) == 0
    assert allowed(budget(max_unavailable=Share(1)), 4, pods=[*sets, initial("Job", "j")]) == 0


def test_replicas_follow_the_changes_of_their_controller():
    changes = ControllerChange(20, 8), ControllerChange(25, template=1), ControllerChange(30, 2)
    plan = controller(created_us=10, deleted_us=40, changes=changes)

    times = (0, 10, 20, 29, 30, 39, 40)
    assert [replicas_at(plan, at_us) for at_us in times] == [None, 5, 8, 8, 2, 2, None]
    assert allowed(budget(max_unavailable=Share(1)), 8, plan, now_us=20) == 1
    assert sorted(Budgets([budget()], [plan]).change_times_us()) == [10, 20, 30, 40]


def test_a_pod_counts_while_it_runs_on_a_node_that_is_ready():
    budgets, life = Budgets([budget(min_available=Share(0))]), life_of("p")
    seen = []
    for state, is_ready in (
        (LifeState.BOUND, True),
        (LifeState.RUNNING, True),
        (LifeState.RUNNING, False),
        (LifeState.RUNNING, True),
        (LifeState.TERMINATING, True),
    ):
        life.state = state
        budgets.count(life, is_node_ready=is_ready)
        found = budgets.recount(0)
        seen.append(None if found is None else found[0].disruptions_allowed)

    assert seen == [0, 1, 0, 1, 0]
    assert budgets.recount(0) is None, "nothing changed"


def test_labels_of_former_pods_are_not_kept_without_bound(monkeypatch):
    class Value(str):
        """A text to which there can be weak references."""

    monkeypatch.setattr("roadstead.simulator.nodes.budgets.MAX_CACHED_LABELS", 2)
    budgets = Budgets([budget(min_available=Share(1))])
    kept = WeakSet()
    for number in range(7):
        value = Value(number)
        kept.add(value)
        facts = PodFacts(labels=(*WEB, ("index", value)))
        budgets.count(life_of(f"p{number}", facts), is_node_ready=True)
        del value, facts

    assert len(kept) <= 2
    (found,) = budgets.recount(0)
    assert found.disruptions_allowed == 6


def test_evictions_are_refused_for_running_pods_only():
    budgets = Budgets([budget(min_available=Share(1))])
    pods = [life_of("a"), life_of("b"), life_of("sick"), life_of("new", state=LifeState.BOUND)]
    for life in pods:
        budgets.count(life, is_node_ready=life.identity.name != "sick")

    def refused():
        return [life.identity.name for life in pods if budgets.refusal(life, 0)]

    assert refused() == []
    budgets.count_evicted(pods[0])
    assert refused() == ["b"], "a pod that is not healthy may go while enough others are"
    assert budgets.refusal(pods[1], 0) == "budget default/web needs 1 healthy pods and has 1"
    budgets.count_evicted(pods[1])
    assert refused() == ["a", "b", "sick"]


def test_an_empty_selector_selects_the_namespace_and_none_selects_nothing():
    everything, nothing = (
        Budgets([budget(selector, min_available=Share(9))]) for selector in (LabelSelector(), None)
    )

    assert everything.refusal(life_of("a", PodFacts()), 0)
    assert not everything.refusal(life_of("a", PodFacts(namespace="other")), 0)
    assert not nothing.refusal(life_of("a"), 0)


# Taints.


def timed(key, time_us, operator="Exists", value=""):
    return TimedToleration(key, operator, value, time_us)


A, B = Taint("a", "1", "NoExecute"), Taint("b", "", "NoExecute")


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ((), 0),
        ((timed("a", 5),), 0),
        ((timed("a", 5), timed("b", 3)), 3),
        ((timed("a", 5), timed("b", NEVER_US)), 5),
        ((timed("", NEVER_US),), NEVER_US),
        # The first matching toleration counts, even if a later one has a shorter time.
        ((timed("", 9), timed("b", 3)), 9),
        ((timed("a", 5, "Equal", "1"), timed("b", 7)), 5),
        ((timed("a", 5, "Equal", "2"), timed("b", 7)), 0),
    ],
)
def test_taints_are_tolerated_for_the_shortest_time_of_the_first_matches(tolerations, expected):
    assert tolerated_us(tolerations, (A, B)) == expected


def test_a_planned_eviction_keeps_its_time_until_it_is_cancelled():
    core, life = TaintEvictions(), life_of("p", no_execute=(timed("a", 50), timed("b", 10)))

    (first,) = core.plan_evictions([life], (A,), 100)
    assert (first.uid, first.at_us) == (life.uid, 150)
    assert not list(core.plan_evictions([life], (A, B), 120)), "as upstream, though b allows 10"
    assert core.pop_due(life.uid, 149) is None
    assert not list(core.plan_evictions([life], (), 140))
    assert core.pop_due(life.uid, 150) is None, "the taints are gone"
    (second,) = core.plan_evictions([life], (B,), 160)
    assert core.pop_due(life.uid, 170) is second
    assert core.pop_due(life.uid, 170) is None


# Rates.


@pytest.mark.parametrize(
    ("nodes", "not_ready", "expected"),
    [
        (100, 54, ZoneState.NORMAL),
        (100, 55, ZoneState.PARTIAL_DISRUPTION),
        (3, 2, ZoneState.NORMAL),
        (4, 3, ZoneState.PARTIAL_DISRUPTION),
        (1, 1, ZoneState.FULL_DISRUPTION),
        (100, 100, ZoneState.FULL_DISRUPTION),
    ],
)
def test_the_state_of_a_zone_follows_from_its_nodes(nodes, not_ready, expected):
    assert zone_state(nodes, not_ready, TIMINGS) is expected


def test_the_rate_of_a_zone_follows_from_its_state_and_size():
    assert zone_rate(ZoneState.NORMAL, 10, TIMINGS) == 0.1
    assert zone_rate(ZoneState.FULL_DISRUPTION, 10, TIMINGS) == 0.1
    assert zone_rate(ZoneState.PARTIAL_DISRUPTION, 50, TIMINGS) == 0
    assert zone_rate(ZoneState.PARTIAL_DISRUPTION, 51, TIMINGS) == 0.01


@given(st.lists(st.integers(0, 200).map(lambda each: each * S), max_size=50).map(sorted))
def test_nodes_are_accepted_at_the_rate_and_no_faster(asked_us):
    rate, accepted = EvictionRate(0.1), []
    for at_us in asked_us:
        if rate.accept(at_us):
            accepted.append(at_us)

    assert all(later - earlier >= 10 * S for earlier, later in pairwise(accepted))
    assert accepted[:1] == asked_us[:1]


def test_another_rate_begins_full_only_if_the_old_one_was():
    full, empty, stopped = EvictionRate(0.1), EvictionRate(0.1), EvictionRate(0.0)
    assert empty.accept(0)
    for rate in (full, empty, stopped):
        rate.change(0.01, S)

    assert [each.next_us(S) for each in (full, empty, stopped)] == [S, 101 * S, 101 * S]
    full.change(0.0, 2 * S)
    assert full.next_us(2 * S) is None


# Marks.


def test_marks_end_with_their_causes_in_any_order():
    marks, own = NodeMarks(), Taint("k", "own", "NoSchedule")
    node = node_of("n", taints=(own,))
    marks.add(node)

    assert marks.cordon("n", ("x",)) == replace(node, unschedulable=True)
    assert marks.cordon("n", ("y",)) is None
    assert marks.remove_marks("n", ("x",)) is None
    other = marks.taint("n", ("y",), Taint("k", "new", "NoSchedule"))
    assert other is not None
    assert other.taints == (Taint("k", "new", "NoSchedule"),)
    assert marks.remove_marks("n", ("y",)) == node
    assert marks.remove_marks("n", ("y",)) is None
    assert marks.cordon("gone", ("x",)) is None


# Health.


def test_illegal_events_of_a_node_change_nothing():
    health = NodeHealth(TIMINGS)
    health.add(node_of("n", "z"))
    health.stop("n", 0)

    with pytest.raises(IllegalTransitionError, match="stop is not allowed in state silent"):
        health.stop("n", 1)
    assert list(health.answer("n")) == []
    with pytest.raises(IllegalTransitionError):
        list(health.answer("n"))
    health.validate()


def test_nothing_is_due_when_all_is_known_of_a_lost_node():
    health = NodeHealth(TIMINGS)
    for name in ("a", "b", "c"):
        health.add(node_of(name, "z"))
    health.stop("a", 0)
    found, now_us = [], 0
    while (next_us := health.next_us(now_us)) is not None:
        now_us = next_us
        found += health.advance(now_us)
        health.validate()

    assert found == [
        TaintChange(TaintAction.ADD_NO_SCHEDULE, "a"),
        TaintChange(TaintAction.ADD_NO_EXECUTE, "a"),
    ]
    assert now_us == 50 * S
    assert list(health.answer("a")) == [TaintChange(TaintAction.REMOVE_NO_SCHEDULE, "a")]
    assert health.advance(health.next_us(70 * S) or 0) == [
        TaintChange(TaintAction.REMOVE_NO_EXECUTE, "a")
    ]


def test_a_zone_that_is_new_after_a_total_loss_evicts_again():
    health = NodeHealth(TIMINGS)
    health.add(node_of("a", "z"))
    health.stop("a", 0)
    for at_s in range(5, 60, 5):
        health.advance(at_s * S)
    health.drop("a")
    health.advance(60 * S)
    for name in ("b", "c"):
        health.add(node_of(name, "z"))
    health.stop("b", 60 * S)

    found = [each for at_s in range(65, 160, 5) for each in health.advance(at_s * S)]

    assert TaintChange(TaintAction.ADD_NO_EXECUTE, "b") in found


def test_an_excluded_node_does_not_count_for_its_zone():
    health, excluded = NodeHealth(TIMINGS), node_of("x", "z")
    labels = (*excluded.labels, ("node.kubernetes.io/exclude-disruption", ""))
    health.add(replace(excluded, labels=labels))
    health.add(node_of("a", "z"))
    health.stop("x", 0)

    found = [each for at_s in range(5, 60, 5) for each in health.advance(at_s * S)]

    assert found == [
        TaintChange(TaintAction.ADD_NO_SCHEDULE, "x"),
        TaintChange(TaintAction.ADD_NO_EXECUTE, "x"),
    ]


# Drains.


def test_refused_evictions_are_tried_again_every_five_seconds_from_the_beginning():
    drains = Drains()
    drain = drains.begin("n", ("x",), ["a", "b"], 2 * S, removes_node=False)

    first = drains.try_evictions(drain, {"a": "", "b": "no"}.get, 2 * S)
    again = drains.try_evictions(drain, {"b": "no"}.get, 7 * S)

    assert (first.evicted, first.refused) == (("a",), (("b", "no"),))
    assert (again.evicted, again.refused) == ((), ()), "a refusal is noted once"
    assert drains.refused_drains() == [drain]
    assert [drain.next_try_us(at_s * S) for at_s in (7, 8, 12, 13)] == [
        12 * S,
        12 * S,
        12 * S,
        17 * S,
    ]


def test_a_drain_is_done_when_the_last_pod_has_ended():
    drains = Drains()
    drain = drains.begin("n", ("x",), ["a", "b"], 0, removes_node=False)
    other = drains.begin("n", ("y",), ["b"], 0, removes_node=False)
    drains.try_evictions(drain, {"a": "", "b": None}.get, 0)

    assert drains.pod_ended("a") == []
    assert drains.pod_ended("b") == [drain, other]
    drains.end(drain)
    drains.drop_node("n")
    assert drains.get("n", ("y",)) is None


def test_a_pod_of_two_labels_counts_for_budgets_of_both():
    facts = pod_facts(labels=(("app", "web"), ("tier", "front")))
    front = LabelSelector((Requirement("tier", "In", ("front",)),))
    budgets = Budgets([budget(min_available=Share(0)), budget(front, min_available=Share(0))])
    budgets.count(life_of("p", facts), is_node_ready=True)

    assert [each.disruptions_allowed for each in budgets.recount(0) or ()] == [1, 1]
