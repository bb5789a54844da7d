"""Sample fleets for testing plugins: small, and generated from a seed.

Nodes and pods are those that `roadstead demo` generates. Many also get taints, labels, images,
priorities, ports, selectors, affinity or spreading, so that every feature occurs in some of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np

from roadstead.facts.node import HOSTNAME_LABEL, ZONE_LABEL, NodeFacts
from roadstead.facts.pod import (
    HostPort,
    Owner,
    Pod,
    PodAffinityTerm,
    PodFacts,
    PreferredNodeTerm,
    SpreadConstraint,
)
from roadstead.facts.selectors import LabelSelector, NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint, Toleration
from roadstead.fleet.generate import generate_fleet
from roadstead.inputs.loaded import RunningPod
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable

F = TypeVar("F", PodFacts, NodeFacts)
"""A pod's or a node's facts, of which one value is changed."""

ZONES: Final = 7
_CHANGED_FACTS_MAX: Final = 3
"""Maximum number of facts of a generated pod that get another value."""

_WEB = LabelSelector((Requirement("app", "In", ("web",)),))
_SSD = NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),))
_SOFT = (Taint("soft", "", "PreferNoSchedule"),)
_GIB: Final = 1 << 30


def _affinity(topology_key: str, weight: int = 0) -> tuple[PodAffinityTerm, ...]:
    """Return a term for the pods of app "web". weight: 0 for a required term."""
    return (PodAffinityTerm(topology_key, _WEB, ("demo",), namespace_selector=None, weight=weight),)


def _spread(topology_key: str, when_unsatisfiable: str) -> tuple[SpreadConstraint, ...]:
    constraint = SpreadConstraint(
        topology_key,
        max_skew=1,
        when_unsatisfiable=when_unsatisfiable,
        selector=_WEB,
        min_domains=1,
        node_affinity_policy="Honor",
        node_taints_policy="Ignore",
        match_label_keys=(),
    )
    return (constraint,)


POD_VALUES: Final[Mapping[str, tuple[object, ...]]] = MappingProxyType(
    {
        "namespace": ("demo", "other"),
        "labels": ((), (("app", "web"),), (("app", "db"), ("tier", "back"))),
        "priority": (0, 10, 1000),
        "preemption_policy": ("PreemptLowerPriority", "Never"),
        "is_terminating": (False, True),
        "requests": ((), (("cpu", 500), ("memory", _GIB)), (("cpu", 30_000),)),
        "nonzero_cpu_milli": (100, 500, 30_000),
        "nonzero_memory_bytes": (200 << 20, _GIB),
        "node_selector": ((), (("disk", "ssd"),)),
        "required_node_terms": (None, (_SSD,)),
        "preferred_node_terms": ((), (PreferredNodeTerm(7, _SSD),)),
        "tolerations": ((), (Toleration(operator="Exists"),)),
        "host_ports": ((), (HostPort("0.0.0.0", "TCP", 8080),)),  # noqa: S104 - a manifest's
        "images": ((), ("web:v1",), ("web:v1", "side:v2")),
        "container_count": (1, 2),
        "scheduling_gates": ((), ("hold",)),
        "pod_affinity": ((), _affinity(ZONE_LABEL)),
        "pod_anti_affinity": ((), _affinity(HOSTNAME_LABEL)),
        "preferred_pod_affinity": ((), _affinity(ZONE_LABEL, 40)),
        "preferred_pod_anti_affinity": ((), _affinity(HOSTNAME_LABEL, 60)),
        "spread_constraints": (
            (),
            _spread(ZONE_LABEL, "DoNotSchedule"),
            _spread(HOSTNAME_LABEL, "ScheduleAnyway"),
        ),
        "owner": (None, Owner("ReplicaSet", "web", "u-1")),
    }
)
"""Fact → its values in samples, for all facts that a plugin may read and that need no other object,
such as a claim."""

_NOT_GENERATED: Final = frozenset({"scheduling_gates", "is_terminating", "namespace"})
"""Facts with which a pod would not be decided, or not be matched by terms for namespace demo."""

_NODE_VALUES: Final[Mapping[str, tuple[object, ...]]] = MappingProxyType(
    {
        "taints": ((), (), (Taint("hold", "", "NoSchedule"),), _SOFT),
        "unschedulable": (False, False, False, True),
        "images": ((), (("web:v1", 300 << 20),)),
        "allocatable_pods": (110, 5),
    }
)
"""Fact of a node → values, each with equal probability; a repeated value is more frequent."""


@dataclass(frozen=True, slots=True)
class SampleFleet:
    """Nodes in order of arrival, and pods to be scheduled in order of arrival.

    label: prefix of the texts of failed checks; "" if there is only one fleet. running: pods with a
    node. placed: the (node name, pod) pairs of `make_table`; None: chosen by the seed.
    """

    label: str
    seed: int
    nodes: tuple[NodeFacts, ...]
    pods: tuple[Pod, ...]
    running: tuple[RunningPod, ...] = ()
    placed: tuple[tuple[str, PodFacts], ...] | None = None

    def make_table(self, classes: PodClasses | None = None) -> NodeTable:
        """Make a table of the nodes, with pods on them.

        Without `placed`, every pod is added to a node chosen by the seed, and every third one is
        removed again, because plugins must also count removed pods correctly.
        """
        table = NodeTable(classes)
        for node in self.nodes:
            table.add_node(node)
        if self.placed is not None:
            for name, facts in self.placed:
                table.add_pod(name, table.classes.pod_class(facts))
            return table
        indices = random_stream(self.seed, "places").integers(0, len(self.nodes), len(self.pods))
        for index, (node_index, (_, facts)) in enumerate(
            zip(indices.tolist(), self.pods, strict=True)
        ):
            pod_class, name = table.classes.pod_class(facts), self.nodes[node_index].name
            table.add_pod(name, pod_class)
            if index % 3 == 0:
                table.remove_pod(name, pod_class)
        return table

    def classes(self) -> list[PodFacts]:
        """Return the distinct facts of the pods, in order."""
        return list(dict.fromkeys(facts for _, facts in self.pods))

    def labelled(self, text: str) -> str:
        """Return a text about this fleet, with the label before it."""
        return f"{self.label}: {text}" if self.label else text

    def describe_pod(self, facts: PodFacts) -> str:
        """Return the pod's key, or the requests of a pod that differs from all in the fleet."""
        key = next((identity.key for identity, each in self.pods if each == facts), None)
        if key is not None:
            return f"pod {key}"
        requests = ", ".join(f"{name}={amount}" for name, amount in facts.requests) or "of nothing"
        return f"a pod with requests {requests}"


