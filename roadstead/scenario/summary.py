"""The numbers of nodes, pods and events of a scenario, for `roadstead scenario check`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass

from roadstead.facts.node import ZONE_LABELS, NodeFacts
from roadstead.simulator.node_events import FailurePlan, NodeEventPlan
from roadstead.simulator.scenario import CompiledScenario, ControllerPlan
from roadstead.simulator.times import HOUR_US


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """A source of arrivals. An arrival is one pod or one gang of pods.

    arrivals, pods: expected numbers up to the horizon. per_hour: the mean of arrivals per hour.
    """

    name: str
    per_hour: float
    arrivals: float
    pods: float


@dataclass(frozen=True, slots=True)
class ControllerSummary:
    """A controller.

    replicas: at its creation, as in `ControllerPlan`; for a DaemonSet, the number of nodes at the
    start on which it runs a pod. changes: number of planned changes of its replicas or template.
    """

    kind: str
    namespace: str
    name: str
    replicas: int
    changes: int


@dataclass(frozen=True, slots=True)
class EventSummary:
    """An event of nodes, or random failures: action "fail".

    Of an event, at_us, every_us and for_us are as in `NodeEventPlan`. occurrences: before the
    horizon. nodes: how many of the nodes at the start one occurrence concerns, or how many nodes
    `add` adds.

    Of random failures, one occurrence concerns one node. nodes: how many of the nodes at the start
    may fail. every_us: the mean time from one failure of a node to its next one. for_us: the mean
    time to repair. occurrences: of all nodes together, estimated as one per node and every_us.
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
    configs: names of the scheduler configurations to compare. sample_us: time between samples of
    the fleet. notes: for the user, as in `CompiledScenario`.
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


def summarize(scenario: CompiledScenario) -> ScenarioSummary:
    """Return the numbers of a scenario."""
    zones: Counter[str] = Counter()
    allocatable: Counter[str] = Counter()
    for node in scenario.nodes:
        labels = dict(node.labels)
        zones[next((labels[key] for key in ZONE_LABELS if key in labels), "")] += 1
        for resource, amount in node.allocatable:
            allocatable[resource] += amount
    pending = sum(not each.node for each in scenario.pods)
    return ScenarioSummary(
        name=scenario.name,
        nodes=len(scenario.nodes),
        zones=dict(sorted(zones.items())),
        allocatable=dict(sorted(allocatable.items())),
        running_pods=len(scenario.pods) - pending,
        pending_pods=pending,
        sources=tuple(_sources(scenario)),
        controllers=tuple(_controller(each, scenario.nodes) for each in scenario.controllers),
        events=(
            *(_event(each, scenario) for each in scenario.node_events),
            *(_failures(each, scenario) for each in scenario.failures),
        ),
        configs=tuple(each.name for each in scenario.configs) or ("default",),
        horizon_us=scenario.horizon_us,
        sample_us=scenario.sample_us,
        seeds=scenario.seeds,
        notes=scenario.notes,
    )


def _sources(scenario: CompiledScenario) -> list[SourceSummary]:
    expected = [(each.name, *each.expected(scenario.horizon_us)) for each in scenario.sources]
    hours = scenario.horizon_us / HOUR_US
    return [
        SourceSummary(name, arrivals / hours, arrivals, pods) for name, arrivals, pods in expected
    ]


def _controller(plan: ControllerPlan, nodes: tuple[NodeFacts, ...]) -> ControllerSummary:
    replicas = plan.replicas
    if plan.kind == "DaemonSet":
        # The first template applies from the creation on; the number is only part of the name.
        replicas = sum(
            plan.pod_on_node(template=0, node=node, number=0) is not None for node in nodes
        )
    return ControllerSummary(plan.kind, plan.namespace, plan.name, replicas, len(plan.changes))


def _event(event: NodeEventPlan, scenario: CompiledScenario) -> EventSummary:
    # event.nodes: those that `add` adds. How many nodes are chosen does not depend on the seed or
    # the occurrence.
    nodes = len(event.nodes) or len(event.chosen(scenario.nodes, seed=0, occurrence=0))
    occurrences = len(event.times(scenario.horizon_us))
    return EventSummary(
        event.action, event.at_us, event.every_us, event.for_us, float(occurrences), nodes
    )


def _failures(failures: FailurePlan, scenario: CompiledScenario) -> EventSummary:
    nodes = sum(map(failures.target.matches, scenario.nodes))
    cycle_us = failures.mtbf_us + failures.mttr_us
    occurrences = nodes * scenario.horizon_us / cycle_us
    return EventSummary("fail", 0, cycle_us, failures.mttr_us, occurrences, nodes)
