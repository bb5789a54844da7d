"""A scenario in compiled form: what an engine needs to play it, without files and manifests.

All times are whole microseconds from the start of the scenario; NEVER_US means never. Pods of one
template share one `PodFacts`, so that a class is found by identity. Built by `scenario.compile`.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from typing import Final, Literal, NamedTuple, Protocol

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import ZONE_LABELS, NodeFacts, renamed_node
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.facts.selectors import LabelSelector, NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint
from roadstead.fleet.generate import raw_stream
from roadstead.manifests.daemons import should_run
from roadstead.manifests.names import unique_suffix

NEVER_US: Final = -1
SECOND_US: Final = 1_000_000

ControllerKind = Literal["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"]
_SUFFIXED_KINDS: Final = ("Deployment", "ReplicaSet", "DaemonSet", "Job")
NodeAction = Literal["lose", "drain", "cordon", "taint", "add", "remove"]


@dataclass(frozen=True, slots=True)
class Share:
    """A number, or a percentage (in basis points, 0 to 10,000) of a number that is known later."""

    count: int = 0
    basis_points: int | None = None

    def of(self, total: int, *, rounds_up: bool) -> int:
        """Return the number that this is of `total`; percentages are rounded up or down."""
        if self.basis_points is None:
            return self.count
        whole, rest = divmod(total * self.basis_points, 10_000)
        return whole + (1 if rest and rounds_up else 0)


@dataclass(frozen=True, slots=True)
class TimedToleration:
    """A toleration of NoExecute taints, with the time for which it holds.

    operator, effect: as in `Toleration`. tolerated_us: NEVER_US for ever, 0 evicts at once.
    """

    key: str
    operator: str
    value: str
    tolerated_us: int

    def tolerates(self, taint: Taint) -> bool:
        """Whether it tolerates the key and value of a NoExecute taint."""
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or self.value == taint.value


@dataclass(frozen=True, slots=True)
class PodLifecycle:
    """Parts of a pod that its end depends on and its scheduling does not.

    no_execute: tolerations of NoExecute taints, in the manifest's order. grace_us: time from the
    request to delete the pod to its end.
    """

    no_execute: tuple[TimedToleration, ...] = ()
    grace_us: int = 30_000_000


class Arrival(NamedTuple):
    """Pods that are created at one time.

    pods: (name without namespace, facts) of one pod, or of the pods of a gang.
    duration_us: how long they run once started; NEVER_US until they are deleted.
    """

    at_us: int
    source: int
    pods: tuple[tuple[str, PodFacts], ...]
    duration_us: int
    lifecycle: PodLifecycle


class ArrivalSource(Protocol):
    """One entry of the workload that pods arrive from.

    index: its place in `CompiledScenario.sources`.
    """

    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...

    def expected(self, horizon_us: int) -> tuple[float, float]:
        """Return the expected numbers of arrivals and of pods before the horizon."""
        ...

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """Yield arrivals in time order, drawn while they are read; it may never end."""
        ...


class Durations(Protocol):
    """A distribution of running times."""

    def draws(self, seed: int, stream: int) -> Iterator[int]:
        """Yield microseconds without end. stream: number of the reader; each has its own draws."""
        ...


@dataclass(frozen=True, slots=True)
class PodTemplatePlan:
    """A revision of a controller's pods.

    base: prefix of the pods' names, without the last dash. facts: of every pod; of a StatefulSet's
    pods `ordinals` has those of each ordinal, of a DaemonSet's pods `on_node` makes them.
    """

    base: str
    facts: PodFacts
    lifecycle: PodLifecycle
    ordinals: tuple[PodFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class ControllerChange:
    """A change of a controller at a time: a number of replicas, or a template by its index."""

    at_us: int
    replicas: int | None = None
    template: int | None = None


@dataclass(frozen=True, slots=True)
class ControllerPlan:
    """A controller, and what changes in it.

    index: its place in `CompiledScenario.controllers`. templates: the first one applies from the
    creation. replicas: pods of a Deployment, ReplicaSet or StatefulSet; completions of a Job; 0 for
    a DaemonSet. changes: in time order. durations: running times of its pods; None until deleted.
    first_ordinal, is_parallel: of a StatefulSet. max_surge, max_unavailable: of rollouts.
    recreates: a rollout of a Deployment begins when all old pods are gone. updates_on_delete: a
    rollout deletes no pods. min_ready_us: how long a pod runs before it is available. parallelism,
    backoff_limit: of a Job. failing: the share of a Job's pods that fail, 0 to 1.
    """

    index: int
    kind: ControllerKind
    namespace: str
    name: str
    templates: tuple[PodTemplatePlan, ...]
    replicas: int
    created_us: int = 0
    deleted_us: int = NEVER_US
    changes: tuple[ControllerChange, ...] = ()
    durations: Durations | None = None
    first_ordinal: int = 0
    is_parallel: bool = False
    max_surge: Share = Share(basis_points=2_500)
    max_unavailable: Share = Share(basis_points=2_500)
    recreates: bool = False
    updates_on_delete: bool = False
    min_ready_us: int = 0
    parallelism: int = 1
    backoff_limit: int = 6
    failing: float = 0.0

    def pod(self, template: int, number: int) -> tuple[str, PodFacts]:
        """Return name and facts of a pod, unless of a DaemonSet; equal arguments give equal names.

        number: its ordinal in a StatefulSet, else of pods that the controller created before it.
        """
        plan = self.templates[template]
        if self.kind == "StatefulSet":
            return f"{plan.base}-{number}", plan.ordinals[number - self.first_ordinal]
        return f"{plan.base}-{self._suffix(number)}", plan.facts

    def _suffix(self, number: int) -> str:
        # Controllers of two kinds may have one name; their pods must not.
        return unique_suffix(number * len(_SUFFIXED_KINDS) + _SUFFIXED_KINDS.index(self.kind))

    def daemon(self, template: int, node: NodeFacts, number: int) -> tuple[str, PodFacts] | None:
        """Return name and facts of a DaemonSet's pod, as `pod` does; None if it needs none."""
        plan = self.templates[template]
        if not should_run(plan.facts, node):
            return None
        pinned = NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (node.name,)),))
        facts = replace(plan.facts, required_node_terms=(pinned,))
        return f"{plan.base}-{self._suffix(number)}", facts


