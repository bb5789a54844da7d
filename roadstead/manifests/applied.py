"""Counts of what admission applied to created objects, with the first object of each."""

from __future__ import annotations

from collections.abc import Iterator

from roadstead.protocol.objects import PersistentVolumeClaim, Pod

CLAIM = "claims"
POD = "pods"


class AppliedDefaults:
    """Counts by what was applied (`LimitRange default/small`) and by kind of object."""

    def __init__(self) -> None:
        # (kind, what) → number of objects, and the key of the first.
        self._found: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, what: str, key: str, kind: str = POD) -> None:
        """Count one application. key: `namespace/name` of the object; the first is an example."""
        count, first = self._found.get((kind, what), (0, key))
        self._found[kind, what] = count + 1, first

    def notes(self) -> Iterator[str]:
        """Yield one line for each default or rule that was applied, sorted."""
        for (kind, what), (count, first) in sorted(self._found.items(), key=_sort_key):
            example = f" ({first})" if count == 1 else f" (first {first})"
            yield f"Applied, as when {kind} are created: {what}, to {count:,} of them{example}."


def _sort_key(found: tuple[tuple[str, str], tuple[int, str]]) -> tuple[bool, str]:
    (kind, what), _ = found
    return kind != POD, what


def is_stored_pod(pod: Pod) -> bool:
    """Whether an API server has admitted the pod: it has a UID, a time, a node or a phase.

    A pod with a node counts as running, as everywhere in manifests.
    """
    meta = pod.metadata
    return bool(
        meta.uid or pod.spec.node_name or meta.creation_timestamp is not None or pod.status.phase
    )


def is_stored_claim(claim: PersistentVolumeClaim) -> bool:
    """Whether an API server has admitted the claim; one with a volume counts as bound."""
    meta = claim.metadata
    return bool(
        meta.uid
        or claim.spec.volume_name
        or meta.creation_timestamp is not None
        or claim.status.phase
    )
