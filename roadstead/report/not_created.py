"""Objects that are not created, counted by workload and reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roadstead.report.result import NotCreated


@dataclass(frozen=True, slots=True)
class RefusedObjects:
    """Objects of one kind and workload that admission refuses for the same reason."""

    first: NotCreated
    count: int


def group_not_created(objects: Iterable[NotCreated]) -> tuple[RefusedObjects, ...]:
    """The groups in the order of their first objects."""
    first: dict[tuple[str, str, str], NotCreated] = {}
    counts: dict[tuple[str, str, str], int] = {}
    for each in objects:
        key = each.kind, each.workload, each.reason
        first.setdefault(key, each)
        counts[key] = counts.get(key, 0) + 1
    return tuple(RefusedObjects(first[key], count) for key, count in counts.items())
