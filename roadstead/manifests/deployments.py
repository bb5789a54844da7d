"""Expansion of deployments to replica sets, as their controller scales and rolls them out.

    same template   ──► the replica set is scaled up to the deployment's replicas
    other template  ──► a replica set is created for all replicas; the old pods stay
    no replica set  ──► one is created for the replicas that running pods of the deployment leave

Running pods are never removed: a deployment with more pods than replicas gets no new ones.

Upstream: pkg/controller/deployment (sync.go, rolling.go), at the end of a rollout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roadstead.config.model import DEFAULT_SCHEDULER_NAME
from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.facts.pod import TEMPLATE_HASH
from roadstead.manifests.collection import Manifests
from roadstead.manifests.names import joined_name, template_hash
from roadstead.manifests.templates import (
    Workload,
    controlled_by,
    controller_key,
    kind_and_name,
    namespaced_name,
)
from roadstead.protocol.objects import (
    Deployment,
    LabelSelector,
    ObjectMeta,
    Pod,
    PodTemplate,
    ReplicaSet,
)


@dataclass(frozen=True, slots=True)
class ReplicaSets:
    """Replica sets of deployments. existing: those of the manifests, scaled; created: new ones."""

    existing: tuple[ReplicaSet, ...]
    created: tuple[ReplicaSet, ...]
    notes: tuple[str, ...]


def replica_sets_for(manifests: Manifests) -> ReplicaSets:
    """Scale or create the replica sets of the deployments among the manifests."""
    existing = list(manifests.replica_sets)
    created: list[ReplicaSet] = []
    notes: list[str] = []
    for deployment in manifests.deployments:
        key, wanted = kind_and_name(deployment), deployment.spec.replicas
        # Indices in `existing`: of the deployment's replica sets, and of those with its template.
        own = [index for index, each in enumerate(existing) if controller_key(each) == key]
        current = [index for index in own if _is_same(existing[index].spec.template, deployment)]
        total = sum(existing[index].spec.replicas for index in own)
        if current:
            replica_set = existing[current[0]]
            replicas = replica_set.spec.replicas + max(0, wanted - total)
            existing[current[0]] = _scaled(replica_set, replicas)
        elif own:
            created.append(_scaled(replica_set_of(deployment), wanted))
            notes += _rollout_note(deployment, wanted, total)
        else:
            running = sum(1 for _ in _pods_of_missing_replica_set(deployment, manifests.pods))
            created.append(_scaled(replica_set_of(deployment), max(0, wanted - running)))
    return ReplicaSets(tuple(existing), tuple(created), tuple(notes))


def _rollout_note(deployment: Deployment, wanted: int, total: int) -> Iterator[str]:
    if total:
        namespace, name = namespaced_name(deployment)
        yield (
            f"Deployment {namespace}/{name} has another template than the pods that run: "
            f"{wanted:,} new ones are placed next to {total:,} old ones, which stay."
        )


def _is_same(template: PodTemplate, deployment: Deployment) -> bool:
    """Whether a replica set has a deployment's template, apart from the template hash."""
    return _comparable(template) == _comparable(deployment.spec.template)


def _comparable(template: PodTemplate) -> tuple[object, object]:
    labels = {key: value for key, value in template.metadata.labels.items() if key != TEMPLATE_HASH}
    scheduler = template.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
    return labels, template.spec.model_copy(update={"scheduler_name": scheduler})


def _pods_of_missing_replica_set(deployment: Deployment, pods: Sequence[Pod]) -> Iterator[Pod]:
    """Yield the pods of a deployment by the name of their replica set, which the manifests lack.

    That name is the deployment's name and the hash of the pod's template.
    """
    namespace, name = namespaced_name(deployment)
    for pod in pods:
        hash_value = pod.metadata.labels.get(TEMPLATE_HASH, "")
        replica_set = joined_name(name, hash_value)
        if hash_value and controller_key(pod) == ("ReplicaSet", namespace, replica_set):
            yield pod


def _scaled(replica_set: ReplicaSet, replicas: int) -> ReplicaSet:
    spec = replica_set.spec.model_copy(update={"replicas": replicas})
    return replica_set.model_copy(update={"spec": spec})


def replica_set_of(deployment: Deployment) -> ReplicaSet:
    """Return the replica set that a deployment creates for its template and all its replicas."""
    hash_value = template_hash(deployment.spec.template)
    hash_label = {TEMPLATE_HASH: hash_value}
    template = deployment.spec.template
    labels = template.metadata.labels | hash_label
    selector = deployment.spec.selector or LabelSelector()
    return ReplicaSet(
        metadata=owned_meta(deployment, joined_name(deployment.metadata.name, hash_value), labels),
        spec=deployment.spec.model_copy(
            update={
                "selector": selector.model_copy(
                    update={"match_labels": selector.match_labels | hash_label}
                ),
                "template": template.model_copy(
                    update={"metadata": template.metadata.model_copy(update={"labels": labels})}
                ),
            }
        ),
    )


def owned_meta(owner: Workload, name: str, labels: dict[str, str]) -> ObjectMeta:
    """Return the metadata of an object that the controller of a workload creates."""
    reference = controlled_by(owner, owner.metadata.uid)
    namespace = owner.metadata.namespace or DEFAULT_NAMESPACE
    return ObjectMeta(name=name, namespace=namespace, labels=labels, owner_references=(reference,))
