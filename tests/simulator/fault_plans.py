"""Small plans with faults of nodes, and a recorder whose records tests compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from roadstead.cycle.batch import CompiledKernel
from roadstead.facts.node import HOSTNAME_LABEL, ZONE_LABEL, NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.taints import Toleration
from roadstead.simulator.component import Component, Note
from roadstead.simulator.engine import Engine
from roadstead.simulator.node_events import NodeEventPlan, NodeTarget
from roadstead.simulator.nodes.component import UNREACHABLE, NodeLifecycle
from roadstead.simulator.play import Variant, build_engine, delay_of
from roadstead.simulator.scenario import (
    Arrival,
    CompiledScenario,
    ControllerTimings,
    Limits,
    PodLifecycle,
    TimedToleration,
)
from roadstead.simulator.simulated_pods import SimulatedPod
from roadstead.simulator.times import NEVER_US

S = 1_000_000
TIMINGS = ControllerTimings(40 * S, 0.1, 0.01, 5_500, 50)
DEFAULTED = tuple(
    TimedToleration(key, "Exists", "", 300 * S)
    for key in ("node.kubernetes.io/not-ready", UNREACHABLE)
)
LIFECYCLE = PodLifecycle(DEFAULTED, 30 * S)


def node_of(name, zone="", *, cpu_milli=1_000, **facts):
    labels = ((HOSTNAME_LABEL, name), *(((ZONE_LABEL, zone),) if zone else ()))
    return NodeFacts(name, labels, (("cpu", cpu_milli),), 110, **facts)


def nodes_of(number, zones=1):
    return tuple(node_of(f"n{index}", f"z{index % zones}") for index in range(number))


def pod_facts(cpu_milli=100, labels=(), **facts):
    return PodFacts(
        labels=labels, requests=(("cpu", cpu_milli),), nonzero_cpu_milli=cpu_milli, **facts
    )


def on_node(name, cpu_milli=100, **facts):
    """Facts of a pod that fits on one node alone."""
    return pod_facts(cpu_milli, node_selector=((HOSTNAME_LABEL, name),), **facts)


@dataclass(frozen=True)
class Pods:
    """A source: (time in seconds, name, facts) each, with one duration and lifecycle for all."""

    pods: tuple[tuple[int, str, PodFacts], ...]
    duration_us: int = NEVER_US
    lifecycle: PodLifecycle = LIFECYCLE
    index: int = 0
    name: str = "pods"

    def expected(self, horizon_us: int) -> tuple[float, float]:
        return float(len(self.pods)), float(len(self.pods))

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        for at_s, name, facts in self.pods:
            yield Arrival(at_s * S, self.index, ((name, facts),), self.duration_us, self.lifecycle)


def plan_of(
    nodes, *sources, horizon_s=3_600, events=(), start_delay_us=0, **parts: Any
) -> CompiledScenario:
    return CompiledScenario(
        "test",
        tuple(nodes),
        horizon_s * S,
        0,
        start_delay_us,
        parts.pop("timings", TIMINGS),
        Limits(1_000_000, 1_000_000, 1 << 40),
        sources=sources,
        node_events=tuple(events),
        **parts,
    )


def event_of(action, at_s, *names, for_s=None, index=0, **more: Any) -> NodeEventPlan:
    """An event that concerns the named nodes, or the target that is given."""
    return NodeEventPlan(
        index,
        action,
        at_s * S,
        for_us=NEVER_US if for_s is None else for_s * S,
        target=more.pop("target", NodeTarget(names=names)),
        **more,
    )


@dataclass
class History:
    """Recorded events: (seconds, event, subject, detail), and the pods that tests ask for."""

    notes: list[tuple[float, str, str, str]] = field(default_factory=list)
    ended: dict[str, tuple[float, str]] = field(default_factory=dict)
    bound: list[tuple[float, str, str]] = field(default_factory=list)
    lives: dict[str, SimulatedPod] = field(default_factory=dict)

    def begin(self, engine: Engine, life: NodeLifecycle) -> None:
        """Store what a test checks while the plan is played."""
        self.engine, self.node_life = engine, life

    def pod_ended(self, life: SimulatedPod) -> None:
        self.lives[life.identity.name] = life
        self.ended[life.identity.name] = (life.ended_us / S, str(life.ends_as))

    def bound_to(self, now_us: int, life: SimulatedPod) -> None:
        self.bound.append((now_us / S, life.identity.name, life.node))

    def not_bound(self, *_: object) -> None:
        """Record nothing."""

    def claims(self, *_: object) -> None:
        """Record nothing."""

    def note(self, now_us: int, note: Note) -> None:
        self.notes.append((now_us / S, note.what, note.subject, note.detail))

    def sample(self, engine: Engine) -> None:
        """Record nothing."""

    def times(self, what: str) -> list[float]:
        return [at_s for at_s, each, _, _ in self.notes if each == what]

    def noted(self, *whats: str) -> list[tuple[float, str, str]]:
        return [(at_s, what, subject) for at_s, what, subject, _ in self.notes if what in whats]


def played(
    plan: CompiledScenario,
    *more: Component,
    seed: int = 0,
    compiled_kernel: CompiledKernel | None = None,
    history: History | None = None,
) -> tuple[History, Engine]:
    """Play a plan with its node life, and check the invariants at the end."""
    life, history = NodeLifecycle(plan, seed), history or History()
    recorder = _Recorder(history)
    delay = delay_of(plan, seed, lambda: 0.0)
    engine = build_engine(plan, Variant(seed), recorder, compiled_kernel, (life, *more), delay)
    history.begin(engine, life)
    engine.run()
    engine.validate()
    life.validate()
    return history, engine


class _Recorder:
    """Passes what happens on to a history."""

    def __init__(self, history: History) -> None:
        self.pod_ended, self.bound = history.pod_ended, history.bound_to
        self.not_bound, self.note, self.sample = history.not_bound, history.note, history.sample

    def node(self, now_us, name, facts, *, is_new) -> None:
        """Leave out nodes: the world has them."""


def tolerating(key: str, seconds: int | None, value: str = "") -> PodLifecycle:
    """A lifecycle that tolerates one more taint for a time; None for ever."""
    time_us = NEVER_US if seconds is None else seconds * S
    mine = TimedToleration(key, "Equal" if value else "Exists", value, time_us)
    return PodLifecycle((mine, *DEFAULTED), 30 * S)


def tolerations(key: str) -> tuple[Toleration, ...]:
    return (Toleration(key, "Exists"),)
