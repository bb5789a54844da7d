"""Kinds of resource names (upstream pkg/apis/core/v1/helper and scheduler/util)."""

from __future__ import annotations

from functools import lru_cache

STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
HUGE_PAGES_PREFIX = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
NATIVE_DOMAIN = "kubernetes.io/"
_QUOTA_PREFIX = "requests."


@lru_cache(maxsize=4096)
def is_extended_resource(name: str) -> bool:
    """A resource of somebody's own domain, such as `nvidia.com/gpu`."""
    if "/" not in name or NATIVE_DOMAIN in name or name.startswith(_QUOTA_PREFIX):
        return False
    return _is_qualified(_QUOTA_PREFIX + name)


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """A resource that a node's scalar map may hold; other unknown names are never counted."""
    return (
        is_extended_resource(name)
        or name.startswith((HUGE_PAGES_PREFIX, ATTACHABLE_VOLUMES_PREFIX))
        or NATIVE_DOMAIN in name
    )


def is_counted_resource(name: str) -> bool:
    """A resource that nodes and pods are summed over."""
    return name in STANDARD_RESOURCES or is_scalar_resource(name)


def _is_qualified(name: str) -> bool:
    prefix, _, base = name.partition("/")
    return bool(prefix) and 0 < len(base) <= 63 and len(prefix) <= 253 and "/" not in base
