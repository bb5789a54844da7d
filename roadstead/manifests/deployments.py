"""Deployments to replica sets, as their controller scales them and rolls them out.

    template as before ──► the replica set is scaled up to what the deployment wants
    another template   ──► a replica set is made for all replicas; the old pods stay
    no replica set     ──► one is made for what running pods of the deployment leave

Pods that run are never taken away: of a deployment that wants fewer than there are, none is made.

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
    object_key,
    workload_key,
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
    """there: those of the manifests, as their deployments want them. made: those that were made."""

    there: tuple[ReplicaSet, ...]
    made: tuple[ReplicaSet, ...]
    notes: tuple[str, ...]


def replica_sets_for(manifests: Manifests) -> ReplicaSets:
    """The replica sets that the deployments among the manifests come to."""
    there = list(manifests.replica_sets)
    made: list[ReplicaSet] = []
    notes: list[str] = []
    for deployment in manifests.deployments:
        key, wanted = workload_key(deployment), deployment.spec.replicas
        own = [place for place, each in enumerate(there) if controller_key(each) == key]
        total = sum(there[place].spec.replicas for place in own)
        same = [place for place in own if _is_same(there[place].spec.template, deployment)]
        if same:
            grown = there[same[0]].spec.replicas + max(0, wanted - total)
            there[same[0]] = _scaled(there[same[0]], grown)
        elif own:
            made.append(_scaled(_replica_set(deployment), wanted))
            notes += _rollout_note(deployment, wanted, total)
        else:
            running = sum(1 for _ in _adrift(deployment, manifests.pods))
            made.append(_scaled(_replica_set(deployment), max(0, wanted - running)))
    return ReplicaSets(tuple(there), tuple(made), tuple(notes))


def _rollout_note(deployment: Deployment, wanted: int, total: int) -> Iterator[str]:
    if total:
        namespace, name = object_key(deployment)
        yield (
            f"Deployment {namespace}/{name} has another template than the pods that run: "
            f"{wanted:,} new ones are placed beside {total:,} old ones, which stay."
        )


def _is_same(template: PodTemplate, deployment: Deployment) -> bool:
    """Whether a replica set makes the pods that a deployment wants."""
    return _comparable(template) == _comparable(deployment.spec.template)


def _comparable(template: PodTemplate) -> tuple[object, object]:
    labels = {k: v for k, v in template.metadata.labels.items() if k != TEMPLATE_HASH}
    scheduler = template.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
    return labels, template.spec.model_copy(update={"scheduler_name": scheduler})


def _adrift(deployment: Deployment, pods: Sequence[Pod]) -> Iterator[Pod]:
    """Pods of a deployment whose replica set is not among the manifests: its name is the
    deployment's and the hash of their template."""
    namespace, name = object_key(deployment)
    for pod in pods:
        revision = pod.metadata.labels.get(TEMPLATE_HASH, "")
        made = joined_name(name, revision)
        if revision and controller_key(pod) == ("ReplicaSet", namespace, made):
            yield pod


def _scaled(replica_set: ReplicaSet, replicas: int) -> ReplicaSet:
    spec = replica_set.spec.model_copy(update={"replicas": replicas})
    return replica_set.model_copy(update={"spec": spec})


def _replica_set(deployment: Deployment) -> ReplicaSet:
    revision = template_hash(deployment.spec.template)
    mark = {TEMPLATE_HASH: revision}
    template = deployment.spec.template
    labels = template.metadata.labels | mark
    selector = deployment.spec.selector or LabelSelector()
    return ReplicaSet(
        metadata=owned_meta(deployment, joined_name(deployment.metadata.name, revision), labels),
        spec=deployment.spec.model_copy(
            update={
                "selector": selector.model_copy(
                    update={"match_labels": selector.match_labels | mark}
                ),
                "template": template.model_copy(
                    update={"metadata": template.metadata.model_copy(update={"labels": labels})}
                ),
            }
        ),
    )


def owned_meta(owner: Workload, name: str, labels: dict[str, str]) -> ObjectMeta:
    """The metadata of what a workload makes."""
    reference = controlled_by(owner, owner.metadata.uid)
    namespace = owner.metadata.namespace or DEFAULT_NAMESPACE
    return ObjectMeta(name=name, namespace=namespace, labels=labels, owner_references=(reference,))
