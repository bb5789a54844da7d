"""Facts of the cluster other than nodes and pods; plugins look them up by namespace or owner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roadstead.facts.devices import DevicesFacts
from roadstead.facts.disruption import DisruptionBudget, compile_budgets
from roadstead.facts.pod import Labels
from roadstead.facts.pod_groups import PodGroup
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.facts.storage import StorageFacts

if TYPE_CHECKING:
    from roadstead.protocol import objects


NAME_LABEL = "kubernetes.io/metadata.name"
"""The label that holds a namespace's name; the API server sets it."""


@dataclass(frozen=True, slots=True)
class SelectsPods:
    """A Service or workload that selects pods of its namespace; selector None selects nothing."""

    kind: str
    namespace: str
    name: str
    selector: LabelSelector | None


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts of the whole cluster; every worker and scheduler has a copy.

    namespaces: (name, labels). selecting: objects that select pods (Services,
    ReplicationControllers, ReplicaSets and StatefulSets, in this order). storage: volumes, claims,
    classes and drivers. budgets: PodDisruptionBudgets. pod_groups: PodGroups, and the groups of
    running pods. devices: claims, slices and classes of devices.
    """

    namespaces: tuple[tuple[str, Labels], ...] = ()
    selecting: tuple[SelectsPods, ...] = ()
    storage: StorageFacts = field(default_factory=StorageFacts)
    budgets: tuple[DisruptionBudget, ...] = ()
    pod_groups: tuple[PodGroup, ...] = ()
    devices: DevicesFacts = field(default_factory=DevicesFacts)


def compile_cluster(
    namespaces: Iterable[objects.Namespace] = (),
    services: Iterable[objects.Service] = (),
    replication_controllers: Iterable[objects.ReplicationController] = (),
    replica_sets: Iterable[objects.ReplicaSet] = (),
    stateful_sets: Iterable[objects.StatefulSet] = (),
    storage: StorageFacts | None = None,
    budgets: Iterable[objects.PodDisruptionBudget] = (),
    devices: DevicesFacts | None = None,
) -> ClusterFacts:
    """Compile validated objects; SelectorError if a selector does not parse."""
    # Imported here: every actor imports this module, only for its facts; manifest models are large.
    from roadstead.facts.parse_selectors import parse_label_selector

    selecting = (
        *(_selects_pods(each, _selector_of_labels(each.spec.selector)) for each in services),
        *(
            _selects_pods(each, _selector_of_labels(each.spec.selector))
            for each in replication_controllers
        ),
        *(_selects_pods(each, parse_label_selector(each.spec.selector)) for each in replica_sets),
        *(_selects_pods(each, parse_label_selector(each.spec.selector)) for each in stateful_sets),
    )
    return ClusterFacts(
        tuple(
            (each.metadata.name, tuple(sorted(each.metadata.labels.items()))) for each in namespaces
        ),
        selecting,
        storage or StorageFacts(),
        compile_budgets(budgets),
        devices=devices or DevicesFacts(),
    )


def _selects_pods(manifest: objects.ApiObject, selector: LabelSelector | None) -> SelectsPods:
    meta = manifest.metadata
    return SelectsPods(type(manifest).__name__, meta.namespace, meta.name, selector)


def _selector_of_labels(labels: dict[str, str]) -> LabelSelector | None:
    """Return the selector of a label map; an empty one selects nothing, as for a Service."""
    if not labels:
        return None
    return LabelSelector(
        tuple(Requirement(key, "In", (value,)) for key, value in sorted(labels.items()))
    )
