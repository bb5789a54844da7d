"""Counts of the defaults and rules that admission applied to created objects, for notes."""

from __future__ import annotations

from collections.abc import Iterator

from roadstead.protocol.objects import PersistentVolumeClaim, Pod

CLAIM = "claims"
POD = "pods"


class AppliedDefaults:
    """Counts of changed or checked objects, by rule and by CLAIM or POD."""

    def __init__(self) -> None:
        # (CLAIM or POD, rule) → number of objects, and namespace/name of the first.
        self._counts: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, rule: str, key: str, kind: str = POD) -> None:
        """Count an object to which a rule, such as "LimitRange default/small", was applied.

        key: namespace/name of the object. kind: CLAIM or POD.
        """
        count, first = self._counts.get((kind, rule), (0, key))
        self._counts[kind, rule] = count + 1, first

    def notes(self) -> Iterator[str]:
        """Yield one line for each rule that was applied, sorted."""
        for (kind, rule), (count, first) in sorted(self._counts.items(), key=_sort_key):
            example = f" ({first})" if count == 1 else f" (first {first})"
            yield f"Applied, as when {kind} are created: {rule}, to {count:,} of them{example}."


def _sort_key(entry: tuple[tuple[str, str], tuple[int, str]]) -> tuple[bool, str]:
    (kind, rule), _ = entry
    return kind != POD, rule


def is_stored_pod(pod: Pod) -> bool:
    """Whether an API server has admitted the pod: it has a UID, a time, a node or a phase.

    In manifests, a pod with a node counts as running, even without a status.
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
