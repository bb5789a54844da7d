"""A script: what a benchmark does, step by step, with all objects ready to be made."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from roadstead.bench.series import NodeSeries, PodSeries
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Labels


class Wait(StrEnum):
    """What a step waits for before the next one begins."""

    NOTHING = "nothing"
    BOUND = "bound"
    SETTLED = "settled"
    """Until nothing moves any more, though some pods fit nowhere."""


@dataclass(frozen=True, slots=True)
class AddNodes:
    """Nodes appear."""

    series: NodeSeries


@dataclass(frozen=True, slots=True)
class SubmitPods:
    """Pods are submitted. measured: they are what is timed."""

    series: PodSeries
    wait: Wait = Wait.BOUND
    measured: bool = False


@dataclass(frozen=True, slots=True)
class RemovePods:
    """Pods of a namespace that have these labels go; per_s 0: all at once."""

    namespace: str
    labels: Labels = ()
    per_s: int = 0
    wait: bool = True


@dataclass(frozen=True, slots=True)
class ChurnObjects:
    """Objects of endless series come at an interval, and go again where `recreates` is set.

    number: how many of each there may be; 0 for any number.
    """

    makers: tuple[NodeSeries | PodSeries, ...]
    interval_s: float
    number: int
    recreates: bool


@dataclass(frozen=True, slots=True)
class AwaitPods:
    """Waits for pods that were not waited for; no namespaces: for all of them.

    attempted: it is enough that each was tried, or waits behind a gate.
    """

    namespaces: tuple[str, ...] = ()
    labels: Labels = ()
    attempted: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """Waits for a time."""

    seconds: float


@dataclass(frozen=True, slots=True)
class BeginMeasuring:
    """From here on pods of these namespaces with these labels are timed."""

    name: str
    namespaces: tuple[str, ...]
    labels: Labels = ()


@dataclass(frozen=True, slots=True)
class EndMeasuring:
    """Up to here."""


Step = (
    AddNodes
    | SubmitPods
    | RemovePods
    | ChurnObjects
    | AwaitPods
    | Pause
    | BeginMeasuring
    | EndMeasuring
)


@dataclass(frozen=True, slots=True)
class Script:
    """A benchmark, ready to run.

    name: `case/workload`. cluster: what the cluster has from the start beside nodes and pods.
    config_text, config_source: the case's own configuration, "" for none. notes: for people.
    """

    name: str
    steps: tuple[Step, ...]
    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    config_text: str = ""
    config_source: str = ""
    notes: tuple[str, ...] = ()
