"""A fleet or a pod at a moment of a run, by playing the run again up to that moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from roadstead.config.scenario.values import time_text
from roadstead.cycle.batch import CompiledKernel
from roadstead.cycle.explain import Explanation
from roadstead.facts.cluster import ClusterFacts
from roadstead.protocol.errors import InputError
from roadstead.queue.reports import PendingNote
from roadstead.run import RunInputs
from roadstead.simulator.engine import Engine
from roadstead.simulator.play import Variant, prepare_engine
from roadstead.simulator.pod_lives import ON_NODE, LifeState, PodLife
from roadstead.simulator.recording import Recorder
from roadstead.simulator.scenario import Plan

OnStep = Callable[[Engine], None]


@dataclass(frozen=True, slots=True)
class Moment:
    """A pod at a time of its run. explanation: as if it were on no node."""

    time_us: int
    state: LifeState
    node: str
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class FleetMoment:
    """A fleet at a time of its run: nodes, pods on them, waiting pods, and the other objects.

    Pods are in the order of their creation; a waiting one has its nominated node.
    """

    inputs: RunInputs
    cluster: ClusterFacts


class _BoundNow(Exception):
    """The pod that is watched is bound; the run is not continued."""


class _Watch(Recorder):
    """A recorder that keeps the nominations of pods, and ends the run when one of them is bound.

    ends_at: number of the pod whose bind ends the run. nominated: nodes by the pods' numbers.
    """

    def __init__(self, ends_at: int | None = None) -> None:
        self._ends_at = ends_at
        self.nominated: dict[int, str] = {}

    def bound(self, now_us: int, life: PodLife) -> None:
        """End the run at the bind of the pod."""
        self.nominated.pop(life.number, None)
        if life.number == self._ends_at:
            raise _BoundNow

    def not_bound(self, now_us: int, life: PodLife, note: PendingNote, nominated: str) -> None:
        """Keep the node to which a pod is nominated."""
        if nominated:
            self.nominated[life.number] = nominated
        else:
            self.nominated.pop(life.number, None)


def explain_bind(
    plan: Plan,
    variant: Variant,
    number: int,
    compiled_kernel: CompiledKernel | None,
    on_step: OnStep,
) -> Moment:
    """Explain why a pod was bound to its node: the state is that of its decision.

    number: of the pod, as in the table `pods`. AssertionError if it is never bound.
    """
    watch = _Watch(number)
    engine = prepare_engine(plan, variant, watch, compiled_kernel, _no_clock)
    try:
        engine.run(on_step)
    except _BoundNow:
        life = next(each for each in engine.pods.values() if each.number == number)
        # Pods of the same batch that were decided after it are on their nodes already.
        later = [
            (each.identity, each.facts)
            for each in engine.pods.values()
            if each.state is LifeState.PENDING and engine.cluster.node_of(each.uid) is not None
        ]
        explanation = engine.cluster.explain((life.identity, life.facts), later)
        return Moment(engine.now_us, life.state, life.node, explanation)
    raise AssertionError(f"pod {number} is never bound")


def explain_at(
    plan: Plan,
    variant: Variant,
    number: int,
    at_us: int,
    compiled_kernel: CompiledKernel | None,
    on_step: OnStep,
) -> Moment:
    """Explain a pod after all events of a time.

    number: of the pod, as in the table `pods`. Raises InputError if it does not exist then.
    """
    engine, nominated = _play_until(plan, variant, at_us, compiled_kernel, on_step)
    life = next((each for each in engine.pods.values() if each.number == number), None)
    if life is None:
        rule = "is no time at which the pod exists"
        raise InputError(rule, source="--at", value=time_text(at_us))
    pod = life.identity, life.facts
    explanation = engine.cluster.explain(pod, nominated=nominated.get(number, ""))
    return Moment(at_us, life.state, life.node, explanation)


def fleet_at(
    plan: Plan,
    variant: Variant,
    at_us: int,
    compiled_kernel: CompiledKernel | None,
    on_step: OnStep,
) -> FleetMoment:
    """Return the fleet after all events of a time. Raises InputError for one after the end."""
    engine, nominated = _play_until(plan, variant, at_us, compiled_kernel, on_step)
    running, pending = [], []
    for life in engine.pods.values():
        if life.state in ON_NODE:
            facts = life.facts
            if life.state is LifeState.TERMINATING:
                facts = replace(facts, is_terminating=True)
            running.append((*engine.cluster.with_claims((life.identity, facts)), life.node))
        elif node := nominated.get(life.number):
            facts = replace(life.facts, nominated_node_name=node)
            pending.append(engine.cluster.with_claims((life.identity, facts)))
        else:
            pending.append(engine.cluster.with_claims((life.identity, life.facts)))
    inputs = RunInputs(tuple(engine.nodes.values()), tuple(running), tuple(pending))
    return FleetMoment(inputs, engine.cluster.facts())


def _play_until(
    plan: Plan,
    variant: Variant,
    at_us: int,
    compiled_kernel: CompiledKernel | None,
    on_step: OnStep,
) -> tuple[Engine, dict[int, str]]:
    """Play a run up to a time; return its engine, and nominated nodes by the pods' numbers."""
    if at_us > plan.horizon_us:
        rule = f"is after the end of the run ({time_text(plan.horizon_us)})"
        raise InputError(rule, source="--at", value=time_text(at_us))
    watch = _Watch()
    engine = prepare_engine(plan, variant, watch, compiled_kernel, _no_clock)
    engine.run(on_step, until_us=at_us)
    return engine, watch.nominated


def _no_clock() -> float:
    """Runs whose decisions are measured are not repeated."""
    return 0.0
