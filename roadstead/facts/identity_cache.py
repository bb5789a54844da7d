"""Results cached by the identity of their argument: parts of many manifests are one object."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

CACHE_MAX = 32768


def cached_by_identity(function: Callable[[Part], Result]) -> Callable[[Part], Result]:
    """Cache a function of immutable objects by identity, without hashing large objects.

    The cache also keeps the object, so that its id is not reused.
    """
    known: dict[int, tuple[Part, Result]] = {}

    def cached(part: Part) -> Result:
        found = known.get(id(part))
        if found is not None:
            return found[1]
        if len(known) >= CACHE_MAX:
            known.clear()
        result = function(part)
        known[id(part)] = (part, result)
        return result

    return cached
