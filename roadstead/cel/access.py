"""Fields, keys and indices: what `a.b`, `a[b]`, `a.?b` and `has(a.b)` yield.

To qualify a value, as upstream calls it, is to read a field, key or index of it. Upstream: cel-go
0.26 interpreter/attributes.go (refQualify, applyQualifiers); for maps of devices, which have empty
maps for missing domains, dynamic-resource-allocation cel/compile.go.
"""

from __future__ import annotations

from roadstead.cel.errors import CelRunError
from roadstead.cel.values import (
    NONE,
    DomainMap,
    Optional,
    Uint,
    Value,
    content_of,
    convertible,
    encoded_key,
    go_text,
    go_type,
    type_name,
)

_KEY_TYPES = frozenset({str, int, Uint, bool, float})


def no_key(key: Value) -> CelRunError:
    """Return the error for a missing key."""
    return CelRunError(f"no such key: {go_text(key)}")


def qualify(value: Value, key: Value) -> Value:
    """Return the entry of a map, list or optional; raises CelRunError."""
    _check_key(key)
    if isinstance(value, dict):
        # Keys that are bools are encoded: True equals 1 in a dict.
        stored_key = encoded_key(key)
        # A DomainMap returns an empty map for a domain that it lacks.
        if stored_key in value or isinstance(value, DomainMap):
            return convertible(value[stored_key])
        raise no_key(key)
    if isinstance(value, list):
        index = _index(key)
        if 0 <= index < len(value):
            return convertible(value[index])
        raise CelRunError(f"index out of bounds: {go_text(key)}")
    if isinstance(value, Optional):
        return qualify_if_present(content_of(value), key) if value.has_value else NONE
    raise no_key(key)


def qualify_if_present(value: Value, key: Value) -> Optional:
    """Return the entry as an optional; raises CelRunError only for indices of a wrong type."""
    _check_key(key)
    if isinstance(value, Optional):
        return qualify_if_present(content_of(value), key) if value.has_value else NONE
    if isinstance(value, dict):
        stored_key = encoded_key(key)
        if stored_key in value or isinstance(value, DomainMap):
            return Optional(value[stored_key])
    elif isinstance(value, list):
        index = _index(key)
        if 0 <= index < len(value):
            return Optional(value[index])
    return NONE


def is_present(value: Value, key: Value) -> bool:
    """Return `has(value.key)`; raises as `qualify_if_present`."""
    return qualify_if_present(value, key).has_value


def _check_key(key: Value) -> None:
    if type(key) not in _KEY_TYPES:
        raise CelRunError(f"invalid qualifier type: {go_type(key)}")


def _index(key: Value) -> int:
    if type(key) is int or isinstance(key, Uint):
        return int(key)
    if isinstance(key, float):
        # Not whole, or too large for any list.
        if key != key // 1 or abs(key) > 2**62:
            raise CelRunError(f"unsupported index value {go_text(key)} in list")
        return int(key)
    raise CelRunError(f"unsupported index type '{type_name(key)}' in list")
