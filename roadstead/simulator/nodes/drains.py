"""Drains: nodes whose pods are evicted one after the other, as `kubectl drain` does.

    began ── evict each pod ──► all gone: drained
               ▲     └─ refused by its budget ─► tried again after RETRY_US
               └──────────────────────────────────────┘

Pods of DaemonSets stay. An eviction that a budget refuses is tried again every RETRY_US; a try is
left out if no budget has changed since the last one, as it would be refused again.

Upstream: staging/src/k8s.io/kubectl/pkg/drain, 1.34, with --ignore-daemonsets, --force and
--delete-emptydir-data. It drains the nodes of one call in turn; here each has a drain of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from roadstead.simulator.nodes.marks import Cause
from roadstead.simulator.simulated_pods import SimulatedPod
from roadstead.simulator.times import SECOND_US

RETRY_US: Final = 5 * SECOND_US
"""Upstream's pause after a refused eviction."""


@dataclass(slots=True)
class Drain:
    """The drain of a node. removes_node: whether the drained node is removed.

    cause: what began it, such as an occurrence of a scenario's node event (`marks.Cause`).
    waiting: UIDs of pods to evict, in order. leaving: of pods that terminate. reported: of pods
    whose refusal was returned in an `EvictionTry`. tried_us: time of the last try. planned_us: of
    the next one that `Evictions` planned, -1 if it planned none.
    """

    node: str
    cause: Cause
    began_us: int
    removes_node: bool
    waiting: dict[str, None]
    leaving: dict[str, None] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)
    tried_us: int = -1
    planned_us: int = -1

    @property
    def is_done(self) -> bool:
        """Whether no pod is left to evict."""
        return not self.waiting and not self.leaving

    def next_try_us(self, now_us: int) -> int:
        """Return when refused evictions are tried next, given that a budget has changed now."""
        # Tries are made at multiples of RETRY_US since the drain began; this is the next one.
        retries = -(-(now_us - self.began_us) // RETRY_US)
        at_us = self.began_us + retries * RETRY_US
        return at_us if at_us > self.tried_us else at_us + RETRY_US


@dataclass(frozen=True, slots=True)
class EvictionTry:
    """Outcome of one try: UIDs of pods to evict, and (UID, reason) of first refusals."""

    evicted: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]


class Drains:
    """The drains under way: at most one for each pair of node and cause."""

    def __init__(self) -> None:
        self._drains: dict[tuple[str, Cause], Drain] = {}
        # UID → drains that wait for the pod's eviction or end.
        self._of_pod: dict[str, list[Drain]] = {}

    def begin(
        self, node: str, cause: Cause, pods: Iterable[str], now_us: int, *, removes_node: bool
    ) -> Drain:
        """Add the drain of a node. pods: all to evict, by UID."""
        drain = Drain(node, cause, now_us, removes_node, dict.fromkeys(pods))
        self._drains[node, cause] = drain
        for uid in drain.waiting:
            self._of_pod.setdefault(uid, []).append(drain)
        return drain

    def get(self, node: str, cause: Cause) -> Drain | None:
        """Return the drain of a node for a cause; None if there is none, or it is over."""
        return self._drains.get((node, cause))

    def refused_drains(self) -> list[Drain]:
        """Return the drains with evictions that were refused."""
        return [each for each in self._drains.values() if each.waiting]

    def try_evictions(
        self, drain: Drain, evict: Callable[[str], str | None], now_us: int
    ) -> EvictionTry:
        """Try to evict the waiting pods.

        evict: called with a UID; returns the reason of a refusal, "" for none, None for a pod that
        terminates already.
        """
        drain.tried_us = now_us
        evicted, refused = [], []
        for uid in list(drain.waiting):
            reason = evict(uid)
            if reason:
                if uid not in drain.reported:
                    drain.reported.add(uid)
                    refused.append((uid, reason))
                continue
            del drain.waiting[uid]
            drain.leaving[uid] = None
            if reason is not None:
                evicted.append(uid)
        return EvictionTry(tuple(evicted), tuple(refused))

    def pod_ended(self, uid: str) -> list[Drain]:
        """Remove a pod that ended; return the drains that end with it."""
        ended = []
        for drain in self._of_pod.pop(uid, ()):
            drain.waiting.pop(uid, None)
            drain.leaving.pop(uid, None)
            if drain.is_done:
                ended.append(drain)
        return ended

    def end(self, drain: Drain) -> None:
        """End a drain, done or not."""
        self._drains.pop((drain.node, drain.cause), None)
        for uid in (*drain.waiting, *drain.leaving):
            drains = self._of_pod.get(uid, [])
            if drain in drains:
                drains.remove(drain)
            if not drains:
                self._of_pod.pop(uid, None)

    def drop_node(self, node: str) -> None:
        """End all drains of a node that was removed."""
        for drain in [each for (name, _), each in self._drains.items() if name == node]:
            self.end(drain)


def drain_evicts(pod: SimulatedPod) -> bool:
    """Whether a drain evicts a pod."""
    owner = pod.facts.owner
    return owner is None or owner.kind != "DaemonSet"
