"""Deletion order of a ReplicaSet's pods (upstream controller_utils.go, ActivePodsWithRanks).

The first rule by which two pods differ decides; the pod that it names first is deleted first:

1. without a node, with one
2. not running, running (with a node, a pod that does not run yet is pending)
3. not ready, ready: a pod is ready when it runs
4. a lower, a higher deletion cost: not simulated
5. with more pods of the same Deployment on its node, with fewer
6. ready for a shorter, for a longer time, by powers of two; of those with the same power, by UID
7. more, fewer restarts: no container is restarted
8. younger, older, in the same way
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from roadstead.simulator.simulated_pods import LifeState, SimulatedPod
from roadstead.simulator.times import SECOND_US


def first_to_delete(
    pods: Iterable[SimulatedPod], related: Iterable[SimulatedPod], wanted: int, now_us: int
) -> list[SimulatedPod]:
    """Return the pods to delete, the first one first, or all of them in any order.

    related: all active pods of the same Deployment, or of the ReplicaSet itself. wanted: how many.
    """
    candidates = list(pods)
    if wanted >= len(candidates):
        return candidates
    related_on = Counter(pod.node for pod in related if pod.node)
    return sorted(candidates, key=lambda pod: _rank(pod, related_on, now_us))[:wanted]


def _rank(
    pod: SimulatedPod, related_on: Mapping[str, int], now_us: int
) -> tuple[int, int, int, int, str]:
    """Return the key to sort by: the simulated ones of the rules above, in their order.

    related_on: node → number of related pods.
    """
    is_running = pod.state is LifeState.RUNNING
    since_us = pod.started_us if is_running else pod.created_us
    number = related_on[pod.node] if pod.node else 0
    return bool(pod.node), is_running, -number, _log2_age(now_us, since_us), pod.uid


def _log2_age(now_us: int, since_us: int) -> int:
    """Return the logarithm of an age in nanoseconds to base 2, rounded down; -1 for age 0."""
    # The API stores times in whole seconds.
    age_us = now_us - since_us // SECOND_US * SECOND_US
    return (age_us * 1_000).bit_length() - 1
