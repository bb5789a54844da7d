"""A fleet or a pod at a time of a run: the run is played again up to that time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from roadstead.config.scenario.values import time_text
from roadstead.cycle.batch import CompiledKernel
from roadstead.cycle.explain import Explanation
from roadstead.facts.cluster import ClusterFacts
from roadstead.protocol.errors import InputError
from roadstead.queue.reports import PendingReason
from roadstead.run import RunInputs
from roadstead.simulator.engine import Engine
from roadstead.simulator.play import Variant, prepare_engine
from roadstead.simulator.recording import Recorder
from roadstead.simulator.scenario import CompiledScenario
from roadstead.simulator.simulated_pods import ON_NODE, LifeState, SimulatedPod

OnProgress = Callable[[Engine], None]
"""As for `Engine.run`: shows progress, and may raise to end the run."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A pod at a time of its run. node: "" if it was on none.

    explanation: of a decision for the pod at this time, made as if the pod were on no node.
    """

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
    """Raised to end the run: the pod to explain is bound."""


class _NominationRecorder(Recorder):
    """Store the nominated nodes of pods, and end the run at the bind of one pod.

    last_bound: number of the pod whose bind ends the run, None to play it to its end. nominated:
    nodes by the pods' numbers.
    """

    def __init__(self, last_bound: int | None = None) -> None:
        self._last_bound = last_bound
        self.nominated: dict[int, str] = {}

    def bound(self, now_us: int, pod: SimulatedPod) -> None:
        """End the run at the bind of the pod."""
        self.nominated.pop(pod.number, None)
        if pod.number == self._last_bound:
            raise _BoundNow

    def not_bound(
        self,
        now_us: int,
        pod: SimulatedPod,
        reason: PendingReason,
        nominated: str,
        victims: Sequence[str],
    ) -> None:
        """Store the node to which a pod is nominated, or that there is none any more."""
        if nominated:
            self.nominated[pod.number] = nominated
        else:
            self.nominated.pop(pod.number, None)


def explain_bind(
    scenario: CompiledScenario,
    variant: Variant,
    number: int,
    compiled_kernel: CompiledKernel | None,
    on_progress: OnProgress,
) -> Moment:
    """Explain why a pod was bound to its node, on the cluster as it was at the pod's decision.

    number: of the pod, as in column `number` of the run's result table `pods` (docs/simulate.md).
    AssertionError if it is never bound.
    """
    recorder = _NominationRecorder(number)
    engine = prepare_engine(scenario, variant, recorder, compiled_kernel, _no_clock)
    try:
        engine.run(on_progress)
    except _BoundNow:
        pod = next(each for each in engine.pods.values() if each.number == number)
        # A batch is decided before its first pod is bound: the pods decided after this one are on
        # their nodes already, but pending in the engine.
        decided_later = [
            (each.identity, each.facts)
            for each in engine.pods.values()
            if each.state is LifeState.PENDING and engine.cluster.node_of(each.uid) is not None
        ]
        explanation = engine.cluster.explain((pod.identity, pod.facts), decided_later)
        return Moment(engine.now_us, pod.state, pod.node, explanation)
    raise AssertionError(f"pod {number} is never bound")


def explain_at(
    scenario: CompiledScenario,
    variant: Variant,
    number: int,
    at_us: int,
    compiled_kernel: CompiledKernel | None,
    on_progress: OnProgress,
) -> Moment:
    """Explain a pod after all events of a time. number: as for `explain_bind`.

    Raises InputError if the pod does not exist at that time.
    """
    engine, nominated = _play_until(scenario, variant, at_us, compiled_kernel, on_progress)
    pod = next((each for each in engine.pods.values() if each.number == number), None)
    if pod is None:
        problem = "is no time at which the pod exists"
        raise InputError(problem, source="--at", value=time_text(at_us))
    explanation = engine.cluster.explain(
        (pod.identity, pod.facts), nominated=nominated.get(number, "")
    )
    return Moment(at_us, pod.state, pod.node, explanation)


def fleet_at(
    scenario: CompiledScenario,
    variant: Variant,
    at_us: int,
    compiled_kernel: CompiledKernel | None,
    on_progress: OnProgress,
) -> FleetMoment:
    """Return the fleet after all events of a time. Raises InputError for one after the end."""
    engine, nominated = _play_until(scenario, variant, at_us, compiled_kernel, on_progress)
    running, pending = [], []
    for pod in engine.pods.values():
        # The facts in the engine are those of the template: they do not name the claims of devices
        # that were created for this pod (`with_device_claim_names`).
        if pod.state in ON_NODE:
            facts = pod.facts
            if pod.state is LifeState.TERMINATING:
                facts = replace(facts, is_terminating=True)
            running.append(
                (*engine.cluster.with_device_claim_names((pod.identity, facts)), pod.node)
            )
        elif node := nominated.get(pod.number):
            facts = replace(pod.facts, nominated_node_name=node)
            pending.append(engine.cluster.with_device_claim_names((pod.identity, facts)))
        else:
            pending.append(engine.cluster.with_device_claim_names((pod.identity, pod.facts)))
    inputs = RunInputs(tuple(engine.nodes.values()), tuple(running), tuple(pending))
    return FleetMoment(inputs, engine.cluster.facts())


def _play_until(
    scenario: CompiledScenario,
    variant: Variant,
    at_us: int,
    compiled_kernel: CompiledKernel | None,
    on_progress: OnProgress,
) -> tuple[Engine, dict[int, str]]:
    """Play a run up to a time; return its engine, and nominated nodes by the pods' numbers."""
    if at_us > scenario.horizon_us:
        problem = f"is after the end of the run ({time_text(scenario.horizon_us)})"
        raise InputError(problem, source="--at", value=time_text(at_us))
    recorder = _NominationRecorder()
    engine = prepare_engine(scenario, variant, recorder, compiled_kernel, _no_clock)
    engine.run(on_progress, until_us=at_us)
    return engine, recorder.nominated


def _no_clock() -> float:
    """Return 0: only a run that measures decision times needs a clock, and none is played again."""
    return 0.0
