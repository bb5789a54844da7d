"""Random faults of nodes: what holds whatever fails when, and that a seed gives one history."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.cycle.batch import CompiledKernel
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.facts.taints import Taint
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.simulator.component import Commands, Component, WakeAt
from roadstead.simulator.node_events import FailurePlan, NodeEventPlan, NodeTarget
from roadstead.simulator.nodes.component import UNREACHABLE
from roadstead.simulator.scenario import BudgetPlan, CompiledScenario, DecisionDelay, PodLifecycle
from roadstead.simulator.share import Share
from roadstead.simulator.times import NEVER_US
from tests.simulator.fault_plans import (
    DEFAULTED,
    LIFECYCLE,
    History,
    Pods,
    S,
    node_of,
    nodes_of,
    plan_of,
    played,
    pod_facts,
    tolerating,
    tolerations,
)

APPS = ("web", "db")
ACTIONS = ("lose", "lose", "drain", "drain", "cordon", "taint", "add", "remove")
CHECKED_EVERY_US = 37 * S
HORIZON_S = 3_000


class Checks(Component):
    """Checks the invariants of the run now and then."""

    def __init__(self, history: Watched) -> None:
        self._history = history

    def begin(self) -> Commands:
        return self.wake(())

    def wake(self, key: tuple[str | int, ...]) -> Commands:
        self._history.engine.validate()
        self._history.node_life.validate()
        return (WakeAt(self._history.engine.now_us + CHECKED_EVERY_US, ()),)


@dataclass
class Watched(History):
    """A history that checks each bind and each eviction by a recount of its own.

    broken: the rules that were broken, each as a sentence. not_ready: nodes whose pods are not
    ready.
    """

    broken: list[str] = field(default_factory=list)
    doomed: set[str] = field(default_factory=set)
    not_ready: set[str] = field(default_factory=set)
    drained: int = 0

    def bound_to(self, now_us, life):
        node = self.engine.nodes.get(life.node)
        if node is None:
            self.broken.append(f"{life.uid} is bound to {life.node}, which is gone")
        elif node.unschedulable:
            self.broken.append(f"{life.uid} is bound to {life.node}, which is cordoned")
        elif is_unreachable(node):
            self.broken.append(f"{life.uid} is bound to {life.node}, which is not ready")
        super().bound_to(now_us, life)

    def note(self, now_us, note):
        super().note(now_us, note)
        # Pods of a node that is back are ready immediately; its taint stays until the next check.
        if note.what == "node not ready":
            self.not_ready.add(note.subject)
        elif note.what == "node ready":
            self.not_ready.discard(note.subject)
        if note.what == "pod evicted":
            self._check_budgets(note)
            self.doomed.add(note.subject)

    def _check_budgets(self, note):
        labels = dict(self.engine.pods[note.subject].facts.labels)
        is_voluntary = note.detail.endswith("for its drain")
        is_running = self.engine.pods[note.subject].state == "running"
        self.drained += is_voluntary
        self.doomed.add(note.subject)
        for budget in self.engine.scenario.budgets:
            if is_voluntary and is_running and budget.selector.matches(labels):
                healthy = sum(
                    life.state == "running"
                    and life.uid not in self.doomed
                    and life.node not in self.not_ready
                    and budget.selector.matches(dict(life.facts.labels))
                    for life in self.engine.pods.values()
                )
                needed = budget.min_available.count
                if healthy < needed:
                    self.broken.append(f"{note.subject}: {healthy} left, {needed} needed")


def is_unreachable(node):
    return any(each.key == UNREACHABLE for each in node.taints)


def times(most_s):
    return st.integers(1, most_s).map(lambda at_s: at_s * S)


TARGETS = st.one_of(
    st.sampled_from(["z0", "z1"]).map(lambda zone: NodeTarget(zone=zone)),
    st.integers(1, 4).map(lambda count: NodeTarget(share=Share(count))),
    st.just(NodeTarget()),
)


@st.composite
def node_events(draw, index):
    action = draw(
        st.sampled_from(["lose", "lose", "drain", "drain", "cordon", "taint", "add", "remove"])
    )
    every_us = draw(st.sampled_from([0, 0, 700 * S]))
    for_us = NEVER_US if action == "remove" else draw(st.one_of(st.just(NEVER_US), times(699)))
    target = draw(TARGETS)
    if action == "remove":
        target = NodeTarget(share=Share(1))
    effect = draw(st.sampled_from(["NoSchedule", "NoExecute"]))
    return NodeEventPlan(
        index,
        action,
        draw(times(HORIZON_S - 1)),
        every_us,
        for_us,
        target=target,
        nodes=(node_of(f"x{index}", "z0"),) if action == "add" else (),
        taint=Taint("dirty", "", effect) if action == "taint" else None,
    )


@st.composite
def sources(draw, index):
    facts = pod_facts(
        draw(st.sampled_from([100, 300])),
        labels=(("app", draw(st.sampled_from(APPS))),),
        priority=draw(st.sampled_from([0, 0, 10])),
        tolerations=draw(st.sampled_from([(), tolerations("dirty")])),
    )
    lifecycle = draw(
        st.sampled_from(
            [
                LIFECYCLE,
                PodLifecycle((), 0),
                PodLifecycle(DEFAULTED, 70 * S),
                tolerating("dirty", 90),
            ]
        )
    )
    at = sorted(draw(st.lists(st.integers(0, HORIZON_S - 1), max_size=15)))
    pods = tuple((at_s, f"p{index}-{number}", facts) for number, at_s in enumerate(at))
    duration_us = draw(st.one_of(st.just(NEVER_US), times(1_500)))
    return Pods(pods, duration_us, lifecycle, index)


@st.composite
def plans(draw) -> CompiledScenario:
    number = draw(st.integers(2, 7))
    budgets = [
        BudgetPlan(
            "default",
            app,
            LabelSelector((Requirement("app", "In", (app,)),)),
            min_available=Share(draw(st.integers(0, 6))),
        )
        for app in draw(st.lists(st.sampled_from(APPS), unique=True))
    ]
    failures = [FailurePlan(0, 900 * S, 200 * S, NodeTarget(zone="z1"))] * draw(st.integers(0, 1))
    return plan_of(
        nodes_of(number, 2),
        *(draw(sources(index)) for index in range(draw(st.integers(1, 4)))),
        events=[draw(node_events(index)) for index in range(draw(st.integers(0, 4)))],
        failures=tuple(failures),
        budgets=tuple(budgets),
        horizon_s=HORIZON_S,
        start_delay_us=draw(st.sampled_from([0, 3 * S])),
    )


def watched(plan, seed, compiled_kernel=None):
    history = Watched()
    return played(
        plan, Checks(history), seed=seed, compiled_kernel=compiled_kernel, history=history
    )[0]


@settings(max_examples=60, deadline=None)
@given(plans(), st.integers(0, 3))
def test_binds_and_evictions_keep_the_rules_under_any_failure(plan, seed):
    history = watched(plan, seed)

    assert history.broken == [], "binds to usable nodes, and drains within the budgets"


@pytest.fixture(scope="module")
def compiled_kernel():
    return CompiledKernel(load(), DecisionCounts())


@settings(max_examples=25, deadline=None)
@given(plans(), st.integers(0, 3))
def test_a_seed_gives_one_history_with_and_without_the_kernel(compiled_kernel, plan, seed):
    first, second = watched(plan, seed), watched(plan, seed)
    compiled = watched(plan, seed, compiled_kernel)

    assert first.broken == compiled.broken == []
    assert first.notes == second.notes
    assert (first.bound, first.ended) == (second.bound, second.ended)
    assert first.notes == compiled.notes
    assert (first.bound, first.ended) == (compiled.bound, compiled.ended)


@settings(max_examples=25, deadline=None)
@given(plans(), st.integers(0, 3), st.sampled_from([1, 20, 200]))
def test_decisions_that_take_time_give_one_history_with_and_without_the_kernel(
    compiled_kernel, plan, seed, pod_s
):
    delayed = replace(plan, decision=DecisionDelay(pod_us=pod_s * S))

    submitted, placed = watched(delayed, seed), watched(delayed, seed, compiled_kernel)

    assert submitted.notes == placed.notes
    assert (submitted.bound, submitted.ended) == (placed.bound, placed.ended)
