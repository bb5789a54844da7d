"""Lost nodes through the engine: when they are not ready, when their pods are evicted, zones."""

from dataclasses import replace

import pytest

from roadstead.simulator.node_events import FailurePlan, NodeTarget
from roadstead.simulator.scenario import PodLifecycle
from tests.simulator.fault_plans import (
    Pods,
    S,
    event_of,
    node_of,
    nodes_of,
    on_node,
    plan_of,
    played,
)


def lost(at_s=100, *names, **more):
    return event_of("lose", at_s, *names or ("n0",), **more)


# Lost nodes.


def test_a_lost_node_is_not_ready_after_the_grace_period_and_evicts_after_the_toleration():
    plan = plan_of(nodes_of(4), Pods(((0, "a", on_node("n0")),)), events=[lost()])

    history, engine = played(plan)

    # Passes are every 5 s: not ready at the first one later than 100 s + 40 s, queued one later.
    assert [each[:3] for each in history.notes] == [
        (100, "node lost", "n0"),
        (145, "node not ready", "n0"),
        (150, "eviction began", "n0"),
        (450, "pod evicted", "default/a"),
    ]
    assert [(each.key, each.effect) for each in engine.nodes["n0"].taints] == [
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    ]
    assert engine.pods["default/a"].state == "terminating", "nobody confirms its end"


def test_an_evicted_pod_of_a_lost_node_ends_as_lost_when_the_node_is_back():
    plan = plan_of(nodes_of(4), Pods(((0, "a", on_node("n0")),)), events=[lost(for_s=1_000)])

    history, engine = played(plan)

    assert history.ended == {"a": (1_100, "lost")}
    assert history.noted("node back", "node ready", "eviction ended") == [
        (1_100, "node back", "n0"),
        (1_100, "node ready", "n0"),
        (1_105, "eviction ended", "n0"),
    ]
    assert not engine.nodes["n0"].taints


def test_an_evicted_pod_of_a_lost_node_ends_as_lost_when_the_node_is_removed():
    events = [lost(), event_of("remove", 900, "n0", index=1)]
    plan = plan_of(nodes_of(4), Pods(((0, "a", on_node("n0")),)), events=events)

    history, engine = played(plan)

    assert history.ended == {"a": (900, "lost")}
    assert "n0" not in engine.nodes


@pytest.mark.parametrize("away_s", [20, 100, 300])
def test_a_pod_whose_node_is_back_in_time_runs_on_with_the_time_that_it_had_left(away_s):
    pods = Pods(((0, "a", on_node("n0")),), duration_us=200 * S)
    plan = plan_of(nodes_of(4), pods, events=[lost(for_s=away_s)])

    history, _ = played(plan)

    assert history.ended == {"a": (200 + away_s, "done")}
    assert not history.times("pod evicted")


def test_a_node_that_is_back_before_the_grace_period_is_never_not_ready():
    plan = plan_of(nodes_of(2), events=[lost(for_s=40)])

    history, _ = played(plan)

    assert history.noted("node not ready", "eviction began") == []


def test_a_pod_that_is_bound_to_a_lost_node_starts_when_the_node_is_back():
    pods = Pods(((110, "a", on_node("n0")),), duration_us=50 * S)
    plan = plan_of(nodes_of(2), pods, events=[lost(for_s=30)], start_delay_us=5 * S)

    history, _ = played(plan)

    life = history.lives["a"]
    assert (life.bound_us, life.started_us, life.ended_us) == (110 * S, 135 * S, 185 * S)


def test_a_pod_that_was_bound_before_its_node_was_lost_starts_a_start_delay_after_its_return():
    pods = Pods(((98, "a", on_node("n0")),), duration_us=50 * S)
    plan = plan_of(nodes_of(2), pods, events=[lost(for_s=5)], start_delay_us=10 * S)

    history, _ = played(plan)

    life = history.lives["a"]
    assert (life.bound_us, life.started_us, life.ended_us) == (98 * S, 115 * S, 165 * S)


def test_no_pod_is_bound_to_a_node_that_is_not_ready():
    pods = Pods(tuple((at_s, f"p{at_s}", on_node("n0", 10)) for at_s in range(100, 400, 10)))
    plan = plan_of(nodes_of(2), pods, events=[lost(for_s=200)])

    history, _ = played(plan)

    times = [at_s for at_s, _, _ in history.bound]
    assert [each for each in times if each < 300] == [100, 110, 120, 130, 140]
    assert len(times) == 30, "the others are bound when the node is back"


def test_a_pod_that_terminates_on_a_lost_node_stays_until_the_node_is_back():
    events = [event_of("drain", 90, "n0"), lost(100, for_s=500, index=1)]
    plan = plan_of(nodes_of(4), Pods(((0, "a", on_node("n0")),)), events=events)

    history, _ = played(plan)

    assert history.ended == {"a": (600, "evicted")}
    assert history.times("drained") == [600]


