"""Groups of resources by their names (upstream pkg/apis/core/v1/helper and scheduler/util)."""

from __future__ import annotations

from functools import lru_cache

from roadstead.protocol.names import is_extended_resource

STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
HUGE_PAGES_PREFIX = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
NATIVE_DOMAIN = "kubernetes.io/"


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Whether a resource is one of upstream's scalar resources; other unknown ones do not count."""
    return (
        is_extended_resource(name)
        or name.startswith((HUGE_PAGES_PREFIX, ATTACHABLE_VOLUMES_PREFIX))
        or NATIVE_DOMAIN in name
    )


def is_counted_resource(name: str) -> bool:
    """Whether amounts of the resource are counted for nodes and pods."""
    return name in STANDARD_RESOURCES or is_scalar_resource(name)
