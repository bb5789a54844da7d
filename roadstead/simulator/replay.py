"""Explanations of a pod at a moment of a run, by playing the run again up to that moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roadstead.config.scenario.values import time_text
from roadstead.cycle.batch import Accelerator
from roadstead.cycle.explain import Explanation
from roadstead.protocol.errors import InputError
from roadstead.queue.reports import PendingNote
from roadstead.simulator.engine import Engine
from roadstead.simulator.play import Variant, prepare_engine
from roadstead.simulator.pod_lives import LifeState, PodLife
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


class _BoundNow(Exception):
    """The pod that is watched is bound; the run is not continued."""


class _Watch(Recorder):
    """A recorder that keeps the nominations of one pod, and ends the run when it is bound.

    number: of the pod. ends_at_bind: otherwise the run goes to its end.
    """

    def __init__(self, number: int, *, ends_at_bind: bool) -> None:
        self._number, self._ends_at_bind = number, ends_at_bind
        self.nominated = ""

    def bound(self, now_us: int, life: PodLife) -> None:
        """End the run at the bind of the pod."""
        if life.number == self._number:
            self.nominated = ""
            if self._ends_at_bind:
                raise _BoundNow

    def not_bound(self, now_us: int, life: PodLife, note: PendingNote, nominated: str) -> None:
        """Keep the node to which the pod is nominated."""
        if life.number == self._number:
            self.nominated = nominated


def explain_bind(
    plan: Plan, variant: Variant, number: int, accelerator: Accelerator | None, on_step: OnStep
) -> Moment:
    """Explain why a pod was bound to its node: the state is that of its decision.

    number: of the pod, as in the table `pods`. AssertionError if it is never bound.
    """
    watch = _Watch(number, ends_at_bind=True)
    engine = prepare_engine(plan, variant, watch, accelerator, _no_clock)
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
    accelerator: Accelerator | None,
    on_step: OnStep,
) -> Moment:
    """Explain a pod after all events of a time.

    number: of the pod, as in the table `pods`. Raises InputError if it does not exist then.
    """
    watch = _Watch(number, ends_at_bind=False)
    engine = prepare_engine(plan, variant, watch, accelerator, _no_clock)
    engine.run(on_step, until_us=at_us)
    life = next((each for each in engine.pods.values() if each.number == number), None)
    if life is None:
        rule = "is no time at which the pod exists"
        raise InputError(rule, source="--at", value=time_text(at_us))
    pod = life.identity, life.facts
    explanation = engine.cluster.explain(pod, nominated=watch.nominated)
    return Moment(at_us, life.state, life.node, explanation)


def _no_clock() -> float:
    """Runs whose decisions are measured are not repeated."""
    return 0.0
