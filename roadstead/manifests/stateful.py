"""Stateful sets: numbered pods, each with its own claims (upstream stateful_set_utils.go)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.manifests.names import joined_name, template_hash
from roadstead.manifests.templates import namespaced_name, pod_of
from roadstead.protocol.objects import (
    ClaimSource,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    StatefulSet,
    Volume,
)


def stateful_pods(stateful: StatefulSet, existing_names: Set[str]) -> Iterator[Pod]:
    """Yield the pods that a stateful set lacks, by ordinal.

    existing_names: of the pods in its namespace.
    """
    revision = f"{stateful.metadata.name}-{template_hash(stateful.spec.template)}"
    for ordinal in _ordinals(stateful):
        name = joined_name(stateful.metadata.name, str(ordinal))
        if name not in existing_names:
            yield _with_claims(_numbered_pod(stateful, name, ordinal, revision), stateful, ordinal)


def stateful_claims(
    sets: Sequence[StatefulSet], existing: Sequence[PersistentVolumeClaim]
) -> Iterator[tuple[StatefulSet, PersistentVolumeClaim]]:
    """Yield (stateful set, claim) for the claims of its templates that do not exist yet."""
    existing_names = set(map(namespaced_name, existing))
    for stateful in sets:
        namespace = stateful.metadata.namespace or DEFAULT_NAMESPACE
        for template in stateful.spec.volume_claim_templates:
            for ordinal in _ordinals(stateful):
                name = _claim_name(template.metadata.name, stateful, ordinal)
                if (namespace, name) not in existing_names:
                    labels = template.metadata.labels
                    meta = ObjectMeta(name=name, namespace=namespace, labels=labels)
                    yield stateful, PersistentVolumeClaim(metadata=meta, spec=template.spec)


def _ordinals(stateful: StatefulSet) -> range:
    start = stateful.spec.ordinals.start
    return range(start, start + stateful.spec.replicas)


def _claim_name(template: str, stateful: StatefulSet, ordinal: int) -> str:
    return joined_name(template, stateful.metadata.name, str(ordinal))


def _numbered_pod(stateful: StatefulSet, name: str, ordinal: int, revision: str) -> Pod:
    labels = {
        "apps.kubernetes.io/pod-index": str(ordinal),
        "controller-revision-hash": revision,
        "statefulset.kubernetes.io/pod-name": name,
    }
    return pod_of(stateful, stateful.spec.template, name, labels)


def _with_claims(pod: Pod, stateful: StatefulSet, ordinal: int) -> Pod:
    """Return the pod with a volume for each claim template, in place of a volume of its name."""
    templates = [each.metadata.name for each in stateful.spec.volume_claim_templates]
    if not templates:
        return pod
    others = [volume for volume in pod.spec.volumes if volume.name not in templates]
    claimed = [
        Volume(
            name=name,
            persistent_volume_claim=ClaimSource(claim_name=_claim_name(name, stateful, ordinal)),
        )
        for name in templates
    ]
    return pod.model_copy(
        update={"spec": pod.spec.model_copy(update={"volumes": (*claimed, *others)})}
    )
