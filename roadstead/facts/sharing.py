"""Results cached by the identity of their arguments, because parts of manifests are shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Part = TypeVar("Part")
Answer = TypeVar("Answer")

CACHE_MAX = 32768


def cached_by_identity(function: Callable[[Part], Answer]) -> Callable[[Part], Answer]:
    """Cache a function of immutable objects by identity, without hashing large objects.

    The cache also keeps the object, so that its id is not reused.
    """
    known: dict[int, tuple[Part, Answer]] = {}

    def cached(part: Part) -> Answer:
        found = known.get(id(part))
        if found is not None:
            return found[1]
        if len(known) >= CACHE_MAX:
            known.clear()
        answer = function(part)
        known[id(part)] = (part, answer)
        return answer

    return cached
