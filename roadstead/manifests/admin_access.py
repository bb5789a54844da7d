"""Admin access to devices: only in namespaces with a label for it.

The API server refuses to create a claim, or a template of claims, that requests admin access in
another namespace. Upstream: AuthorizedForAdmin in pkg/registry/resource/resourceutils.
"""

from __future__ import annotations

from collections.abc import Iterable

from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.protocol.objects import Namespace, ResourceClaim, ResourceClaimTemplate
from roadstead.protocol.objects.devices import ClaimDevices

LABEL = "resource.kubernetes.io/admin-access"
REASON = f"admin access to devices requires the `{LABEL}: true` label on the containing namespace"


class AdminAccess:
    """The namespaces of a cluster; one whose manifest is not given has no labels."""

    def __init__(self, namespaces: Iterable[Namespace]) -> None:
        self._allows = {
            each.metadata.name: each.metadata.labels.get(LABEL) == "true" for each in namespaces
        }

    def refuses(self, found: ResourceClaim | ResourceClaimTemplate) -> bool:
        """Whether an object would not be created; False for stored objects, which exist."""
        if not _requests_admin_access(found) or is_stored(found):
            return False
        return not self._allows.get(_namespace(found), False)

    def refuses_claims_of(self, template: ResourceClaimTemplate) -> bool:
        """Whether no claim can be created from a template.

        A claim from a stored template may be created if the manifest of its namespace is not given.
        """
        return self.refuses(template) or (
            _requests_admin_access(template) and not self._allows.get(_namespace(template), True)
        )


def is_stored(found: ResourceClaim | ResourceClaimTemplate) -> bool:
    """Whether an API server has admitted the object; a claim with an allocation was."""
    meta = found.metadata
    if meta.uid or meta.creation_timestamp is not None:
        return True
    return isinstance(found, ResourceClaim) and found.status.allocation is not None


def _requests_admin_access(found: ResourceClaim | ResourceClaimTemplate) -> bool:
    return any(
        each.exactly is not None and each.exactly.admin_access for each in _devices(found).requests
    )


def _devices(found: ResourceClaim | ResourceClaimTemplate) -> ClaimDevices:
    return found.spec.devices if isinstance(found, ResourceClaim) else found.spec.spec.devices


def _namespace(found: ResourceClaim | ResourceClaimTemplate) -> str:
    return found.metadata.namespace or DEFAULT_NAMESPACE
