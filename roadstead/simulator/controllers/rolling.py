"""The arithmetic of rollouts (upstream pkg/controller/deployment/util/deployment_util.go)."""

from __future__ import annotations

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


def proportion(size: int, replicas: int, most: int, most_before: int, left: int) -> int:
    """Return by how much a set is scaled if its Deployment is (GetReplicaSetProportion).

    most, most_before: greatest number of pods of the Deployment, now and when the set was scaled
    last. left: by how much all sets together may still be scaled; its sign is the direction.
    """
    if not size or not left:
        return 0
    if not replicas:
        fraction = -size
    else:
        fraction = _rounded(size * most, most_before) - size if most_before else 0
    return min(fraction, left) if left > 0 else max(fraction, left)


def _rounded(dividend: int, divisor: int) -> int:
    """Return the quotient of numbers that are not negative, halves rounded up."""
    return (2 * dividend + divisor) // (2 * divisor)
