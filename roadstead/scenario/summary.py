"""The numbers of nodes, pods and events of a scenario, for `roadstead scenario check`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Final

from roadstead.facts.node import ZONE_LABELS, NodeFacts
from roadstead.simulator.node_events import FailurePlan, NodeEventPlan
from roadstead.simulator.scenario import CompiledScenario, ControllerPlan

HOUR_US: Final = 3_600_000_000


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """A source of arrivals. per_hour: expected arrivals, as a mean up to the horizon.

    arrivals, pods: expected numbers up to the horizon; they differ by the pods of gangs.
    """

    name: str
    per_hour: float
    arrivals: float
    pods: float


@dataclass(frozen=True, slots=True)
class ControllerSummary:
    """A controller. replicas: at its creation; nodes with a pod for a DaemonSet."""

    kind: str
    namespace: str
    name: str
    replicas: int
    changes: int


@dataclass(frozen=True, slots=True)
class EventSummary:
    """An event of nodes, or random failures. occurrences: before the horizon, expected if random.

    every_us: interval between occurrences. for_us: duration of the effect; both as in
    `NodeEventPlan`. nodes: how many nodes of the start one occurrence concerns, or `add` adds.
    """

    action: str
    at_us: int
    every_us: int
    for_us: int
    occurrences: float
    nodes: int


@dataclass(frozen=True, slots=True)
class ScenarioSummary:
    """The numbers of a scenario.

    zones: number of nodes by zone; allocatable: sums by resource; both of the nodes at the start.
    """

    name: str
    nodes: int
    zones: dict[str, int]
    allocatable: dict[str, int]
    running_pods: int
    pending_pods: int
    sources: tuple[SourceSummary, ...]
    controllers: tuple[ControllerSummary, ...]
    events: tuple[EventSummary, ...]
    configs: tuple[str, ...]
    horizon_us: int
    sample_us: int
    seeds: tuple[int, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return asdict(self)


def summarize(plan: CompiledScenario) -> ScenarioSummary:
    """Return the numbers of a plan."""
    zones: Counter[str] = Counter()
    allocatable: Counter[str] = Counter()
    for node in plan.nodes:
        labels = dict(node.labels)
        zones[next((labels[key] for key in ZONE_LABELS if key in labels), "")] += 1
        for resource, amount in node.allocatable:
            allocatable[resource] += amount
    pending = sum(not each.node for each in plan.pods)
    return ScenarioSummary(
        name=plan.name,
        nodes=len(plan.nodes),
        zones=dict(sorted(zones.items())),
        allocatable=dict(sorted(allocatable.items())),
        running_pods=len(plan.pods) - pending,
        pending_pods=pending,
        sources=tuple(_sources(plan)),
        controllers=tuple(_controller(each, plan.nodes) for each in plan.controllers),
        events=(
            *(_event(each, plan) for each in plan.node_events),
            *(_failures(each, plan) for each in plan.failures),
        ),
        configs=tuple(each.name for each in plan.configs) or ("default",),
        horizon_us=plan.horizon_us,
        sample_us=plan.sample_us,
        seeds=plan.seeds,
        notes=plan.notes,
    )


def _sources(plan: CompiledScenario) -> list[SourceSummary]:
    expected = [(each.name, *each.expected(plan.horizon_us)) for each in plan.sources]
    hours = plan.horizon_us / HOUR_US
    return [
        SourceSummary(name, arrivals / hours, arrivals, pods) for name, arrivals, pods in expected
    ]


def _controller(plan: ControllerPlan, nodes: tuple[NodeFacts, ...]) -> ControllerSummary:
    replicas = plan.replicas
    if plan.kind == "DaemonSet":
        replicas = sum(plan.daemon(template=0, node=node, number=0) is not None for node in nodes)
    return ControllerSummary(plan.kind, plan.namespace, plan.name, replicas, len(plan.changes))


def _event(event: NodeEventPlan, plan: CompiledScenario) -> EventSummary:
    nodes = len(event.nodes) or len(event.chosen(plan.nodes, 0, 0))
    occurrences = sum(1 for _ in event.times(plan.horizon_us))
    return EventSummary(
        event.action, event.at_us, event.every_us, event.for_us, float(occurrences), nodes
    )


def _failures(failures: FailurePlan, plan: CompiledScenario) -> EventSummary:
    nodes = sum(map(failures.target.matches, plan.nodes))
    cycle_us = failures.mtbf_us + failures.mttr_us
    occurrences = nodes * plan.horizon_us / cycle_us
    return EventSummary("fail", 0, cycle_us, failures.mttr_us, occurrences, nodes)
