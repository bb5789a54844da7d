"""The controllers whose pods a node wants to avoid, read from its annotation.

Upstream: component-helpers/scheduling/corev1/helpers.go (GetAvoidPodsFromNodeAnnotations). A
malformed annotation is ignored as a whole. Keys match in any case, as in Go's encoding/json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeVar

from roadstead.protocol.json_escapes import without_half_pairs

PREFER_AVOID_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
# Fields of podController, all strings.
_TEXTS: Final = ("apiVersion", "kind", "name", "uid")

T = TypeVar("T")
"""The Python class of a JSON type."""


class _MalformedError(ValueError):
    pass


def avoided_controllers(annotations: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return sorted (kind, UID) of the controllers to avoid; empty for a malformed annotation."""
    text = annotations.get(PREFER_AVOID_PODS, "")
    if not text:
        return ()
    try:
        document = json.loads(without_half_pairs(text), parse_constant=_refuse)
        entries = _field(_as(dict, document), "preferAvoidPods", list)
        return tuple(sorted({_controller(_as(dict, entry)) for entry in entries}))
    except (ValueError, RecursionError):
        return ()


def _refuse(constant: str) -> float:
    """Refuse NaN and infinities, which Go does not decode."""
    raise _MalformedError(constant)


def _controller(entry: dict[str, object]) -> tuple[str, str]:
    signature = _field(entry, "podSignature", dict)
    controller = _field(signature, "podController", dict)
    texts = {name: _field(controller, name, str) for name in _TEXTS}
    return texts["kind"], texts["uid"]


def _field(mapping: dict[str, object], name: str, kind: type[T]) -> T:
    """Return a field whose name matches in any case; empty if it is missing or null."""
    # As in Go, the last of several matching keys counts.
    field: object = None
    for key, value in mapping.items():
        field = value if key.lower() == name.lower() else field
    return _as(kind, field)


def _as(kind: type[T], value: object) -> T:
    """Return a value of a JSON type, an empty one for null; _MalformedError for another type."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise _MalformedError(f"{value!r} is not a {kind.__name__}")
    return value