def test_a_pod_without_the_default_toleration_is_evicted_with_the_taint():
    pods = Pods(((0, "a", on_node("n0")),), lifecycle=PodLifecycle(()))
    plan = plan_of(nodes_of(4), pods, events=[lost()])

    history, _ = played(plan)

    assert history.times("pod evicted") == [150]


def test_a_node_that_two_events_lose_is_back_when_both_are_over():
    events = [lost(100, for_s=50), lost(120, for_s=100, index=1)]

    history, _ = played(plan_of(nodes_of(2), events=events))

    assert history.times("node lost") == [100]
    assert history.times("node back") == [220]


# Zones.


def lost_nodes(number, of, zones=1, **timings):
    """Lose nodes of the first zone; return when the eviction of each began."""
    names = [f"n{index}" for index in range(0, of * zones, zones)][:number]
    plan = plan_of(nodes_of(of * zones, zones), events=[lost(100, *names)])
    plan = replace(plan, timings=replace(plan.timings, **timings))
    return played(plan)[0]


def test_nodes_of_a_zone_are_evicted_at_the_eviction_rate():
    history = lost_nodes(4, of=10)

    assert history.times("node not ready") == [145] * 4
    assert history.times("eviction began") == [150, 160, 170, 180]


def test_no_node_of_a_small_unhealthy_zone_is_evicted():
    history = lost_nodes(6, of=10)

    assert history.noted("zone partially disrupted") == [(145, "zone partially disrupted", "z0")]
    assert not history.times("eviction began")


def test_nodes_of_a_large_unhealthy_zone_are_evicted_at_the_secondary_rate():
    history = lost_nodes(6, of=10, large_cluster_nodes=9)

    assert history.times("eviction began")[:3] == [150, 250, 350]


def test_two_of_three_nodes_do_not_make_a_zone_unhealthy():
    history = lost_nodes(2, of=3)

    assert not history.times("zone partially disrupted")
    assert history.times("eviction began") == [150, 160]


def test_a_lost_zone_is_evicted_at_the_full_rate_while_another_one_is_well():
    history = lost_nodes(5, of=5, zones=2)

    assert history.times("zone fully disrupted") == [145]
    assert history.times("eviction began") == [150, 160, 170, 180, 190]


def test_nothing_is_evicted_when_all_zones_are_lost():
    names = [f"n{index}" for index in range(6)]
    pods = Pods(tuple((0, f"p{index}", on_node(f"n{index}")) for index in range(6)))
    plan = plan_of(nodes_of(6, 2), pods, events=[lost(100, *names, for_s=2_000)])

    history, _ = played(plan)

    assert history.times("zone fully disrupted") == [145, 145]
    assert not history.times("eviction began")
    assert not history.ended


def test_evictions_stop_when_the_last_zone_is_lost_and_go_on_when_one_is_back():
    first, second = ("n0", "n2", "n4"), ("n1", "n3", "n5")
    events = [lost(100, *first), lost(200, *second, for_s=400, index=1)]
    pods = Pods(tuple((0, f"p{index}", on_node(f"n{index}")) for index in range(6)))

    history, _ = played(plan_of(nodes_of(6, 2), pods, events=events))

    assert history.times("eviction began")[:3] == [150, 160, 170]
    assert history.times("eviction ended") == [245] * 3, "when the second zone is not ready"
    # The nodes of the second zone are back at 600 s, the pass at 605 s finds their zone normal.
    assert history.times("eviction began")[3:] == [615, 625, 635]
    assert sorted(each[2] for each in history.noted("pod evicted")) == [
        "default/p0",
        "default/p2",
        "default/p4",
    ]


# Random failures.


def test_nodes_fail_and_are_repaired_at_the_times_of_the_plan():
    failures = FailurePlan(0, 1_000 * S, 100 * S, NodeTarget(names=("n0",)))
    plan = plan_of(nodes_of(3), failures=(failures,), horizon_s=20_000)
    outages = failures.outages(5, "n0", 0)
    expected = [next(outages) for _ in range(5)]

    history, _ = played(plan, seed=5)

    assert history.times("node lost")[:5] == [begin / S for begin, _ in expected]
    assert history.times("node back")[:5] == [end / S for _, end in expected]


def test_an_added_node_fails_from_its_addition_on():
    failures = FailurePlan(0, 500 * S, 10 * S, NodeTarget(zone="late"))
    event = event_of("add", 1_000, nodes=(node_of("x", "late"),))
    plan = plan_of(nodes_of(3), failures=(failures,), events=[event])

    history, _ = played(plan)

    assert history.times("node lost")[0] == next(failures.outages(0, "x", 1_000 * S))[0] / S
