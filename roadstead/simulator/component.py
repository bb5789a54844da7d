"""Components: the parts of a simulated cluster, besides the scheduler, that change it.

A component (a controller, the node lifecycle, the faults of a scenario) sees what happens and
returns commands, which the engine carries out in order before anything else happens:

    engine ── pod created, started, terminating, ended, node put, dropped, wake ──► component
       ▲                                                                           │
       └── CreatePods, EndPod, PutNode, DropNode, StopNode, ResumeNode, ◄──────────┘
           SetBudgets, WakeAt, Note

A component changes nothing itself, reads no clock, and draws random numbers only from the seed that
it was made with. To put a node is to add it, or to change it if it exists; to drop it is to remove
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.protocol.fast_init import fast_init
from roadstead.simulator.scenario import TimedToleration
from roadstead.simulator.simulated_pods import Ending, SimulatedPod
from roadstead.simulator.times import NEVER_US


@fast_init
@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod to create; for fields not listed here see `SimulatedPod`.

    reuses_name: pods before it may have had its name, so its UID may get a number. ends_as: how it
    ends when its duration is over. uid: "" for namespace/name.
    """

    namespace: str
    name: str
    facts: PodFacts
    duration_us: int = NEVER_US
    grace_us: int = 0
    ordinal: int = 0
    reuses_name: bool = False
    ends_as: Ending = Ending.DONE
    no_execute: tuple[TimedToleration, ...] = ()
    uid: str = ""


@dataclass(frozen=True, slots=True)
class CreatePods:
    """Create pods, to be scheduled in this order. source, controller: see `SimulatedPod`."""

    pods: tuple[NewPod, ...]
    source: int = -1
    controller: int = -1


@dataclass(frozen=True, slots=True)
class EndPod:
    """End a pod. Nothing happens if it has ended, nor does a graceful command end it twice.

    is_graceful: a pod on a node ends after its grace period; a pending pod ends now in any case.
    """

    uid: str
    ending: Ending
    is_graceful: bool = True


@dataclass(frozen=True, slots=True)
class PutNode:
    """Add a node, or change the facts of a known one."""

    facts: NodeFacts


@dataclass(frozen=True, slots=True)
class DropNode:
    """Remove a node; the pods on it end as LOST. Nothing happens if there is no such node."""

    name: str


@dataclass(frozen=True, slots=True)
class StopNode:
    """Stop the machine of a node: until `ResumeNode`, no pod on it starts, finishes or terminates.

    The node and its pods stay in the cluster, which does not know that the machine has stopped.
    """

    name: str


@dataclass(frozen=True, slots=True)
class ResumeNode:
    """Start a stopped machine again; nothing happens if there is no such one."""

    name: str


@dataclass(frozen=True, slots=True)
class SetBudgets:
    """Replace the disruption budgets that preemption reads."""

    budgets: tuple[DisruptionBudget, ...]


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Call `wake` of the component with this key at a time; immediately if the time has passed."""

    at_us: int
    key: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Record an event in the table `events`. subject: node, controller or pod."""

    what: str
    subject: str
    detail: str = ""


Command: TypeAlias = (
    CreatePods | EndPod | PutNode | DropNode | StopNode | ResumeNode | SetBudgets | WakeAt | Note
)
Commands: TypeAlias = Iterable[Command]


class ClusterView(Protocol):
    """The fleet as components read it; it changes only by commands."""

    @property
    def now_us(self) -> int:
        """Virtual time."""
        ...

    @property
    def nodes(self) -> Mapping[str, NodeFacts]:
        """The nodes by name, in the order in which they were added."""
        ...

    @property
    def pods(self) -> Mapping[str, SimulatedPod]:
        """The pods that have not ended, by UID, in the order of their creation."""
        ...

    def pods_on(self, node: str) -> list[SimulatedPod]:
        """Return the pods that are bound to a node, in the order of their placement."""
        ...


class Component:
    """A component that does nothing; each method is called after the event in its name.

    sees_all_pods: the methods named `pod_…` are called for pods without a controller, too.
    """

    sees_all_pods = False

    def attach(self, world: ClusterView) -> None:
        """Store the view of the fleet; it has nodes and pods only from `begin` on."""

    def begin(self) -> Commands:
        """Act at time 0, before the first event."""
        return ()

    def wake(self, key: tuple[str | int, ...]) -> Commands:
        """Act at a time that a `WakeAt` named."""
        return ()

    def pod_created(self, pod: SimulatedPod) -> Commands:
        """React to a new pod, before it is scheduled."""
        return ()

    def pod_started(self, pod: SimulatedPod) -> Commands:
        """React to a pod that runs now."""
        return ()

    def pod_terminating(self, pod: SimulatedPod) -> Commands:
        """React to the beginning of a graceful deletion; `pod_ended` follows it."""
        return ()

    def pod_ended(self, pod: SimulatedPod) -> Commands:
        """React to the end of a pod; its `ends_as` has the reason."""
        return ()

    def node_put(self, facts: NodeFacts, *, is_new: bool) -> Commands:
        """React to a node that was added or changed."""
        return ()

    def node_dropped(self, name: str) -> Commands:
        """React to a node that was removed, after the ends of its pods."""
        return ()
