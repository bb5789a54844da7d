"""Expansion of deployments to replica sets, as their controller scales and rolls them out.

    same template   ──► the replica set is scaled up to the deployment's replicas
    other template  ──► a replica set is created for all replicas; the old pods stay
    no replica set  ──► one is created for the replicas that have no running pod

Running pods are never removed: a deployment with more pods than replicas gets no new ones.

Upstream: pkg/controller/deployment (sync.go, rolling.go), at the end of a rollout.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from roadstead.config.model import DEFAULT_SCHEDULER_NAME
from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.facts.pod import TEMPLATE_HASH
from roadstead.manifests.collection import Manifests
from roadstead.manifests.names import joined_name, template_hash
from roadstead.manifests.templates import (
    OwnerKey,
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

_START_CHARS: Final = 128
"""The name of a replica set begins with at least so many characters of its deployment's name.

`joined_name` cuts the deployment's name only to make space for the hash, at most 63 characters.
"""


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
    # By controller: indices in `existing`.
    indices_of: defaultdict[OwnerKey, list[int]] = defaultdict(list)
    for index, each in enumerate(existing):
        indices_of[controller_key(each)].append(index)
    orphans = _Orphans(manifests.pods if manifests.deployments else ())
    for deployment in manifests.deployments:
        wanted = deployment.spec.replicas
        # Indices of the deployment's replica sets, and of those with its template.
        indices = indices_of.get(kind_and_name(deployment), [])
        current = [
            index for index in indices if _is_same(existing[index].spec.template, deployment)
        ]
        total = sum(existing[index].spec.replicas for index in indices)
        if current:
            replica_set = existing[current[0]]
            replicas = replica_set.spec.replicas + max(0, wanted - total)
            existing[current[0]] = _scaled(replica_set, replicas)
        elif indices:
            created.append(_scaled(replica_set_of(deployment), wanted))
            notes += _rollout_note(deployment, wanted, total)
        else:
            replicas = max(0, wanted - orphans.count(deployment))
            created.append(_scaled(replica_set_of(deployment), replicas))
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


class _Orphans:
    """Counts of pods by deployment, for deployments whose replica sets the manifests lack.

    A pod names its replica set. The replica set's name is the deployment's name, cut if it is too
    long, a dash, and the hash of the template. The pod has this hash as the label TEMPLATE_HASH.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        # By namespace and the start of the deployment's name: (replica set, hash) → pods.
        self._counts: defaultdict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
        for pod in pods:
            hash_value = pod.metadata.labels.get(TEMPLATE_HASH, "")
            kind, namespace, replica_set = controller_key(pod)
            if hash_value and kind == ReplicaSet.__name__:
                start = replica_set.removesuffix(f"-{hash_value}")[:_START_CHARS]
                self._counts[namespace, start][replica_set, hash_value] += 1

    def count(self, deployment: Deployment) -> int:
        """Return how many pods a deployment has."""
        namespace, name = namespaced_name(deployment)
        counts = self._counts.get((namespace, name[:_START_CHARS]), Counter())
        return sum(
            pods
            for (replica_set, hash_value), pods in counts.items()
            if joined_name(name, hash_value) == replica_set
        )


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
