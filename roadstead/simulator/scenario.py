"""A scenario in compiled form: what an engine needs to play it, without files and manifests.

All times are whole microseconds from the start of the scenario; NEVER_US means never. Pods of one
template share one `PodFacts` object, so that their class is found by its identity. Built by
`scenario.compile`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final, Literal, NamedTuple, Protocol

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.facts.selectors import LabelSelector, NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint
from roadstead.manifests.daemons import should_run
from roadstead.manifests.names import unique_suffix
from roadstead.simulator.node_events import FailurePlan, NodeEventPlan
from roadstead.simulator.share import Share
from roadstead.simulator.times import NEVER_US

ControllerKind = Literal["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"]
_SUFFIXED_KINDS: Final = ("Deployment", "ReplicaSet", "DaemonSet", "Job")
"""Controllers whose pods have names with suffixes, not with ordinals."""

DEFAULT_ROLLOUT_BOUND: Final = Share(basis_points=2_500)
"""Upstream's default of maxSurge and of maxUnavailable."""


@dataclass(frozen=True, slots=True)
class TimedToleration:
    """A toleration of NoExecute taints, with the time for which it holds.

    operator: Equal or Exists. tolerated_us: NEVER_US for ever, 0 evicts immediately.
    """

    key: str
    operator: str
    value: str
    tolerated_us: int

    def tolerates(self, taint: Taint) -> bool:
        """Whether it matches key and value of a NoExecute taint; an empty key matches every key."""
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
    """Pods that are created at one time. source: index in `CompiledScenario.sources`.

    pods: (name without namespace, facts) of one pod, or of the pods of a gang.
    duration_us: how long they run once started; NEVER_US until they are deleted.
    """

    at_us: int
    source: int
    pods: tuple[tuple[str, PodFacts], ...]
    duration_us: int
    lifecycle: PodLifecycle


class ArrivalSource(Protocol):
    """One entry of the workload: pods that arrive by one rule.

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
        """Yield microseconds without end. stream: different numbers give independent streams."""
        ...


@dataclass(frozen=True, slots=True)
class PodTemplatePlan:
    """The pod template of a controller; a rollout replaces it by another.

    name_prefix: of the pods' names, without the last dash. facts: of every pod, except in a
    StatefulSet. ordinals: of a StatefulSet, the facts of the pod of each ordinal, from
    `first_ordinal` on. A DaemonSet adds the node to the facts (`ControllerPlan.pod_on_node`).
    """

    name_prefix: str
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
    creation on. replicas: pods of a Deployment, ReplicaSet or StatefulSet; completions of a Job; 0
    for a DaemonSet. changes: in time order. durations: running times of its pods; None if they run
    until they are deleted. first_ordinal, is_parallel (podManagementPolicy): of a StatefulSet.
    max_surge, max_unavailable: of rollouts. recreates: the strategy Recreate of a Deployment, whose
    rollout begins when all old pods are gone. updates_on_delete: the strategy OnDelete, whose
    rollout deletes no pods. min_ready_us: how long a pod runs before it is available. parallelism,
    backoff_limit: of a Job. failing: the probability that a pod of a Job fails.
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
    max_surge: Share = DEFAULT_ROLLOUT_BOUND
    max_unavailable: Share = DEFAULT_ROLLOUT_BOUND
    recreates: bool = False
    updates_on_delete: bool = False
    min_ready_us: int = 0
    parallelism: int = 1
    backoff_limit: int = 6
    failing: float = 0.0

    def pod(self, template: int, number: int) -> tuple[str, PodFacts]:
        """Return name and facts of a pod of any controller but a DaemonSet.

        template: index. number: the pod's ordinal in a StatefulSet, else how many pods the
        controller created before it. Equal arguments give equal names.
        """
        template_plan = self.templates[template]
        if self.kind == "StatefulSet":
            return f"{template_plan.name_prefix}-{number}", template_plan.ordinals[
                number - self.first_ordinal
            ]
        return f"{template_plan.name_prefix}-{self._suffix(number)}", template_plan.facts

    def _suffix(self, number: int) -> str:
        # Controllers of two kinds may have the same name, but no two pods may.
        return unique_suffix(number * len(_SUFFIXED_KINDS) + _SUFFIXED_KINDS.index(self.kind))

    def pod_on_node(
        self, template: int, node: NodeFacts, number: int
    ) -> tuple[str, PodFacts] | None:
        """Return name and facts of a DaemonSet's pod on a node; None if it runs none there."""
        template_plan = self.templates[template]
        if not should_run(template_plan.facts, node):
            return None
        only_node = NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (node.name,)),))
        facts = replace(template_plan.facts, required_node_terms=(only_node,))
        return f"{template_plan.name_prefix}-{self._suffix(number)}", facts


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """A PodDisruptionBudget for the disruption controller; it has at most one of the two shares.

    selector: None selects no pod. A Share is an IntOrString: a number, or a percentage of the pods.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    min_available: Share | None = None
    max_unavailable: Share | None = None


@dataclass(frozen=True, slots=True)
class ControllerTimings:
    """Times and rates of the node lifecycle controller, by flags of kube-controller-manager.

    node_monitor_grace_us: how long a node may be silent before it is not ready. eviction_per_s:
    --node-eviction-rate, nodes tainted per second in a zone. secondary_eviction_per_s: the same in
    an unhealthy zone. unhealthy_zone_basis_points: --unhealthy-zone-threshold in hundredths of a
    percent; a zone is unhealthy if at least this part of its nodes is not ready.
    large_cluster_nodes: in an unhealthy zone with this number of nodes or fewer, no node is
    tainted.
    """

    node_monitor_grace_us: int
    eviction_per_s: float
    secondary_eviction_per_s: float
    unhealthy_zone_basis_points: int
    large_cluster_nodes: int


@dataclass(frozen=True, slots=True)
class SchedulerConfigText:
    """One KubeSchedulerConfiguration of the scenario.

    name: of its runs. source: where it is from, for errors. text: YAML or JSON.
    """

    name: str
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class DecisionDelay:
    """Simulated time of the decision for one pod.

    One of three, or none: pod_us: a fixed time. is_measured: the processor time that the decision
    really took. durations: the distribution from which the time of each decision is drawn.
    """

    pod_us: int = 0
    is_measured: bool = False
    durations: Durations | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a run, beyond which it ends with an error.

    pods: that exist at one time. rows: of one table. memory_bytes: of the process.
    """

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

    nodes: at the start, in the order of the API server's list. horizon_us: when a run ends.
    sample_us: time between samples of the fleet, 0 for the first and the last alone.
    start_delay_us: from the bind of a pod to its start. cluster: facts other than nodes and pods,
    as `roadstead schedule` needs them. pods: those of the manifests, running ones first. configs:
    to compare; empty for the default one. settings: the document of Roadstead's own settings.
    decision: how long decisions take. notes: for the user.
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


def merge_arrivals(scenario: CompiledScenario, seed: int) -> Iterator[Arrival]:
    """Yield the arrivals of all sources before the horizon, by time, then by source."""
    streams = [_before(scenario.horizon_us, each.arrivals(seed)) for each in scenario.sources]
    # Tuples compare by time, then by source; the heap has one arrival of each source at a time.
    return streams[0] if len(streams) == 1 else heapq.merge(*streams)


def _before(horizon_us: int, arrivals: Iterator[Arrival]) -> Iterator[Arrival]:
    return takewhile(lambda each: each.at_us < horizon_us, arrivals)
