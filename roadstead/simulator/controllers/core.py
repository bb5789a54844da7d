"""ControllerCore: the base class of all controllers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import count
from typing import ClassVar, Final

from roadstead.facts.pod import PodFacts
from roadstead.fleet.generate import raw_stream
from roadstead.simulator.component import ClusterView, Command, EndPod, NewPod, Note
from roadstead.simulator.scenario import ControllerChange, ControllerPlan, PodLifecycle
from roadstead.simulator.simulated_pods import Ending, SimulatedPod
from roadstead.simulator.times import NEVER_US

_DRAWS_PER_BLOCK: Final = 256
"""Random numbers that are drawn at a time."""


class ControllerCore(ABC):
    """One controller of a scenario; subclasses define what it does.

    plan: the controller in the compiled scenario. is_live: it was created, and is neither deleted
    nor finished. replicas, template: wanted now; the template by index in `plan.templates`.
    created_pods: number of pods so far. replaces_at_once: whether a pod that ends at the time of
    its creation is replaced at the same time; if not, `Controllers` pauses, so that time passes.
    """

    replaces_at_once: ClassVar[bool] = False

    def __init__(self, plan: ControllerPlan, seed: int) -> None:
        self.plan = plan
        self.is_live = False
        self.replicas, self.template = plan.replicas, 0
        self.created_pods = 0
        # Events that the next `sync` records.
        self._notes: list[Command] = []
        self._durations = None if plan.durations is None else plan.durations.draws(seed, plan.index)
        self._failures = _failures(plan, seed) if plan.failing else None

    @property
    def subject(self) -> str:
        """The controller's name in the tables."""
        return f"{self.plan.kind}/{self.plan.name}"

    # What happens to the controller.

    def create(self) -> None:
        """Begin to act."""
        self.is_live = True
        self.note("controller created")

    def change(self, change: ControllerChange) -> None:
        """Change the number of replicas, or the template."""
        if change.replicas is not None and change.replicas != self.replicas:
            self.note("controller scaled", f"from {self.replicas:,} to {change.replicas:,} pods")
            self.replicas = change.replicas
        if change.template is not None:
            self.template = change.template

    def delete(self) -> Iterable[Command]:
        """Stop, and delete all pods."""
        self.note("controller deleted")
        return self._stop()

    # What happens to its pods.

    @abstractmethod
    def pod_created(self, pod: SimulatedPod) -> None:
        """Add a pod that was created by a command of this controller."""

    def pod_available(self, pod: SimulatedPod) -> None:  # noqa: B027 - optional
        """Count a pod that has run for `min_ready_us`."""

    @abstractmethod
    def pod_leaves(self, pod: SimulatedPod, now_us: int) -> bool:
        """Remove a pod that terminates or has ended, from the pods that count as replicas.

        Returns whether it still counted: False for a pod that this controller deleted itself.
        """

    def pod_ended(self, pod: SimulatedPod) -> None:  # noqa: B027 - optional
        """Remove a pod that has ended; it is called after `pod_leaves`."""

    @abstractmethod
    def sync(self, world: ClusterView) -> list[Command]:
        """Return the commands that create missing pods and delete others.

        All commands of earlier calls are carried out.
        """

    @abstractmethod
    def remaining(self) -> Iterable[SimulatedPod]:
        """Return its pods that neither terminate nor have ended, in the order of their creation."""

    @abstractmethod
    def validate(self) -> None:
        """Check that the controller's counts agree (O(pods))."""

    # For subclasses.

    def note(self, what: str, detail: str = "") -> None:
        """Store an event of the controller; it is recorded with the next commands."""
        self._notes.append(Note(what, self.subject, detail))

    def pop_notes(self) -> list[Command]:
        """Return the notes since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def new_pod(
        self,
        name: str,
        facts: PodFacts,
        lifecycle: PodLifecycle,
        ordinal: int,
        *,
        reuses_name: bool = False,
    ) -> NewPod:
        """Return a pod to create; it gets the next duration that the controller draws.

        ordinal: in a StatefulSet; in other controllers, how many pods were created before it.
        """
        self.created_pods += 1
        return NewPod(
            self.plan.namespace,
            name,
            facts,
            NEVER_US if self._durations is None else next(self._durations),
            lifecycle.grace_us,
            ordinal,
            reuses_name,
            Ending.FAILED if self._failures is not None and next(self._failures) else Ending.DONE,
            lifecycle.no_execute,
        )

    def _stop(self) -> list[Command]:
        self.is_live = False
        return [end_pod(pod) for pod in list(self.remaining())]


def end_pod(pod: SimulatedPod) -> EndPod:
    """Return the command to delete a pod as its controller does."""
    return EndPod(pod.uid, Ending.DELETED)


def _failures(plan: ControllerPlan, seed: int) -> Iterator[bool]:
    """Yield without end whether the next pod fails."""
    # Drawn numbers are uniform from 0 to 2^64 - 1, so the part `failing` of them is below this.
    bound = round(plan.failing * 2**64)
    for block in count():
        purpose = f"failing pods of controller {plan.index} block {block}"
        for drawn in raw_stream(seed, purpose, _DRAWS_PER_BLOCK).tolist():
            yield drawn < bound
