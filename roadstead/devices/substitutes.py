"""Substitutes: facts by which pods are evaluated that differ only in the names of their claims.

A pod whose claims were made from a template differs from its siblings in its own name, its UID and
the names of its claims. As long as none of the claims is allocated, no node has another answer for
it than for them. So its class is evaluated by facts that name what the claims ask for in place of
the claims. Whatever names a pod or a claim, such as an error, needs the pod's own facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from roadstead.devices.claims import Claims, PodClaimError, claims_of
from roadstead.facts.devices import ClaimSpec, DeviceClaimFacts
from roadstead.facts.pod import PodClaim, PodFacts

MARK = "/"
"""First character of the names of claims in place of others; no object has such a name."""

SPECS_MAX: Final = 4096
"""Specs that are recognized by their identity."""

SHAPES_MAX: Final = 4096
"""Shapes of claims that are recognized; one that is forgotten gets another name."""

DeviceClaims = tuple[DeviceClaimFacts, ...]
Shape = tuple[str, ClaimSpec, bool]
"""What a claim asks for: its namespace and spec, and whether it is for extended resources."""


@dataclass(frozen=True, slots=True)
class _SharedClaim(PodClaim):
    """A claim in facts that several pods share. asked: a claim with their requests.

    Facts outlive what `Substitutes` remembers, so that they carry it themselves.
    """

    asked: DeviceClaimFacts = field(kw_only=True, compare=False)


class Substitutes:
    """What the claims of pods ask for, each once under a name of its own. claims: all claims."""

    def __init__(self, claims: Claims) -> None:
        self._claims: Mapping[str, DeviceClaimFacts] = claims
        self._by_shape: dict[Shape, _SharedClaim] = {}
        # No name is used again, as facts with forgotten ones may be left.
        self._next_name = count()
        # By namespace, identity of the spec, and whether it is for extended resources. Most claims
        # with equal specs have one spec, and its identity is found sooner than its hash.
        self._by_spec: dict[tuple[str, int, bool], tuple[ClaimSpec, _SharedClaim]] = {}

    def claims_for(self, pod: PodFacts) -> tuple[PodClaim, ...] | None:
        """Return the claims in place of a pod's own; None if its claims themselves must be read."""
        claims = self.waiting(pod)
        if not claims:
            return None
        return tuple([self._shared(each) for each in claims])

    def substitutes_for(self, substitute: PodFacts, pod: PodFacts) -> bool:
        """Whether facts in place of a pod's own still are right for its claims."""
        return substitute.device_claims == self.claims_for(pod)

    def waiting(self, pod: PodFacts) -> DeviceClaims | None:
        """Return a pod's claims if they can be used, differ, and none of them is allocated."""
        try:
            claims = claims_of(self._claims, pod)
        except PodClaimError:
            return None
        if any(each.allocation is not None or each.is_in_flight for each in claims):
            return None
        if len(claims) > 1 and len({each.key for each in claims}) < len(claims):
            return None
        return claims

    def alike(self, claims: DeviceClaims) -> DeviceClaims:
        """Return the claims in place of these: equal for claims that ask for the same."""
        return tuple([self._shared(each).asked for each in claims])

    def _shared(self, claim: DeviceClaimFacts) -> _SharedClaim:
        key = claim.namespace, id(claim.spec), claim.is_for_extended_resources
        known = self._by_spec.get(key)
        if known is None:
            if len(self._by_spec) >= SPECS_MAX:
                self._by_spec.clear()
            # The spec is kept, so that no other one gets its id.
            known = self._by_spec[key] = claim.spec, self._of_shape(claim)
        return known[1]

    def _of_shape(self, claim: DeviceClaimFacts) -> _SharedClaim:
        shape = claim.namespace, claim.spec, claim.is_for_extended_resources
        found = self._by_shape.get(shape)
        if found is None:
            if len(self._by_shape) >= SHAPES_MAX:
                # Together: equal specs must not have two names.
                self._by_shape.clear()
                self._by_spec.clear()
            name = f"{MARK}{next(self._next_name)}"
            asked = DeviceClaimFacts(
                claim.namespace,
                name,
                spec=claim.spec,
                is_for_extended_resources=claim.is_for_extended_resources,
            )
            found = self._by_shape[shape] = _SharedClaim("", claim_name=name, asked=asked)
        return found

    def claims_of(self, pod: PodFacts) -> DeviceClaims:
        """Return the claims of a pod, or those in facts that several pods share.

        Raises:
            PodClaimError: as of the function of this name.
        """
        shared = [each.asked for each in pod.device_claims if isinstance(each, _SharedClaim)]
        return tuple(shared) or claims_of(self._claims, pod)


def is_substitute(pod: PodFacts) -> bool:
    """Whether several pods share facts, in place of their own."""
    claims = pod.device_claims
    return bool(claims) and isinstance(claims[0], _SharedClaim)
