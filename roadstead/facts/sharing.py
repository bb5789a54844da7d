"""Answers remembered by identity: parts of manifests are shared, and so is what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Part = TypeVar("Part")
Answer = TypeVar("Answer")

REMEMBERED_MAX = 32768


def by_identity(function: Callable[[Part], Answer]) -> Callable[[Part], Answer]:
    """The function, asked once for each immutable object; no hash of a large object is taken.

    The object is kept beside its answer, so that its id is not given to another meanwhile.
    """
    known: dict[int, tuple[Part, Answer]] = {}

    def remembered(part: Part) -> Answer:
        found = known.get(id(part))
        if found is not None:
            return found[1]
        if len(known) >= REMEMBERED_MAX:
            known.clear()
        answer = function(part)
        known[id(part)] = (part, answer)
        return answer

    return remembered
