"""The fleet lab and inline actors place the same pods, given all at once and one by one."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache

import pytest

from roadstead.cycle.batch import CompiledKernel
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Pod, PodAffinityTerm, PodFacts, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.facts.taints import Taint
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.run import RunPlan
from roadstead.simulator.virtual_cluster import VirtualCluster
from tests.actors.world import identity, inputs_of, plan_of, run_inline
from tests.builders import node, pod, require

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
LATEST_S = 60.0
"""Backoffs are over by then, and the flush of pods that wait for long has not begun."""

STEP_S = 100.0
"""Between two pods that arrive one by one."""

Evictions = set[tuple[str, str]]
"""(UID of the victim, key of its preemptor)."""


@dataclass
class World:
    """A random fleet with little room. running: pods of low priority, on their nodes."""

    nodes: list[NodeFacts]
    running: list[tuple[Pod, str]]
    pending: list[Pod]


@dataclass
class Result:
    nodes: dict[str, str]
    evicted: Evictions = field(default_factory=set)


def world_of(seed: int, pods: int) -> World:
    draw = random.Random(seed)
    nodes = [
        node(
            f"n{number}",
            cpu=draw.choice((2000, 3000, 4000)),
            labels={ZONE: f"z{number % 3}", HOST: f"n{number}"},
            taints=(Taint("dirty", "", draw.choice(("NoSchedule", "PreferNoSchedule"))),)
            if draw.random() < 0.2
            else (),
        )
        for number in range(8)
    ]
    low = pod(cpu=800, labels={"app": "low"}, priority=0)
    running = [
        ((identity(f"low-{each.name}-{number}"), low), each.name)
        for each in nodes
        for number in range(draw.choice((0, 1, 2)))
    ]
    drawn = [facts_of(draw) for _ in range(pods)]
    # In the order of the queue, so that no pod of the list preempts another one.
    drawn.sort(key=lambda facts: -facts.priority)
    return World(nodes, running, [(identity(f"p{k}"), each) for k, each in enumerate(drawn)])


def facts_of(draw: random.Random) -> PodFacts:
    app = draw.choice(("a", "b"))
    labels = {"app": app}
    same = LabelSelector((require("app", "In", app),))
    cpu, priority = draw.choice((100, 500, 900, 1700)), draw.choice((0, 0, 10))
    kind = draw.choice(("plain", "plain", "spread", "apart"))
    if kind == "spread":
        evenly = SpreadConstraint(ZONE, 1, "DoNotSchedule", same, 1, "Honor", "Ignore", ())
        return pod(cpu=cpu, priority=priority, labels=labels, spread_constraints=(evenly,))
    if kind == "apart":
        term = PodAffinityTerm(HOST, same, ("default",), None)
        return pod(cpu=cpu, priority=priority, labels=labels, pod_anti_affinity=(term,))
    return pod(cpu=cpu, priority=priority, labels=labels)


@cache
def kernel() -> CompiledKernel:
    return CompiledKernel(load(), DecisionCounts())


class Lab:
    """The cluster of a simulated run, as the engine drives it."""

    def __init__(self, world: World, plan: RunPlan) -> None:
        self.cluster = VirtualCluster(plan, kernel())
        self.cluster.add_nodes(world.nodes)
        self.cluster.add_running(
            [each for each, _ in world.running], [on for _, on in world.running]
        )
        self.evicted: Evictions = set()

    def arrive(self, pods: list[Pod], at_s: float) -> None:
        """Submit pods, and decide until nothing happens before LATEST_S."""
        if len(pods) > 1 or self.cluster.place(pods[0], at_s) is None:
            self.cluster.submit(pods, at_s)
        now_s: float | None = at_s
        while now_s is not None and now_s <= at_s + LATEST_S:
            self.cluster.run(now_s)
            self.evicted.update(self.cluster.pop_evicted())
            now_s = self.cluster.next_wakeup_s()

    def result(self, pods: list[Pod]) -> Result:
        nodes = {who.uid: self.cluster.node_of(who.uid) for who, _ in pods}
        return Result({uid: on for uid, on in nodes.items() if on}, self.evicted)


def on_actors(world: World, plan: RunPlan) -> Result:
    outcome, _ = run_inline(
        inputs_of(world.nodes, world.pending, [(*each, on) for each, on in world.running]), plan
    )
    evicted = {(each.uid, each.preemptor) for each in outcome.preempted}
    return Result({each.uid: each.node for each in outcome.placements}, evicted)


@pytest.mark.parametrize("batch", [1, 16])
@pytest.mark.parametrize("seed", range(54_040_000, 54_040_006))
def test_pods_that_are_given_at_once(seed: int, batch: int) -> None:
    world, plan = world_of(seed, 24), plan_of(batch=batch, seed=seed)

    lab = Lab(world, plan)
    lab.arrive(world.pending, 0.0)

    found = lab.result(world.pending)
    assert found == on_actors(world, plan)
    assert len(found.nodes) < len(world.pending), "some pods do not fit"


@pytest.mark.parametrize("seed", range(54_050_000, 54_050_003))
def test_pods_that_are_given_one_by_one(seed: int) -> None:
    """Each run of actors continues where the one before ended; the lab plays on."""
    world, plan = world_of(seed, 12), plan_of(seed=seed)
    lab = Lab(world, plan)
    facts = dict(world.pending) | {who: each for (who, each), _ in world.running}
    of_uid = {who.uid: (who, each) for who, each in facts.items()}
    running = {who.uid: on for (who, _), on in world.running}
    evicted: Evictions = set()
    waiting: list[Pod] = []
    for number, arriving in enumerate(world.pending):
        lab.arrive([arriving], number * STEP_S)

        now = World(
            world.nodes, [(of_uid[uid], on) for uid, on in running.items()], [*waiting, arriving]
        )
        result = on_actors(now, plan)

        running |= result.nodes
        for uid, _ in result.evicted:
            del running[uid]
        evicted |= result.evicted
        waiting = [each for each in now.pending if each[0].uid not in running]
        pods = world.pending[: number + 1]
        expected = {who.uid: running[who.uid] for who, _ in pods if who.uid in running}
        assert lab.result(pods) == Result(expected, evicted), f"after {arriving[0].name}"


def test_the_worlds_preempt() -> None:
    plan = plan_of(batch=16)
    evicted = []
    for seed in range(54_040_000, 54_040_006):
        world = world_of(seed, 24)
        lab = Lab(world, plan)
        lab.arrive(world.pending, 0.0)
        evicted += sorted(lab.evicted)

    assert len(evicted) > 3, "this world needs preemption"
