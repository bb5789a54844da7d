"""The compiled form of a scenario: choices of nodes, times, names, the merge of arrivals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.node import HOSTNAME_LABEL, ZONE_LABEL, NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.facts.taints import Taint
from roadstead.manifests.names import unique_suffix
from roadstead.simulator.node_events import FailurePlan, NodeEventPlan, NodeTarget
from roadstead.simulator.scenario import (
    Arrival,
    ArrivalSource,
    CompiledScenario,
    ControllerKind,
    ControllerPlan,
    ControllerTimings,
    Limits,
    PodLifecycle,
    PodTemplatePlan,
    merge_arrivals,
)
from roadstead.simulator.share import Share
from roadstead.simulator.times import NEVER_US

HOUR_US = 3_600_000_000
FACTS = PodFacts()
LIFE = PodLifecycle()
NODES = tuple(
    NodeFacts(
        f"n{index}",
        ((HOSTNAME_LABEL, f"n{index}"), (ZONE_LABEL, f"zone-{index % 4}")),
        (("cpu", 8),),
    )
    for index in range(40)
)


@dataclass(frozen=True)
class FixedTimes:
    """A source that arrives at given times."""

    index: int
    times_us: tuple[int, ...]
    name: str = "fixed"

    def expected(self, horizon_us: int) -> tuple[float, float]:
        return float(len(self.times_us)), float(len(self.times_us))

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        for number, at_us in enumerate(self.times_us):
            name = f"{self.index}-{number}"
            yield Arrival(at_us, self.index, ((name, FACTS),), NEVER_US, LIFE)


def plan_of(*sources: ArrivalSource, horizon_us: int = HOUR_US) -> CompiledScenario:
    timings = ControllerTimings(50_000_000, 0.1, 0.01, 5_500, 50)
    return CompiledScenario(
        "test", NODES, horizon_us, HOUR_US, 0, timings, Limits(1, 1, 1), sources=sources
    )


@given(st.lists(st.lists(st.integers(0, 20)).map(sorted), max_size=4))
def test_merged_arrivals_are_in_time_order_with_ties_by_source(times: list[list[int]]) -> None:
    sources = [FixedTimes(index, tuple(each)) for index, each in enumerate(times)]

    merged = list(merge_arrivals(plan_of(*sources, horizon_us=15), 0))

    assert [(each.at_us, each.source) for each in merged] == sorted(
        (at_us, index) for index, each in enumerate(times) for at_us in each if at_us < 15
    )


def test_a_source_without_end_is_read_to_the_horizon_only() -> None:
    @dataclass(frozen=True)
    class EndlessTimes(FixedTimes):
        def arrivals(self, seed: int) -> Iterator[Arrival]:
            at_us = 0
            while True:
                yield Arrival(at_us, self.index, ((str(at_us), FACTS),), 1, LIFE)
                at_us += 10

    merged = merge_arrivals(plan_of(EndlessTimes(0, ()), EndlessTimes(1, ()), horizon_us=100), 0)

    assert [(each.at_us, each.source) for each in merged] == [
        (at_us, index) for at_us in range(0, 100, 10) for index in (0, 1)
    ]


def test_a_target_selects_the_nodes_that_meet_all_conditions() -> None:
    in_zone = LabelSelector((Requirement(ZONE_LABEL, "In", ("zone-1", "zone-2")),))

    def chosen(target: NodeTarget) -> set[str]:
        return set(target.choose(NODES, 0, "test"))

    assert chosen(NodeTarget()) == {node.name for node in NODES}
    assert chosen(NodeTarget(zone="zone-3")) == {f"n{index}" for index in range(3, 40, 4)}
    assert chosen(NodeTarget(names=("n1", "n3"), selector=in_zone)) == {"n1"}
    assert len(chosen(NodeTarget(share=Share(7)))) == 7
    assert len(chosen(NodeTarget(share=Share(700)))) == 40, "there are no more"
    assert len(chosen(NodeTarget(share=Share(basis_points=100)))) == 1, "1% of 40, rounded up"
    assert len(chosen(NodeTarget(zone="zone-9", share=Share(basis_points=5_000)))) == 0


def test_the_choice_depends_on_seed_event_and_occurrence_alone() -> None:
    event = NodeEventPlan(3, "drain", 0, HOUR_US, target=NodeTarget(share=Share(5)))

    first = event.chosen(NODES, 1, 0)

    assert first == event.chosen(NODES, 1, 0)
    assert first == tuple(sorted(first, key=lambda name: int(name[1:]))), "in the order of nodes"
    assert first != event.chosen(NODES, 2, 0)
    assert first != event.chosen(NODES, 1, 1)


def test_an_event_occurs_once_or_at_each_interval_before_its_end() -> None:
    def times(*args: int, **more: int) -> list[int]:
        return list(NodeEventPlan(0, "lose", *args, **more).times(100))

    assert times(30) == [30]
    assert times(0) == [0]
    assert times(100) == []
    assert times(10, 40) == [10, 50, 90]
    assert times(10, 40, until_us=90) == [10, 50]


def test_nodes_added_again_have_other_names() -> None:
    event = NodeEventPlan(0, "add", 0, 10, nodes=NODES[:2])

    assert event.added(0) == NODES[:2]
    assert [node.name for node in event.added(2)] == ["n0-2", "n1-2"]
    assert dict(event.added(2)[0].labels)[HOSTNAME_LABEL] == "n0-2"


def test_outages_of_a_node_follow_each_other_with_the_given_means() -> None:
    plan = FailurePlan(0, mtbf_us=90 * HOUR_US, mttr_us=4 * HOUR_US)

    outages = list(islice(plan.outages(7, "n1", 5 * HOUR_US), 2_000))

    ends = [5 * HOUR_US, *(end_us for _, end_us in outages)]
    up = [start_us - ends[index] for index, (start_us, _) in enumerate(outages)]
    down = [end_us - start_us for start_us, end_us in outages]
    assert min(up) > 0
    assert min(down) > 0
    assert sum(up) / len(up) / HOUR_US == pytest.approx(90, rel=0.1)
    assert sum(down) / len(down) / HOUR_US == pytest.approx(4, rel=0.1)
    assert outages == list(islice(plan.outages(7, "n1", 5 * HOUR_US), 2_000))
    assert outages[0] != next(plan.outages(7, "n2", 5 * HOUR_US))
    assert outages[0] != next(plan.outages(8, "n1", 5 * HOUR_US))


@given(st.integers(0, 30), st.integers(0, 10_000))
def test_a_share_is_rounded_as_asked(total: int, basis_points: int) -> None:
    share = Share(basis_points=basis_points)

    exact = total * basis_points / 10_000

    assert exact - 1 < share.of(total, rounds_up=False) <= exact + 1e-9
    assert exact - 1e-9 <= share.of(total, rounds_up=True) < exact + 1
    assert Share(3).of(total, rounds_up=True) == 3


def test_suffixes_of_a_controllers_pods_differ() -> None:
    suffixes = {unique_suffix(number) for number in range(200_000)}

    assert len(suffixes) == 200_000
    assert {len(each) for each in suffixes} == {5}
    assert len(unique_suffix(27**5)) == 6, "numbers beyond the fifth character"


def test_pods_of_controllers_of_one_name_have_different_names() -> None:
    templates = (PodTemplatePlan("web", FACTS, LIFE),)
    kinds: tuple[ControllerKind, ...] = ("ReplicaSet", "Deployment", "Job")
    plans = [ControllerPlan(0, kind, "default", "web", templates, 1) for kind in kinds]
    daemon = ControllerPlan(0, "DaemonSet", "default", "web", templates, 0)

    names = [plan.pod(0, number)[0] for plan in plans for number in range(1_000)]
    made = [daemon.pod_on_node(0, NODES[0], number) for number in range(1_000)]

    names += [each[0] for each in made if each is not None]
    assert len(set(names)) == 4_000


def test_a_stateful_sets_pods_have_ordinals_and_a_daemon_sets_pods_their_node() -> None:
    ordinals = (PodFacts(labels=(("i", "2"),)), PodFacts(labels=(("i", "3"),)))
    stateful = ControllerPlan(
        0,
        "StatefulSet",
        "default",
        "db",
        (PodTemplatePlan("db", FACTS, LIFE, ordinals),),
        2,
        first_ordinal=2,
    )
    daemon = ControllerPlan(
        1, "DaemonSet", "default", "agent", (PodTemplatePlan("agent", FACTS, LIFE),), 0
    )
    tainted = NodeFacts("t", taints=(Taint("gpu", "", "NoSchedule"),))

    assert stateful.pod(0, 3) == ("db-3", ordinals[1])
    assert daemon.pod_on_node(0, tainted, 0) is None
    made = daemon.pod_on_node(0, NODES[3], 0)
    assert made is not None
    name, facts = made
    assert name.startswith("agent-")
    (term,) = facts.required_node_terms or ()
    assert term.matches(dict(NODES[3].labels), "n3")
    assert not term.matches(dict(NODES[4].labels), "n4")
