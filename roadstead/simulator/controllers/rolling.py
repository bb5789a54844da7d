"""The arithmetic of rollouts (upstream pkg/controller/deployment/util/deployment_util.go)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from roadstead.simulator.scenario import Share


def resolve_bounds(surge: Share, unavailable: Share, replicas: int) -> tuple[int, int]:
    """Return how many pods may be above, and how many below the replicas (ResolveFenceposts).

    Percentages of the surge are rounded up, those of missing pods down; if both are 0, one pod may
    be missing, as a rollout would never begin otherwise.
    """
    above = surge.of(replicas, rounds_up=True)
    below = unavailable.of(replicas, rounds_up=False)
    if not above and not below:
        below = 1
    return above, min(below, replicas)


def new_set_size(size: int, total: int, replicas: int, surge: int) -> int:
    """Return the size of the new ReplicaSet after one step (NewRSNewReplicas).

    size: of the new set. total: of all sets. replicas: of the Deployment.
    """
    room = replicas + surge - total
    return size if room <= 0 else size + min(room, replicas - size)


class SizedSet(Protocol):
    """A ReplicaSet, see there."""

    replicas: int
    max_replicas: int
    order: int


def proportional_sizes(sets: Sequence[SizedSet], replicas: int, surge: int) -> list[int]:
    """Return the sizes of sets after their Deployment was scaled in a rollout (scale in sync.go).

    sets: that want pods. What rounding leaves over is added to the largest set.
    """
    max_replicas = replicas + surge if replicas else 0
    wanted, added = max_replicas - sum(each.replicas for each in sets), 0
    # Among sets of one size, growth prefers newer ones, shrinking older ones.
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


def _proportion(each: SizedSet, replicas: int, max_replicas: int, left: int) -> int:
    """Return by how much a set is scaled with its Deployment (GetReplicaSetProportion).

    left: by how much all sets together may still be scaled; its sign is the direction.
    """
    size = each.replicas
    if not size or not left:
        return 0
    if not replicas:
        fraction = -size
    else:
        fraction = (
            _rounded(size * max_replicas, each.max_replicas) - size if each.max_replicas else 0
        )
    return min(fraction, left) if left > 0 else max(fraction, left)


def _rounded(dividend: int, divisor: int) -> int:
    """Return the quotient of numbers that are not negative, halves rounded up."""
    return (2 * dividend + divisor) // (2 * divisor)
