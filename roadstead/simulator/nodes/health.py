"""NodeHealth: nodes that stop answering, as the node lifecycle controller sees them.

States and events, as `scripts/diagrams.py` draws them from `simulator.nodes.health.TABLE`:

    READY   ── stop ──► SILENT
    SILENT  ── answer ──► READY   ── expire ──► UNKNOWN
    UNKNOWN ── answer ──► READY

A silent node is still ready in the API. When it has been silent for the grace period, its status is
unknown: it is not ready, and it gets the NoSchedule taint. The node then waits in the queue of its
zone for the NoExecute taint, which is added at the rate of the zone. When the node answers, the
NoSchedule taint is removed immediately, and NoExecute by the next pass over the nodes. Passes are
made at whole multiples of PASS_US; a pass that would find nothing new is left out.

Upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go, 1.34 (monitorNodeHealth,
processTaintBaseEviction, handleDisruption, doNoExecuteTaintingPass).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from roadstead.facts.node import NodeFacts
from roadstead.simulator.nodes.eviction_rate import (
    EvictionRate,
    ZoneState,
    zone_rate,
    zone_state,
)
from roadstead.simulator.scenario import ControllerTimings
from roadstead.simulator.times import SECOND_US
from roadstead.transitions import History, TransitionTable

PASS_US: Final = 5 * SECOND_US
"""Upstream's --node-monitor-period."""

EXCLUDED_LABEL: Final = "node.kubernetes.io/exclude-disruption"
"""Nodes with this label do not count in the state of their zone."""


class HealthStatus(StrEnum):
    """Status of a node, as the controller knows it."""

    READY = "ready"
    SILENT = "silent"
    UNKNOWN = "unknown"


class NodeEvent(StrEnum):
    """Events of a node's status."""

    STOP = "stop"
    ANSWER = "answer"
    EXPIRE = "expire"


_S, _E = HealthStatus, NodeEvent

TABLE: Final[TransitionTable[HealthStatus, NodeEvent]] = TransitionTable(
    "node health",
    {
        (_S.READY, _E.STOP): _S.SILENT,
        (_S.SILENT, _E.ANSWER): _S.READY,
        (_S.SILENT, _E.EXPIRE): _S.UNKNOWN,
        (_S.UNKNOWN, _E.ANSWER): _S.READY,
    },
)


class TaintAction(StrEnum):
    """The controller's action on the two taints of a node that does not answer."""

    ADD_NO_SCHEDULE = "add NoSchedule"
    REMOVE_NO_SCHEDULE = "remove NoSchedule"
    ADD_NO_EXECUTE = "add NoExecute"
    REMOVE_NO_EXECUTE = "remove NoExecute"


@dataclass(frozen=True, slots=True)
class TaintChange:
    """A taint of a node is added or removed."""

    action: TaintAction
    node: str


@dataclass(frozen=True, slots=True)
class ZoneChange:
    """A zone changed its state. zone: its key (`NodeFacts.zone`), "" for nodes without a zone."""

    zone: str
    state: ZoneState
    not_ready: int
    nodes: int


@dataclass(slots=True)
class _Node:
    """A node.

    is_counted: in the state of its zone. history: its last transitions, for errors. is_tainted:
    with NoExecute.
    """

    zone: str
    is_counted: bool
    status: HealthStatus = HealthStatus.READY
    history: History = ()
    silent_since_us: int = 0
    is_tainted: bool = False


@dataclass(slots=True)
class _Zone:
    """A zone. nodes, not_ready: numbers of counted nodes.

    queue: names of the nodes that wait for the NoExecute taint, in order.
    """

    rate: EvictionRate
    state: ZoneState = ZoneState.NORMAL
    nodes: int = 0
    not_ready: int = 0
    queue: dict[str, None] = field(default_factory=dict)


