"""The claims that a pod uses, and the errors that make them unusable.

Facts are what scheduling reads of a manifest.

A generic ephemeral volume uses a claim named after pod and volume, which the pod must own.
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
    """A claim of a pod cannot be used; upstream's text. is_missing: the claim does not exist."""

    def __init__(self, text: str, *, is_missing: bool = False) -> None:
        super().__init__(text)
        self.is_missing = is_missing


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims in the order of its volumes.

    waiting: unbound, of a class with WaitForFirstConsumer. immediate: unbound otherwise.
    """

    bound: tuple[ClaimFacts, ...]
    waiting: tuple[ClaimFacts, ...]
    immediate: tuple[ClaimFacts, ...]


def claim_volumes(pod: PodFacts) -> Iterator[tuple[Volume, str]]:
    """Yield the volumes that use claims, each with the name of its claim."""
    # `source` of an ephemeral volume contains its claim's name, and its pod's name and UID.
    for volume in pod.volumes:
        if volume.kind in (CLAIM, EPHEMERAL):
            yield volume, dict(volume.source).get("claimName", "")


def claim_keys(pod: PodFacts) -> tuple[str, ...]:
    """Return `namespace/name` of every claim of a pod, those of ephemeral volumes included."""
    return tuple(f"{pod.namespace}/{name}" for _, name in claim_volumes(pod))


def unbound_keys(storage: StorageState, pod: PodFacts) -> tuple[str, ...]:
    """Return the keys of a pod's claims that are known and not bound."""
    claims = ((key, storage.claims.get(key)) for key in claim_keys(pod))
    return tuple(key for key, claim in claims if claim is not None and not claim.is_bound)


def not_found(name: str) -> ClaimError:
    """Return the error of a claim that does not exist."""
    return ClaimError(f'persistentvolumeclaim "{name}" not found', is_missing=True)


def check_owner(pod: PodFacts, volume: Volume, claim: ClaimFacts) -> None:
    """Raise ClaimError if another object owns an ephemeral volume's claim (VolumeIsForPod)."""
    source = dict(volume.source)
    if volume.kind == EPHEMERAL and claim.owner_uid != source.get("podUID", ""):
        raise ClaimError(
            f"PVC {claim.key} was not created for pod {pod.namespace}/{source.get('podName', '')} "
            "(pod is not owner)"
        )


def usable_claims(storage: StorageState, pod: PodFacts) -> list[ClaimFacts]:
    """Return a pod's claims; ClaimError for the first that is missing, lost or terminating."""
    claims = []
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
        claims.append(claim)
    return claims


def grouped_by_state(storage: StorageState, claims: list[ClaimFacts]) -> PodClaims:
    """Group claims by state; ClaimError if a class has no volumeBindingMode."""
    bound, waiting, immediate = [], [], []
    for claim in claims:
        if claim.is_bound:
            bound.append(claim)
        # Upstream: with volume_name, the claim is being bound to that volume already.
        elif _waits(storage, claim) and not claim.volume_name:
            waiting.append(claim)
        else:
            immediate.append(claim)
    return PodClaims(tuple(bound), tuple(waiting), tuple(immediate))


def _waits(storage: StorageState, claim: ClaimFacts) -> bool:
    storage_class = storage.classes.get(claim.storage_class)
    if storage_class is None:
        return False
    if not storage_class.binding_mode:
        raise ClaimError(f'VolumeBindingMode not set for StorageClass "{storage_class.name}"')
    return storage_class.waits


def claims_of(storage: StorageState, pod: PodFacts) -> PodClaims:
    """Return all claims of a pod, grouped by state; ClaimError if one cannot be used."""
    return grouped_by_state(storage, usable_claims(storage, pod))
