"""Substitutes: one pod's facts that stand for many pods whose claims differ only in their names.

A pod whose claims were made from a template differs from its siblings in its own name, its UID and
the names of its claims. As long as no claim is allocated, every node has the same answer for all of
them. So they are evaluated by facts without the pod's name, and with a *substitute claim* in place
of each claim: one for all claims with equal requests, under a name of its own. An answer that names
a pod or a claim, such as an error, needs the pod's own facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from roadstead.devices.claims import Claims, PodClaimError, claims_of
from roadstead.facts.devices import ClaimSpec, DeviceClaimFacts
from roadstead.facts.pod import PodClaim, PodFacts

MARK = "/"
"""First character of the names of substitute claims; no object has such a name."""

SPECS_MAX: Final = 4096
"""Specs that are found by their identity; beyond, all are dropped, and found by their value."""

SHAPES_MAX: Final = 4096
"""Shapes of claims with a substitute claim; beyond, all are dropped, and get new names."""

DeviceClaims = tuple[DeviceClaimFacts, ...]
Shape = tuple[str, ClaimSpec, bool]
"""Shape of a claim: namespace, spec, and whether it is for extended resources; not its name."""


@dataclass(frozen=True, slots=True)
class _SubstituteClaim(PodClaim):
    """A substitute claim as pods name it. claim_facts: the claim itself.

    It is here because facts may be in use when `Substitutes` has dropped their claims.
    """

    claim_facts: DeviceClaimFacts = field(kw_only=True, compare=False)


class Substitutes:
    """The substitute claims of one process. claims: all claims, by `namespace/name`."""

    def __init__(self, claims: Claims) -> None:
        self._claims: Mapping[str, DeviceClaimFacts] = claims
        self._by_shape: dict[Shape, _SubstituteClaim] = {}
        # No name is used twice, because facts with a dropped name may be in use.
        self._next_name = count()
        # By namespace, id of the spec, and whether it is for extended resources. Most claims with
        # equal specs have the same spec object, and its id costs less than its hash.
        self._by_spec: dict[tuple[str, int, bool], tuple[ClaimSpec, _SubstituteClaim]] = {}

    def claims_for(self, pod: PodFacts) -> tuple[PodClaim, ...] | None:
        """Return the substitutes of a pod's claims; None if the pod needs its own facts."""
        claims = self._unallocated(pod)
        if not claims:
            return None
        return tuple([self._substitute(each) for each in claims])

    def substitutes_for(self, substitute: PodFacts, pod: PodFacts) -> bool:
        """Whether a substitute still has the substitute claims of a pod."""
        return substitute.device_claims == self.claims_for(pod)

    def _unallocated(self, pod: PodFacts) -> DeviceClaims | None:
        """Return a pod's claims; None if one is unusable, allocated or named twice."""
        try:
            claims = claims_of(self._claims, pod)
        except PodClaimError:
            return None
        for each in claims:
            if each.allocation is not None or each.is_in_flight:
                return None
        if len(claims) > 1 and len({each.key for each in claims}) < len(claims):
            return None
        return claims

    def in_place_of(self, claims: Sequence[DeviceClaimFacts]) -> DeviceClaims:
        """Return the substitutes of claims, which are the same object for equal requests."""
        return tuple([self._substitute(each).claim_facts for each in claims])

    def _substitute(self, claim: DeviceClaimFacts) -> _SubstituteClaim:
        key = claim.namespace, id(claim.spec), claim.is_for_extended_resources
        known = self._by_spec.get(key)
        if known is None:
            if len(self._by_spec) >= SPECS_MAX:
                self._by_spec.clear()
            # The spec is kept, so that no other one gets its id.
            known = self._by_spec[key] = claim.spec, self._substitute_of_shape(claim)
        return known[1]

    def _substitute_of_shape(self, claim: DeviceClaimFacts) -> _SubstituteClaim:
        shape = claim.namespace, claim.spec, claim.is_for_extended_resources
        found = self._by_shape.get(shape)
        if found is None:
            if len(self._by_shape) >= SHAPES_MAX:
                # Both, because equal specs must not have two names.
                self._by_shape.clear()
                self._by_spec.clear()
            name = f"{MARK}{next(self._next_name)}"
            claim_facts = DeviceClaimFacts(
                claim.namespace,
                name,
                spec=claim.spec,
                is_for_extended_resources=claim.is_for_extended_resources,
            )
            found = self._by_shape[shape] = _SubstituteClaim(
                "", claim_name=name, claim_facts=claim_facts
            )
        return found

    def claims_of(self, pod: PodFacts) -> DeviceClaims:
        """Return the claims of a pod, or the substitute claims of a substitute.

        Raises:
            PodClaimError: as `claims.claims_of`.
        """
        shared = [
            each.claim_facts for each in pod.device_claims if isinstance(each, _SubstituteClaim)
        ]
        return tuple(shared) or claims_of(self._claims, pod)


def is_substitute(pod: PodFacts) -> bool:
    """Whether these are the facts of a substitute."""
    claims = pod.device_claims
    return bool(claims) and isinstance(claims[0], _SubstituteClaim)
