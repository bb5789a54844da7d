"""Facts of a node: all that scheduling looks at, compiled once from its manifest."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.pod import Labels
from roadstead.facts.taints import Taint

ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
"""Where both stand, the older label counts, as upstream."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What scheduling knows of a node.

    allocatable: sorted (resource, amount), cpu in milli-CPU, others in units of `Value()`;
        `pods` is kept apart.
    images: sorted (name as reported, size in bytes); every name of an image is an entry.
    avoids: (kind, UID) of controllers whose pods the node asks to place elsewhere.
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
