"""Rate at which the node lifecycle controller taints nodes with NoExecute, by zone.

Upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go (burst 1), and
ComputeZoneState, ReducedQPSFunc and HealthyQPSFunc in node_lifecycle_controller.go, 1.34.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from roadstead.simulator.scenario import ControllerTimings
from roadstead.simulator.times import SECOND_US

FEW_NODES: Final = 2
"""A zone with so few nodes that are not ready is normal with any share of them."""


class ZoneState(StrEnum):
    """State of a zone by the share of its nodes that are not ready."""

    NORMAL = "normal"
    PARTIAL_DISRUPTION = "partially disrupted"
    FULL_DISRUPTION = "fully disrupted"


def zone_state(nodes: int, not_ready: int, timings: ControllerTimings) -> ZoneState:
    """Return the state of a zone of at least one node."""
    if not_ready == nodes:
        return ZoneState.FULL_DISRUPTION
    is_unhealthy = not_ready * 10_000 >= timings.unhealthy_zone_basis_points * nodes
    if not_ready > FEW_NODES and is_unhealthy:
        return ZoneState.PARTIAL_DISRUPTION
    return ZoneState.NORMAL


def zone_rate(state: ZoneState, nodes: int, timings: ControllerTimings) -> float:
    """Return how many nodes per second are tainted in a zone; another zone has ready nodes."""
    if state is not ZoneState.PARTIAL_DISRUPTION:
        return timings.eviction_per_s
    return timings.secondary_eviction_per_s if nodes > timings.large_cluster_nodes else 0.0


@dataclass(slots=True)
class EvictionRate:
    """A token bucket with room for one token; each taint uses one.

    per_s: tokens per second, 0 for none. free_us: time from which on it has a token.
    """

    per_s: float
    free_us: int = 0

    def next_us(self, now_us: int) -> int | None:
        """Return when a node may be tainted; None for never."""
        return max(self.free_us, now_us) if self.per_s > 0 else None

    def accept(self, now_us: int) -> bool:
        """Use the token; return whether there was one."""
        if self.per_s <= 0 or now_us < self.free_us:
            return False
        self.free_us = now_us + max(1, round(SECOND_US / self.per_s))
        return True

    def change(self, per_s: float, now_us: int) -> None:
        """Use another rate; the bucket is full if it was, and else begins empty, as upstream."""
        if per_s == self.per_s:
            return
        was_full = self.accept(now_us)
        self.per_s, self.free_us = per_s, now_us
        if not was_full:
            self.accept(now_us)