@dataclass(frozen=True, slots=True)
class NodeTarget:
    """The nodes of an event: those that meet all conditions, or a share of them.

    zone: value of the zone label. share: how many of the matching nodes; None for all of them.
    """

    zone: str = ""
    names: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    share: Share | None = None

    def matches(self, node: NodeFacts) -> bool:
        labels = dict(node.labels)
        if self.zone and self.zone not in (labels.get(key) for key in ZONE_LABELS):
            return False
        if self.names and node.name not in self.names:
            return False
        return self.selector is None or self.selector.matches(labels)

    def choose(self, nodes: Iterable[NodeFacts], seed: int, purpose: str) -> tuple[str, ...]:
        """Return the names of the chosen nodes, in the order of `nodes`.

        purpose: of the random choice, such as "event 3 occurrence 0"; others are independent.
        A percentage of at least one matching node is rounded up.
        """
        found = [node.name for node in nodes if self.matches(node)]
        if self.share is None:
            return tuple(found)
        wanted = min(len(found), self.share.of(len(found), rounds_up=True))
        drawn = raw_stream(seed, purpose, len(found)).argsort(kind="stable")[:wanted]
        return tuple(found[index] for index in sorted(drawn.tolist()))


@dataclass(frozen=True, slots=True)
class NodeEventPlan:
    """A node event: its action on the nodes of its target, once or repeatedly.

    index: its place in `CompiledScenario.node_events`. at_us: first time. every_us: 0 for once.
    for_us: time until it is undone, NEVER_US if it is not. until_us: no occurrence from then on.
    nodes: those that `add` adds; the names of a later occurrence get its number. taint: of `taint`.
    """

    index: int
    action: NodeAction
    at_us: int
    every_us: int = 0
    for_us: int = NEVER_US
    until_us: int = NEVER_US
    target: NodeTarget = NodeTarget()
    nodes: tuple[NodeFacts, ...] = ()
    taint: Taint | None = None

    def times(self, horizon_us: int) -> Iterator[int]:
        """Yield the times of its occurrences before the horizon."""
        end_us = horizon_us if self.until_us == NEVER_US else min(horizon_us, self.until_us)
        yield from range(self.at_us, end_us, self.every_us or max(1, end_us - self.at_us))

    def chosen(self, nodes: Iterable[NodeFacts], seed: int, occurrence: int) -> tuple[str, ...]:
        """Return the names of the nodes of an occurrence. nodes: all that exist then."""
        return self.target.choose(nodes, seed, f"event {self.index} occurrence {occurrence}")

    def added(self, occurrence: int) -> tuple[NodeFacts, ...]:
        """Return the nodes that an occurrence of `add` adds; later ones have a number in names."""
        if not occurrence:
            return self.nodes
        return tuple(renamed_node(node, f"{node.name}-{occurrence}") for node in self.nodes)