class NodeHealth:
    """The status of all nodes, and the queues of nodes to taint."""

    def __init__(self, timings: ControllerTimings) -> None:
        self._timings = timings
        self._nodes: dict[str, _Node] = {}
        # By key (`NodeFacts.zone`).
        self._zones: dict[str, _Zone] = {}
        # Names of nodes that the next pass has to check, in order.
        self._watched: dict[str, None] = {}
        # Whether the next pass has to compute the states of the zones.
        self._zones_are_outdated = False
        self._last_pass_us = -1

    # Nodes.

    def add(self, facts: NodeFacts) -> None:
        """Add a node that is ready. AssertionError for one that is known."""
        assert facts.name not in self._nodes, f"node {facts.name} is added twice"
        is_counted = all(key != EXCLUDED_LABEL for key, _ in facts.labels)
        node = self._nodes[facts.name] = _Node(facts.zone, is_counted)
        zone = self._zones.setdefault(node.zone, _Zone(EvictionRate(self._timings.eviction_per_s)))
        zone.nodes += node.is_counted
        self._zones_are_outdated = True

    def drop(self, name: str) -> None:
        """Remove a node. AssertionError for one that is not known."""
        assert name in self._nodes, f"node {name} is not known"
        node = self._nodes.pop(name)
        zone = self._zones[node.zone]
        zone.nodes -= node.is_counted
        zone.not_ready -= node.is_counted and node.status is HealthStatus.UNKNOWN
        zone.queue.pop(name, None)
        self._watched.pop(name, None)
        self._zones_are_outdated = True

    def stop(self, name: str, now_us: int) -> None:
        """Note that a node does not answer. IllegalTransitionError if it had stopped already."""
        node = self._nodes[name]
        self._move(name, node, NodeEvent.STOP)
        node.silent_since_us = now_us
        self._watched[name] = None

    def answer(self, name: str) -> Iterator[TaintChange]:
        """Note that a node answers again. IllegalTransitionError if it had not stopped."""
        node = self._nodes[name]
        was_unknown = node.status is HealthStatus.UNKNOWN
        self._move(name, node, NodeEvent.ANSWER)
        self._watched[name] = None
        if was_unknown:
            yield TaintChange(TaintAction.REMOVE_NO_SCHEDULE, name)

    def is_ready(self, name: str) -> bool:
        """Whether a node is ready in the API; False for one that was not added."""
        node = self._nodes.get(name)
        return node is not None and node.status is not HealthStatus.UNKNOWN

    def answers(self, name: str) -> bool:
        """Whether a node answers now."""
        return self._nodes[name].status is HealthStatus.READY

    # Time.

    def next_us(self, now_us: int) -> int | None:
        """Return the next time after now at which to call `advance`; None if there is none."""
        times = (
            [now_us - now_us % PASS_US + PASS_US]
            if self._watched or self._zones_are_outdated
            else []
        )
        for zone in self._zones.values():
            if zone.queue and (at_us := zone.rate.next_us(now_us)) is not None:
                times.append(at_us)
        return min(times, default=None)

    def advance(self, now_us: int) -> list[TaintChange | ZoneChange]:
        """Make the pass over the nodes if one is due now, and add the NoExecute taints that the
        rates of the zones allow now; return the changes.
        """
        changes: list[TaintChange | ZoneChange] = []
        if not now_us % PASS_US and now_us > self._last_pass_us:
            self._last_pass_us = now_us
            for name in list(self._watched):
                changes += self._check_node(name, now_us)
            if self._zones_are_outdated:
                self._zones_are_outdated = False
                changes += self._update_zone_states(now_us)
        # Taints wait for the rate of their zone, which may allow one between two passes.
        for zone in self._zones.values():
            while zone.queue and zone.rate.accept(now_us):
                name = next(iter(zone.queue))
                del zone.queue[name]
                node = self._nodes[name]
                # A node that answers again while it waits for the rate is not tainted.
                if node.status is HealthStatus.UNKNOWN:
                    node.is_tainted = True
                    changes.append(TaintChange(TaintAction.ADD_NO_EXECUTE, name))
        return changes

    def _check_node(self, name: str, now_us: int) -> Iterator[TaintChange]:
        node = self._nodes[name]
        if node.status is HealthStatus.UNKNOWN:
            # As upstream, which reads the status from before the pass: a node is queued one pass
            # after the pass that found it not ready.
            if not node.is_tainted:
                self._zones[node.zone].queue.setdefault(name)
            del self._watched[name]
            return
        yield from self._stop_eviction(name)
        if node.status is HealthStatus.READY:
            del self._watched[name]
        elif now_us > node.silent_since_us + self._timings.node_monitor_grace_us:
            self._move(name, node, NodeEvent.EXPIRE)
            yield TaintChange(TaintAction.ADD_NO_SCHEDULE, name)

    def _stop_eviction(self, name: str) -> Iterator[TaintChange]:
        """Remove a node from its zone's queue, and its NoExecute taint if it has one."""
        node = self._nodes[name]
        self._zones[node.zone].queue.pop(name, None)
        if node.is_tainted:
            node.is_tainted = False
            yield TaintChange(TaintAction.REMOVE_NO_EXECUTE, name)

    def _move(self, name: str, node: _Node, event: NodeEvent) -> None:
        transition = TABLE.follow(name, node.status, event, node.history)
        if node.is_counted:
            change = (transition.target is HealthStatus.UNKNOWN) - (
                node.status is HealthStatus.UNKNOWN
            )
            self._zones[node.zone].not_ready += change
            self._zones_are_outdated |= bool(change)
        node.status, node.history = transition.target, transition.extend(node.history)

    # Zones.

    def _update_zone_states(self, now_us: int) -> Iterator[TaintChange | ZoneChange]:
        # By key, the zones with nodes that count.
        zones = {key: zone for key, zone in self._zones.items() if zone.nodes}
        states = {
            key: zone_state(zone.nodes, zone.not_ready, self._timings)
            for key, zone in zones.items()
        }
        all_down = all(each is ZoneState.FULL_DISRUPTION for each in states.values())
        all_were_down = all(each.state is ZoneState.FULL_DISRUPTION for each in zones.values())
        changed = [key for key, state in states.items() if zones[key].state is not state]
        for key, zone in self._zones.items():
            zone.state = states.get(key, ZoneState.NORMAL)
            # As upstream, a zone whose counted nodes are gone begins anew when it gets others.
            if key not in states:
                zone.rate = EvictionRate(self._timings.eviction_per_s)
        for key in changed:
            zone = zones[key]
            yield ZoneChange(key, zone.state, zone.not_ready, zone.nodes)
        if all_down and all_were_down:
            return
        if all_down:
            # As upstream: more likely the controller is cut off than all zones are down, so it
            # evicts from no node.
            for name, node in self._nodes.items():
                yield from self._stop_eviction(name)
                if node.status is HealthStatus.UNKNOWN:
                    self._watched[name] = None
            for zone in zones.values():
                zone.rate.change(0.0, now_us)
            return
        for key in zones if all_were_down else changed:
            zone = zones[key]
            zone.rate.change(zone_rate(zone.state, zone.nodes, self._timings), now_us)

    def validate(self) -> None:
        """Check that zones count their nodes, and that nodes which need a check are watched."""
        for key, zone in self._zones.items():
            counted = [
                each for each in self._nodes.values() if each.zone == key and each.is_counted
            ]
            unknown = sum(each.status is HealthStatus.UNKNOWN for each in counted)
            assert (zone.nodes, zone.not_ready) == (len(counted), unknown), f"zone {key}: counts"
            assert all(name in self._nodes for name in zone.queue), f"zone {key}: a node is gone"
        for name, node in self._nodes.items():
            is_tainted, queue = node.is_tainted, self._zones[node.zone].queue
            is_ready = node.status is HealthStatus.READY
            is_done = not is_tainted if is_ready else is_tainted or name in queue
            assert is_done or name in self._watched, f"node {name} is not watched"
