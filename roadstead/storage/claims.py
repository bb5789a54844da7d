"""The claims that a pod names, and what is wrong with them.

A generic ephemeral volume stands for a claim named after pod and volume, which the pod must own.
Upstream: plugins/volumebinding/{volume_binding,binder}.go (podHasPVCs, GetPodVolumeClaims),
component-helpers/storage/ephemeral.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from roadstead.facts.pod import PodFacts, Volume
from roadstead.facts.storage import ClaimFacts
from roadstead.storage.state import StorageState

CLAIM, EPHEMERAL = "persistentVolumeClaim", "ephemeral"


class ClaimError(Exception):
    """A claim of a pod cannot be used; the text is upstream's. is_missing: there is none such."""

    def __init__(self, text: str, *, is_missing: bool = False) -> None:
        super().__init__(text)
        self.is_missing = is_missing


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims in the order of its volumes.

    waiting: unbound, of a class that waits for a first consumer. immediate: unbound otherwise.
    """

    bound: tuple[ClaimFacts, ...]
    waiting: tuple[ClaimFacts, ...]
    immediate: tuple[ClaimFacts, ...]


def claim_volumes(pod: PodFacts) -> Iterator[tuple[Volume, str]]:
    """Volumes that stand for claims, with the name of the claim."""
    for volume in pod.volumes:
        if volume.kind in (CLAIM, EPHEMERAL):
            yield volume, dict(volume.source).get("claimName", "")


def claim_keys(pod: PodFacts) -> tuple[str, ...]:
    """`namespace/name` of every claim that a pod names, ephemeral ones included."""
    return tuple(f"{pod.namespace}/{name}" for _, name in claim_volumes(pod))


def unbound_keys(storage: StorageState, pod: PodFacts) -> tuple[str, ...]:
    """The keys of those claims of a pod that are known and not bound yet."""
    known = ((key, storage.claims.get(key)) for key in claim_keys(pod))
    return tuple(key for key, claim in known if claim is not None and not claim.is_bound)


def not_found(name: str) -> ClaimError:
    return ClaimError(f'persistentvolumeclaim "{name}" not found', is_missing=True)


def check_owner(pod: PodFacts, volume: Volume, claim: ClaimFacts) -> None:
    """ClaimError for an ephemeral volume's claim that another object owns (VolumeIsForPod)."""
    source = dict(volume.source)
    if volume.kind == EPHEMERAL and claim.owner_uid != source.get("podUID", ""):
        raise ClaimError(
            f"PVC {claim.key} was not created for pod {pod.namespace}/{source.get('podName', '')} "
            "(pod is not owner)"
        )


def usable_claims(storage: StorageState, pod: PodFacts) -> list[ClaimFacts]:
    """The claims that a pod names. ClaimError for the first that is missing, lost or going."""
    found = []
    for volume, name in claim_volumes(pod):
        claim = storage.claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            if volume.kind == EPHEMERAL:
                raise ClaimError(
                    "waiting for ephemeral volume controller to create the "
                    f'persistentvolumeclaim "{name}"',
                    is_missing=True,
                )
            raise not_found(name)
        if claim.is_lost:
            raise ClaimError(
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume '
                f'"{claim.volume_name}"'
            )
        if claim.is_terminating:
            raise ClaimError(f'persistentvolumeclaim "{name}" is being deleted')
        check_owner(pod, volume, claim)
        found.append(claim)
    return found


def sorted_out(storage: StorageState, claims: list[ClaimFacts]) -> PodClaims:
    """Claims by how far they are. ClaimError where a class does not say when to bind."""
    bound, waiting, immediate = [], [], []
    for claim in claims:
        if claim.is_bound:
            bound.append(claim)
        elif _waits(storage, claim) and not claim.volume_name:
            waiting.append(claim)
        else:
            immediate.append(claim)
    return PodClaims(tuple(bound), tuple(waiting), tuple(immediate))


def _waits(storage: StorageState, claim: ClaimFacts) -> bool:
    found = storage.classes.get(claim.storage_class)
    if found is None:
        return False
    if not found.binding_mode:
        raise ClaimError(f'VolumeBindingMode not set for StorageClass "{found.name}"')
    return found.waits


def claims_of(storage: StorageState, pod: PodFacts) -> PodClaims:
    """All claims of a pod, sorted out. ClaimError where one cannot be used."""
    return sorted_out(storage, usable_claims(storage, pod))