@dataclass(frozen=True, slots=True)
class FailurePlan:
    """Random failures of nodes: exponential times between failures and to repair, per node.

    index: its place in `CompiledScenario.failures`.
    """

    index: int
    mtbf_us: int
    mttr_us: int
    target: NodeTarget = NodeTarget()

    def outages(self, seed: int, node: str, since_us: int) -> Iterator[tuple[int, int]]:
        """Yield (failure, end of repair) of a node that exists since a time, without end."""
        now_us = since_us
        for block in count():
            # A hash, not a stream: a fleet has many nodes, and most of them draw once or twice.
            purpose = f"{seed} failures {self.index} of {node} block {block}"
            drawn = iter(struct.unpack("<8Q", hashlib.blake2b(purpose.encode()).digest()))
            # Two of the eight numbers for each outage.
            for up, down in zip(drawn, drawn, strict=True):
                failed_us = now_us + _exponential(up, self.mtbf_us)
                now_us = failed_us + _exponential(down, self.mttr_us)
                yield failed_us, now_us


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """A PodDisruptionBudget for the disruption controller. One of the two shares, or none."""

    namespace: str
    name: str
    selector: LabelSelector | None
    min_available: Share | None = None
    max_unavailable: Share | None = None


@dataclass(frozen=True, slots=True)
class ControllerTimings:
    """Times and rates of kube-controller-manager.

    unhealthy_zone_basis_points: share of nodes that are not ready above which a zone is unhealthy.
    """

    node_monitor_grace_us: int
    eviction_per_s: float
    secondary_eviction_per_s: float
    unhealthy_zone_basis_points: int
    large_cluster_nodes: int


@dataclass(frozen=True, slots=True)
class SchedulerConfigText:
    """One KubeSchedulerConfiguration of the scenario. name: for people."""

    name: str
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class DecisionDelay:
    """Simulated time of a decision: fixed, measured (the real time that it took), or drawn."""

    pod_us: int = 0
    is_measured: bool = False
    durations: Durations | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a run, beyond which it ends with an error."""

    pods: int
    rows: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class InitialPod:
    """A pod that exists at the start. node: where it runs; "" for a pending one."""

    identity: PodIdentity
    facts: PodFacts
    node: str
    lifecycle: PodLifecycle


@dataclass(frozen=True, slots=True)
class CompiledScenario:
    """A scenario that can be played.

    nodes: at the start, in the order of the API server's list. cluster: facts other than nodes and
    pods, as `roadstead schedule` needs them. pods: those of the manifests, running ones first.
    configs: to compare; empty for the default one. settings: the document of Roadstead's own
    settings. notes: for the user.
    """

    name: str
    nodes: tuple[NodeFacts, ...]
    horizon_us: int
    sample_us: int
    start_delay_us: int
    timings: ControllerTimings
    limits: Limits
    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    pods: tuple[InitialPod, ...] = ()
    sources: tuple[ArrivalSource, ...] = ()
    controllers: tuple[ControllerPlan, ...] = ()
    node_events: tuple[NodeEventPlan, ...] = ()
    failures: tuple[FailurePlan, ...] = ()
    budgets: tuple[BudgetPlan, ...] = ()
    configs: tuple[SchedulerConfigText, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    decision: DecisionDelay = DecisionDelay()
    seeds: tuple[int, ...] = (0,)
    notes: tuple[str, ...] = ()


def merge_arrivals(plan: CompiledScenario, seed: int) -> Iterator[Arrival]:
    """Yield the arrivals of all sources before the horizon, by time, then by source."""
    streams = [_before(plan.horizon_us, source.arrivals(seed)) for source in plan.sources]
    # Tuples compare by time, then by source; the heap has one arrival of each source at a time.
    return streams[0] if len(streams) == 1 else heapq.merge(*streams)


def _before(horizon_us: int, arrivals: Iterator[Arrival]) -> Iterator[Arrival]:
    return takewhile(lambda each: each.at_us < horizon_us, arrivals)


def _exponential(raw: int, mean_us: int) -> int:
    """Return an exponential time of at least 1 us, from 64 random bits."""
    uniform = ((raw >> 11) + 0.5) / 2**53
    return max(1, round(-math.log(uniform) * mean_us / 1_000) * 1_000)
