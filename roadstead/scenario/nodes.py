"""Nodes of a scenario: generated ones, those of traces, and the events that concern them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from roadstead.config.reader import join_path
from roadstead.config.scenario.events import (
    AddEvent,
    CordonEvent,
    DrainEvent,
    EventTime,
    FailuresEvent,
    LastingEvent,
    LoseEvent,
    NodeChoice,
    RemoveEvent,
    SomeNodes,
    TaintEvent,
)
from roadstead.config.scenario.fleet import GeneratedNodes, NodeShape
from roadstead.config.scenario.read import ScenarioFile
from roadstead.facts.compile import compile_node
from roadstead.facts.node import HOSTNAME_LABEL, ZONE_LABEL, NodeFacts, renamed_node
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.facts.taints import Taint
from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.sizes import NAMED_NODE_SIZES
from roadstead.manifests.defaults import default_node
from roadstead.manifests.object_checks import check_node
from roadstead.protocol import objects
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.names import qualified_name_errors, subdomain_errors
from roadstead.protocol.quantity import Quantity
from roadstead.scenario.controllers import share_of
from roadstead.scenario.templates import KeyPath
from roadstead.simulator.node_events import FailurePlan, NodeEventPlan, NodeTarget
from roadstead.simulator.share import Share
from roadstead.simulator.times import NEVER_US

NODES_MAX: Final = 1_000_000
"""Maximum number of nodes that a scenario names; and of nodes that one repeated event adds."""

OCCURRENCES_MAX: Final = 1_000_000
"""Maximum number of times that a repeated event occurs."""

PODS_PER_NODE: Final = 110
"""The kubelet's default of the resource "pods"."""

OPENB: Final = "openb"
"""The shape of nodes with the statistics of openb, Alibaba's trace of a GPU cluster."""

NODE_PREFIX: Final = "node"


