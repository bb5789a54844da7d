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

ClaimOrTemplate = ResourceClaim | ResourceClaimTemplate


class AdminAccess:
    """The namespaces of a cluster; a namespace without a manifest has no labels."""

    def __init__(self, namespaces: Iterable[Namespace]) -> None:
        # By name of a namespace.
        self._has_label = {
            each.metadata.name: each.metadata.labels.get(LABEL) == "true" for each in namespaces
        }

    def refuses(self, obj: ClaimOrTemplate) -> bool:
        """Whether an object would not be created; False for stored objects, which exist."""
        if not _requests_admin_access(obj) or is_stored(obj):
            return False
        return not self._has_label.get(_namespace(obj), False)

    def refuses_claims_of(self, template: ResourceClaimTemplate) -> bool:
        """Whether no claim can be created from a template.

        A stored template was admitted, so its namespace has the label unless its manifest lacks it.
        """
        return self.refuses(template) or (
            _requests_admin_access(template) and not self._has_label.get(_namespace(template), True)
        )


def is_stored(obj: ClaimOrTemplate) -> bool:
    """Whether an API server has admitted the object; a claim with an allocation was."""
    meta = obj.metadata
    if meta.uid or meta.creation_timestamp is not None:
        return True
    return isinstance(obj, ResourceClaim) and obj.status.allocation is not None


def _requests_admin_access(obj: ClaimOrTemplate) -> bool:
    return any(
        each.exactly is not None and each.exactly.admin_access for each in _devices(obj).requests
    )


def _devices(obj: ClaimOrTemplate) -> ClaimDevices:
    return obj.spec.devices if isinstance(obj, ResourceClaim) else obj.spec.spec.devices


def _namespace(obj: ClaimOrTemplate) -> str:
    return obj.metadata.namespace or DEFAULT_NAMESPACE
