"""Facts of a node: everything that scheduling reads, compiled once from its manifest."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from operator import attrgetter

from roadstead.facts.pod import Labels
from roadstead.facts.taints import Taint
from roadstead.protocol.fast_init import fast_init

ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
"""In order of precedence: if a node has both labels, the older one is used, as upstream."""

HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = ZONE_LABELS[1]

NAME_PLACEHOLDER = "\0"
"""Value of the hostname label in a class of nodes; no label value of a node holds a NUL."""


@fast_init
@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Everything that scheduling reads of a node.

    allocatable: sorted (resource, amount), cpu in milli-CPU, others in whole units,
        rounded up; without `pods`.
    images: sorted (name as reported, size in bytes); every name of an image is an entry.
    avoids: (kind, UID) of controllers whose pods should be placed elsewhere.
    """

    name: str
    labels: Labels = ()
    allocatable: tuple[tuple[str, int], ...] = ()
    allocatable_pods: int = 0
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: tuple[tuple[str, int], ...] = ()
    avoids: tuple[tuple[str, str], ...] = ()

    @property
    def zone(self) -> str:
        """Upstream's zone key (component-helpers node/topology GetZoneKey); "" without labels."""
        labels = dict(self.labels)
        zone = next((labels[key] for key in ZONE_LABELS if key in labels), "")
        region = next((labels[key] for key in REGION_LABELS if key in labels), "")
        return f"{region}:\x00:{zone}" if zone or region else ""


def zone_text(key: str) -> str:
    """Return a zone key (`NodeFacts.zone`) for display: `region/zone`, or the part that is set."""
    region, _, zone = key.partition(":\x00:")
    return "/".join(part for part in (region, zone) if part)


_class_fields = attrgetter(*(each.name for each in fields(NodeFacts)[2:]))
"""Getter of all fields of a node except name and labels, the first two."""


def named_node(node_class: NodeFacts, name: str) -> NodeFacts:
    """Return the node of this class and name; the name replaces `NAME_PLACEHOLDER` in labels."""
    labels = tuple(
        [(key, name if value == NAME_PLACEHOLDER else value) for key, value in node_class.labels]
    )
    # Not by `replace`, which takes three times as long: this runs for every node of a cluster.
    return NodeFacts(name, labels, *_class_fields(node_class))


def class_of_node(facts: NodeFacts) -> NodeFacts:
    """Return the facts without the node's name, which is also replaced in the hostname label."""
    labels = tuple(
        (key, NAME_PLACEHOLDER if (key, value) == (HOSTNAME_LABEL, facts.name) else value)
        for key, value in facts.labels
    )
    return replace(facts, name="", labels=labels)


def renamed_node(facts: NodeFacts, name: str) -> NodeFacts:
    """Return the node under another name, which also replaces the one in the hostname label."""
    return named_node(class_of_node(facts), name)
