"""The API server's checks of the claims of devices that a pod and its containers name.

Upstream: validatePodResourceClaims and validateResourceClaimNames in
pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roadstead.facts.identity_cache import cached_by_identity
from roadstead.manifests.field_problem import FieldProblem, Path, problem_at
from roadstead.protocol.names import dns_label_errors, subdomain_errors
from roadstead.protocol.objects import Container
from roadstead.protocol.objects.pod import ContainerClaim, PodResourceClaim


@cached_by_identity
def _used_claims(containers: tuple[Container, ...]) -> tuple[tuple[Path, ContainerClaim], ...]:
    """Return the claims that containers name in their resources, each with its path."""
    return tuple(
        ((container_index, "resources", "claims", index), claim)
        for container_index, container in enumerate(containers)
        if container.resources is not None
        for index, claim in enumerate(container.resources.claims)
    )


def used_claims_problem(
    containers: tuple[Container, ...], pod_claims: Sequence[PodResourceClaim]
) -> FieldProblem | None:
    """Return the first claim of a container that its pod does not name, or that occurs twice."""
    used = _used_claims(containers)
    if not used:
        return None
    names = {each.name for each in pod_claims}
    # Index of the container, claim, request of the claim.
    earlier: set[tuple[str | int, str, str]] = set()
    for path, claim in used:
        if claim.name not in names:
            return problem_at(path, claim.name, "must be the name of an entry of `resourceClaims`")
        use = path[0], claim.name, claim.request
        if use in earlier:
            return problem_at(path, claim.name, "must be unique")
        earlier.add(use)
    return None


def pod_claim_problems(claims: Sequence[PodResourceClaim]) -> Iterator[FieldProblem]:
    """Yield the problems of the claims in a pod's spec."""
    earlier: set[str] = set()
    for index, each in enumerate(claims):
        if rules := dns_label_errors(each.name):
            yield problem_at((index, "name"), each.name, *rules)
        if each.name in earlier:
            yield problem_at((index, "name"), each.name, "must be unique")
        earlier.add(each.name)
        sources = {
            "resourceClaimName": each.resource_claim_name,
            "resourceClaimTemplateName": each.resource_claim_template_name,
        }
        named = {field: name for field, name in sources.items() if name is not None}
        if len(named) != 1:
            rule = "exactly one of `resourceClaimName`, `resourceClaimTemplateName` is required"
            yield problem_at((index,), each.name, rule)
        for field, name in named.items():
            if rules := subdomain_errors(name):
                yield problem_at((index, field), name, *rules)