def sample_fleet(seed: int, nodes: int = 40, pods: int = 120) -> SampleFleet:
    """Generate the fleet of a seed. Raises ValueError for counts out of range."""
    trace = generate_fleet(nodes, pods, seed, zones=ZONES)
    rng = random_stream(seed, "facts")
    return SampleFleet(
        f"seed {seed}",
        seed,
        tuple(_varied_node(facts, rng) for facts in trace.nodes()),
        tuple((identity, _varied_pod(facts, rng)) for identity, facts in trace.pods()),
    )


def pods_with_one_change(facts: PodFacts) -> Iterator[tuple[str, PodFacts]]:
    """Yield (fact, the pod with another of its `POD_VALUES`), for every fact and value."""
    for name, values in POD_VALUES.items():
        for value in values:
            if value != getattr(facts, name):
                yield name, _with(facts, name, value)


def random_stream(seed: int, purpose: str) -> np.random.Generator:
    """Return a random generator; those of other purposes are independent of it."""
    return np.random.default_rng([seed, *purpose.encode()])


def _varied_pod(facts: PodFacts, rng: np.random.Generator) -> PodFacts:
    names = [name for name in POD_VALUES if name not in _NOT_GENERATED]
    for index in rng.choice(len(names), rng.integers(0, _CHANGED_FACTS_MAX + 1), replace=False):
        facts = _with(facts, names[index], _pick(POD_VALUES[names[index]], rng))
    return facts


def _varied_node(facts: NodeFacts, rng: np.random.Generator) -> NodeFacts:
    disk = (("disk", str(_pick(("ssd", "hdd"), rng))),)
    facts = replace(facts, labels=tuple(sorted((*facts.labels, *disk))))
    for name, values in _NODE_VALUES.items():
        facts = _with(facts, name, _pick(values, rng))
    return facts


def _pick(values: Sequence[object], rng: np.random.Generator) -> object:
    return values[int(rng.integers(len(values)))]


def _with(facts: F, name: str, value: object) -> F:
    return replace(facts, **{name: value})  # type: ignore[arg-type]
