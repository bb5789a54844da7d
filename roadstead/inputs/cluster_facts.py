"""Facts of the cluster, compiled from manifests for plugins.

They are of namespaces, objects that select pods (Services and controllers), PodDisruptionBudgets,
storage and devices; not of nodes, pods and PodGroups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from roadstead.facts.cluster import NAME_LABEL, ClusterFacts, compile_cluster
from roadstead.facts.compile import DEFAULT_NAMESPACE, name_in_errors
from roadstead.facts.compile_devices import compile_devices
from roadstead.facts.parse_selectors import SelectorError, parse_label_selector
from roadstead.inputs.manifest_storage import storage_facts
from roadstead.manifests import Manifests
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import (
    ApiObject,
    Namespace,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    ReplicaSet,
    ResourceClaim,
    StatefulSet,
)

T = TypeVar("T", bound=ApiObject)
"""The type of any API object; `_with_namespace` returns the type that it receives."""


def cluster_facts(
    manifests: Manifests,
    created_replica_sets: Sequence[ReplicaSet],
    claims: Sequence[PersistentVolumeClaim],
    pods: Sequence[Pod],
    device_claims: Sequence[ResourceClaim] = (),
) -> ClusterFacts:
    """Compile the facts of the cluster, without PodGroups.

    created_replica_sets: those that deployments create. claims, device_claims: all that exist once
    the pods are created.

    Raises:
        InputError: a selector of a ReplicaSet or StatefulSet that does not parse.
    """
    replica_sets = tuple(
        _with_namespace(each) for each in (*manifests.replica_sets, *created_replica_sets)
    )
    stateful_sets = tuple(_with_namespace(each) for each in manifests.stateful_sets)
    for owner in chain[ReplicaSet | StatefulSet](replica_sets, stateful_sets):
        _check_selector(owner)
    return compile_cluster(
        namespaces=_namespaces(manifests.namespaces, pods),
        services=map(_with_namespace, manifests.services),
        replication_controllers=map(_with_namespace, manifests.replication_controllers),
        replica_sets=replica_sets,
        stateful_sets=stateful_sets,
        storage=storage_facts(manifests, claims),
        budgets=map(_with_namespace, manifests.pod_disruption_budgets),
        devices=compile_devices(
            manifests.resource_slices,
            manifests.device_classes,
            device_claims,
            manifests.device_taint_rules,
        ),
    )


def _check_selector(owner: ReplicaSet | StatefulSet) -> None:
    try:
        parse_label_selector(owner.spec.selector)
    except SelectorError as error:
        raise InputError(str(error), obj=name_in_errors(owner), field="spec.selector") from error


def _with_namespace(each: T) -> T:
    """Return the object with a namespace: `default` if the manifest omits it."""
    if each.metadata.namespace:
        return each
    metadata = each.metadata.model_copy(update={"namespace": DEFAULT_NAMESPACE})
    return each.model_copy(update={"metadata": metadata})


def _namespaces(listed: Iterable[Namespace], pods: Iterable[Pod]) -> Iterator[Namespace]:
    """Yield the listed namespaces, and those that occur only in pods, each with `NAME_LABEL`."""
    listed_names = set()
    for each in listed:
        listed_names.add(each.metadata.name)
        yield _with_name_label(each.metadata)
    for name in sorted(
        {pod.metadata.namespace or DEFAULT_NAMESPACE for pod in pods} - listed_names
    ):
        yield _with_name_label(ObjectMeta(name=name))


def _with_name_label(metadata: ObjectMeta) -> Namespace:
    labels = {**metadata.labels, NAME_LABEL: metadata.name}
    return Namespace(metadata=metadata.model_copy(update={"labels": labels}))
