"""The scenarios of `roadstead bench simulate`: what arrives, and that they can be played."""

from itertools import islice

import pytest

from roadstead.fleet.trace import TraceBuilder
from roadstead.scenario.bench_plans import (
    BENCH_PLANS,
    CLASSES,
    DAY_US,
    SECOND_US,
    PoissonSize,
    openb,
    poisson,
    small_pod,
    uniform_nodes,
    with_losses,
)
from tests.simulator.plays import played

TINY = PoissonSize(nodes=3, arrivals=50, life_us=5 * SECOND_US, horizon_us=100 * SECOND_US)


def arrived(plan, count):
    return [each.pods[0][1] for each in islice(plan.sources[0].arrivals(1), count)]


def test_arrivals_are_of_ten_classes_at_the_expected_rate():
    plan = poisson(TINY)

    assert plan.sources[0].expected(plan.horizon_us) == pytest.approx((50, 50))
    assert len({id(facts) for facts in arrived(plan, 500)}) == CLASSES


def test_distinct_pods_are_all_different_and_come_at_the_same_times():
    same, distinct = poisson(TINY), poisson(TINY, are_distinct=True)

    assert len(set(arrived(distinct, 2_000))) == 2_000
    times = [
        [each.at_us for each in islice(plan.sources[0].arrivals(1), 100)]
        for plan in (same, distinct)
    ]
    assert times[0] == times[1]
    assert distinct.sources[0].expected(DAY_US) == same.sources[0].expected(DAY_US)


@pytest.mark.parametrize("are_distinct", [False, True])
def test_every_pod_that_arrives_is_bound(are_distinct):
    heard, engine = played(poisson(TINY, are_distinct=are_distinct))

    assert engine.simulated_pods.created > 20
    assert len(heard.of("bound")) == engine.simulated_pods.created


def test_one_percent_of_the_nodes_is_lost_each_day_and_comes_back():
    (event,) = with_losses(poisson(TINY)).node_events

    assert [*event.times(3 * DAY_US + 1)] == [DAY_US, 2 * DAY_US, 3 * DAY_US]
    assert len(event.chosen(uniform_nodes(500), 1, 0)) == 5
    assert event.for_us > 0


def test_openb_is_played_with_its_own_times():
    builder = TraceBuilder("made", {"default": ()})
    for node in uniform_nodes(2):
        builder.add_node(node)
    shape = small_pod(1_000, 64)
    builder.add_pod("a", "a", shape, 10, 30)
    builder.add_pod("b", "b", shape, 20, -1)

    heard, _ = played(openb(builder.build()))

    assert [(row[0], row[2]) for row in heard.of("bound")] == [(10, "a"), (20, "b")]
    assert [(row[0], row[2]) for row in heard.of("done")] == [(30, "a")]


def test_names_are_unique_and_only_the_month_is_slow():
    names = [each.name for each in BENCH_PLANS]

    assert len(set(names)) == len(names)
    assert [each.name for each in BENCH_PLANS if each.is_slow] == ["month"]