@dataclass(slots=True)
class NodeCompiler:
    """Compile nodes and the events of nodes; node names are unique over the whole scenario.

    nodes: all so far. origin_of: node name → path of its entry, for errors. prefixes: of generated
    names.
    """

    file: ScenarioFile
    nodes: list[NodeFacts] = field(default_factory=list)
    origin_of: dict[str, str] = field(default_factory=dict)
    prefixes: set[str] = field(default_factory=set)

    def generate(self, entry: GeneratedNodes, at: KeyPath) -> tuple[NodeFacts, ...]:
        """Generate nodes. at: path of the entry. Raises InputError."""
        is_named = isinstance(entry.shape, str) and entry.shape != OPENB
        default = str(entry.shape).lower() if is_named else NODE_PREFIX
        prefix, number = entry.name or default, 1
        # Prefixes that the scenario does not name are numbered, if several entries have one shape.
        while not entry.name and prefix in self.prefixes:
            number += 1
            prefix = f"{default}-{number}"
        self.prefixes.add(prefix)
        if rules := subdomain_errors(f"{prefix}-00000"):
            problem = f"makes names of nodes that are not allowed: {'; '.join(rules)}"
            key = "name" if entry.name else "shape"
            raise self.file.error((*at, key), problem, prefix)
        # Checked before the nodes are generated, which takes seconds.
        self._check_count(len(self.origin_of) + entry.nodes, at)
        if entry.shape == OPENB:
            sampled = generate_fleet(entry.nodes, pods=0, seed=0, zones=entry.zones).nodes()
            nodes = [renamed_node(node, _name(prefix, i)) for i, node in enumerate(sampled)]
        else:
            nodes = [*self._of_shape(entry, prefix, at)]
        return self.register(nodes, at)

    def register(self, nodes: list[NodeFacts], at: KeyPath) -> tuple[NodeFacts, ...]:
        """Add nodes to the scenario. InputError if another entry has one of their names."""
        # The path of the entry in its list, such as fleet[0].
        where = join_path("", at[:2])
        for node in nodes:
            other = self.origin_of.setdefault(node.name, where)
            if other != where:
                problem = f"has a node of the name {cut_short(node.name)}, as {other} has"
                raise self.file.error(at, problem)
        self._check_count(len(self.origin_of), at)
        self.nodes += nodes
        return tuple(nodes)

    def _check_count(self, nodes: int, at: KeyPath) -> None:
        if nodes > NODES_MAX:
            raise self.file.error(at, f"makes more than {NODES_MAX:,} nodes in all")

    def _of_shape(self, entry: GeneratedNodes, prefix: str, at: KeyPath) -> Iterator[NodeFacts]:
        node = self._shape(entry.shape, (*at, "shape"))
        zones = min(entry.zones, entry.nodes)
        in_zone = [_labelled(node, {ZONE_LABEL: f"zone-{zone}"}) for zone in range(zones)]
        for index in range(entry.nodes):
            name = _name(prefix, index)
            facts = in_zone[index % zones]
            yield replace(_labelled(facts, {HOSTNAME_LABEL: name}), name=name)

    def _shape(self, entry: str | NodeShape, at: KeyPath) -> NodeFacts:
        if isinstance(entry, NodeShape):
            return self._node(entry, at)
        if entry in self.file.scenario.shapes:
            return self._node(self.file.scenario.shapes[entry], ("shapes", entry))
        if entry not in NAMED_NODE_SIZES:
            known = ", ".join((OPENB, *self.file.scenario.shapes, *NAMED_NODE_SIZES))
            raise self.file.error(at, f"is not a shape (there are: {known})", entry)
        allocatable = {
            name: objects.base.read_quantity(text) for name, text in NAMED_NODE_SIZES[entry].items()
        }
        return self._node(NodeShape(allocatable=allocatable), at)

    def _node(self, shape: NodeShape, at: KeyPath) -> NodeFacts:
        """Compile the node of a shape, without a name, as one of a manifest."""
        pods = {"pods": Quantity(PODS_PER_NODE)}
        node = objects.Node(
            metadata=objects.ObjectMeta(name=NODE_PREFIX, labels=shape.labels),
            spec=objects.NodeSpec(
                taints=tuple(
                    objects.Taint(key=each.key, value=each.value, effect=each.effect)
                    for each in shape.taints
                )
            ),
            status=objects.NodeStatus(allocatable=pods | shape.allocatable),
        )
        try:
            check_node(node, source="")
        except InputError as error:
            raise self.file.error(at, f"{error.field}: {error.value} {error.rule}") from error
        return replace(compile_node(default_node(node)), name="")

    def events(self) -> tuple[tuple[NodeEventPlan, ...], tuple[FailurePlan, ...]]:
        """Compile the events of the scenario. Raises InputError."""
        plans: list[NodeEventPlan] = []
        failures: list[FailurePlan] = []
        # Added nodes first: other events may name them.
        added = {
            number: self.generate(event.add, ("events", number, "add"))
            for number, event in enumerate(self.file.scenario.events)
            if isinstance(event, AddEvent)
        }
        for number, event in enumerate(self.file.scenario.events):
            at = ("events", number)
            if isinstance(event, FailuresEvent):
                target = self._target(event.nodes, (*at, "nodes"))
                failure = FailurePlan(len(failures), event.nodes.mtbf, event.nodes.mttr, target)
                failures.append(failure)
            else:
                plan = self._event(event, len(plans), at, added.get(number, ()))
                self._check_occurrences(plan, at)
                plans.append(plan)
        return tuple(plans), tuple(failures)

    def _check_occurrences(self, plan: NodeEventPlan, at: KeyPath) -> None:
        if not plan.every_us:
            return
        times = len(plan.times(self.file.scenario.horizon))
        if times > OCCURRENCES_MAX:
            raise self.file.error(at, f"occurs more than {OCCURRENCES_MAX:,} times")
        if times * len(plan.nodes) > NODES_MAX:
            raise self.file.error(at, f"adds more than {NODES_MAX:,} nodes")
        # Later occurrences number the names (`NodeEventPlan.added`): NAME-1, NAME-2 and so on.
        added = {node.name for node in plan.nodes}
        for name, origin in self.origin_of.items():
            prefix, _, number = name.rpartition("-")
            if prefix in added and number in map(str, range(1, times)):
                problem = f"adds a node of the name {cut_short(name)}, as {origin} has"
                raise self.file.error(at, problem)

    def _event(
        self, event: EventTime, index: int, at: KeyPath, added: tuple[NodeFacts, ...]
    ) -> NodeEventPlan:
        every_us = event.every or 0
        # The action is replaced below, unless the event is a LoseEvent.
        plan = NodeEventPlan(
            index=index,
            action="lose",
            at_us=every_us if event.at is None else event.at,
            every_us=every_us,
            until_us=NEVER_US if event.until is None else event.until,
        )
        if isinstance(event, LastingEvent) and event.lasting is not None:
            plan = replace(plan, for_us=event.lasting)
        if isinstance(event, AddEvent):
            return replace(plan, action="add", nodes=added)
        if isinstance(event, TaintEvent):
            where, entry = (*at, "taint"), event.taint
            if rules := qualified_name_errors(entry.key):
                problem = f"is not a key of a taint: {'; '.join(rules)}"
                raise self.file.error((*where, "key"), problem, entry.key)
            taint = Taint(entry.key, entry.value, entry.effect)
            return replace(plan, action="taint", target=self._target(entry, where), taint=taint)
        if isinstance(event, LoseEvent):
            return replace(plan, target=self._target(event.lose, (*at, "lose")))
        if isinstance(event, DrainEvent):
            target = self._target(event.drain, (*at, "drain"))
            return replace(plan, action="drain", target=target)
        if isinstance(event, CordonEvent):
            target = self._target(event.cordon, (*at, "cordon"))
            return replace(plan, action="cordon", target=target)
        assert isinstance(event, RemoveEvent)
        target = self._target(event.remove, (*at, "remove"))
        return replace(plan, action="remove", target=target)

    def _target(self, entry: NodeChoice, at: KeyPath) -> NodeTarget:
        """Compile the choice of an event's nodes. InputError if no node of the scenario matches."""
        for number, name in enumerate(entry.names):
            if name not in self.origin_of:
                raise self.file.error((*at, "names", number), "is not a node of the fleet", name)
        requirements = [Requirement(k, "In", (v,)) for k, v in sorted(entry.selector.items())]
        # The part of the matching nodes that each occurrence chooses at random; None for all.
        share: Share | None = None
        if isinstance(entry, SomeNodes) and entry.nodes is not None:
            share = share_of(entry.nodes, Share())
        target = NodeTarget(
            zone=entry.zone,
            names=tuple(entry.names),
            selector=LabelSelector(tuple(requirements)) if requirements else None,
            share=share,
        )
        if not any(map(target.matches, self.nodes)):
            raise self.file.error(at, "matches no node of the scenario")
        return target


def _name(prefix: str, index: int) -> str:
    return f"{prefix}-{index:05}"


def _labelled(node: NodeFacts, labels: Mapping[str, str]) -> NodeFacts:
    return replace(node, labels=tuple(sorted({**dict(node.labels), **labels}.items())))
