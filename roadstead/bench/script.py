"""Scripts: the steps of a benchmark, with all objects ready to be created."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from roadstead.bench.series import NodeSeries, PodSeries
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Labels


class WaitMode(StrEnum):
    """The condition on which the next step begins."""

    NOTHING = "nothing"
    BOUND = "bound"
    IDLE = "idle"
    """Until no pod changes its state any more, even if some pods fit on no node."""


@dataclass(frozen=True, slots=True)
class AddNodes:
    """Create nodes."""

    series: NodeSeries


@dataclass(frozen=True, slots=True)
class SubmitPods:
    """Submit pods. measured: these pods are timed."""

    series: PodSeries
    wait: WaitMode = WaitMode.BOUND
    measured: bool = False


@dataclass(frozen=True, slots=True)
class SteadyPods:
    """Submit some pods, wait until they are bound, delete them, and so on; all are timed.

    at_once: number of pods each time. seconds: the step ends then, or with the last pod.
    """

    series: PodSeries
    at_once: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RemovePods:
    """Delete the pods of a namespace with these labels.

    per_s: number per second; 0 for all at once. waits: until the last one is deleted.
    """

    namespace: str
    labels: Labels = ()
    per_s: int = 0
    waits: bool = True


@dataclass(frozen=True, slots=True)
class ChurnObjects:
    """Create objects of endless series at an interval. recreates: delete them again.

    number: maximum number of objects of each series; 0 for no limit.
    """

    series: tuple[NodeSeries | PodSeries, ...]
    interval_s: float
    number: int
    recreates: bool


@dataclass(frozen=True, slots=True)
class AwaitPods:
    """Wait for pods that no earlier step waited for. namespaces: empty for all.

    attempted: wait only until each pod was attempted or is gated.
    """

    namespaces: tuple[str, ...] = ()
    labels: Labels = ()
    attempted: bool = False


@dataclass(frozen=True, slots=True)
class SleepStep:
    """Wait for a number of seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class BeginMeasuring:
    """Start to time the pods of these namespaces with these labels."""

    name: str
    namespaces: tuple[str, ...]
    labels: Labels = ()


@dataclass(frozen=True, slots=True)
class EndMeasuring:
    """Stop timing."""


Step = (
    AddNodes
    | SubmitPods
    | SteadyPods
    | RemovePods
    | ChurnObjects
    | AwaitPods
    | SleepStep
    | BeginMeasuring
    | EndMeasuring
)


@dataclass(frozen=True, slots=True)
class Script:
    """A benchmark that is ready to run.

    name: `case/workload`. cluster: initial objects other than nodes and pods. config_text,
    config_source: the configuration of the case, "" for none. notes: printed for the user.
    """

    name: str
    steps: tuple[Step, ...]
    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    config_text: str = ""
    config_source: str = ""
    notes: tuple[str, ...] = ()
