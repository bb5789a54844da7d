"""The arithmetic of rollouts (upstream pkg/controller/deployment/util/deployment_util.go)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from roadstead.simulator.share import Share


def resolve_bounds(surge: Share, unavailable: Share, replicas: int) -> tuple[int, int]:
    """Return by how many the pods may exceed, and fall below, the replicas (ResolveFenceposts).

    A percentage of the surge is rounded up, one of unavailable pods down; if both results are 0,
    one pod may be missing, as a rollout could not begin otherwise.
    """
    above = surge.of(replicas, rounds_up=True)
    below = unavailable.of(replicas, rounds_up=False)
    if not above and not below:
        below = 1
    return above, min(below, replicas)


def new_set_size(size: int, total: int, replicas: int, surge: int) -> int:
    """Return the size of the new ReplicaSet after one step (NewRSNewReplicas).

    size: of the new set. total: sum of the sizes of all sets. replicas: of the Deployment.
    """
    room = replicas + surge - total
    return size if room <= 0 else size + min(room, replicas - size)


class SizedSet(Protocol):
    """A ReplicaSet as `proportional_sizes` reads it; see `ReplicaSetState`."""

    replicas: int
    max_replicas: int
    order: int


def proportional_sizes(sets: Sequence[SizedSet], replicas: int, surge: int) -> list[int]:
    """Return the sizes of sets after their Deployment was scaled in a rollout (scale in sync.go).

    sets: those with replicas. The largest set gets the remainder of the rounding.
    """
    max_replicas = replicas + surge if replicas else 0
    # The change of all sets together, and the part of it that is distributed so far.
    wanted, added = max_replicas - sum(each.replicas for each in sets), 0
    # Of sets with equal sizes, newer ones grow first, and older ones shrink first.
    sign = -1 if wanted > 0 else 1
    order = sorted(
        range(len(sets)), key=lambda index: (-sets[index].replicas, sign * sets[index].order)
    )
    sizes = [each.replicas for each in sets]
    for index in order:
        change = _proportion(sets[index], replicas, max_replicas, wanted - added)
        added += change
        sizes[index] += change
    sizes[order[0]] = max(0, sizes[order[0]] + wanted - added)
    return sizes


def _proportion(each: SizedSet, replicas: int, max_replicas: int, remaining: int) -> int:
    """Return by how much a set is scaled with its Deployment (GetReplicaSetProportion).

    remaining: by how much all sets together may still be scaled; its sign is the direction.
    """
    size = each.replicas
    if not size or not remaining:
        return 0
    if not replicas:
        change = -size
    else:
        # `max_replicas` of the set is that of the Deployment when the set was scaled last.
        change = _rounded(size * max_replicas, each.max_replicas) - size if each.max_replicas else 0
    return min(change, remaining) if remaining > 0 else max(change, remaining)


def _rounded(dividend: int, divisor: int) -> int:
    """Return the rounded quotient of two numbers from 0 on; a half is rounded up."""
    return (2 * dividend + divisor) // (2 * divisor)
