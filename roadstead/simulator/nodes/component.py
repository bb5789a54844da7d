"""NodeLifecycle: faults of nodes in a simulation, and how the cluster reacts to them.

It is a component: it sees what happens, and returns commands such as PutNode for the engine.

    Faults ── which nodes ──► NodeMarks ──► PutNode
       │ lost, back                ▲ taints
       └──► NodeHealth ────────────┘
    NoExecute taints, drains ──► Evictions ──► EndPod, SetBudgets

A mark is a cordon or a taint that was added to a node, with its cause (`NodeMarks`): an occurrence
("event", index of the event in the scenario, number of the occurrence from 0), a random failure
("failure", index), or HEALTH. `NodeMarks` contains the nodes that are not being removed. A pass is
a check of all nodes by the node lifecycle controller (`NodeHealth`). No other component changes
nodes that exist. A pod that is evicted from a node whose machine has stopped ends as LOST, others
as EVICTED.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from roadstead.facts.node import NodeFacts, zone_text
from roadstead.facts.taints import Taint
from roadstead.manifests.daemons import NO_EXECUTE, NO_SCHEDULE
from roadstead.simulator.component import (
    ClusterView,
    Command,
    Commands,
    Component,
    DropNode,
    Note,
    PutNode,
    ResumeNode,
    StopNode,
    WakeAt,
)
from roadstead.simulator.nodes.drains import Drain
from roadstead.simulator.nodes.evictions import Evictions
from roadstead.simulator.nodes.faults import NodeFaults, Occurrence
from roadstead.simulator.nodes.health import NodeHealth, TaintAction, TaintChange, ZoneChange
from roadstead.simulator.nodes.marks import Cause, NodeMarks, no_execute_taints
from roadstead.simulator.scenario import CompiledScenario
from roadstead.simulator.simulated_pods import SimulatedPod
from roadstead.simulator.times import NEVER_US, SECOND_US

UNREACHABLE: Final = "node.kubernetes.io/unreachable"
HEALTH: Final[Cause] = ("health",)
"""The cause of the taints that `NodeHealth` adds."""

Key = tuple[str | int, ...]
"""The key of a `WakeAt`: an action, then its arguments, as `NodeLifecycle.wake` matches them."""


class NodeLifecycle(Component):
    """Faults and changes of all nodes of a scenario. seed: of its random choices."""

    sees_all_pods = True

    def __init__(self, scenario: CompiledScenario, seed: int) -> None:
        self._faults = NodeFaults(scenario, seed)
        self._marks = NodeMarks()
        self._health = NodeHealth(scenario.timings)
        self._seed = seed
        # By node: the causes for which its machine is stopped.
        self._stop_causes: dict[str, dict[Cause, None]] = {}
        # By occurrence of an event: the nodes that were chosen, until it is undone.
        self._nodes_of: dict[Cause, tuple[str, ...]] = {}
        self._evictions = Evictions(scenario, self._stop_causes, self._health.is_ready)
        # Node → its NoExecute taints, if it has any.
        self._no_execute: dict[str, tuple[Taint, ...]] = {}
        # The next planned call of `NodeHealth.advance`.
        self._health_wakes_us = NEVER_US
        for node in scenario.nodes:
            self._add(node)

    def attach(self, world: ClusterView) -> None:
        """Store the view of the fleet."""
        self._world = self._evictions.world = world

    def begin(self) -> Commands:
        """Plan the first occurrence of each event, and the first outages."""
        for index, at_us in self._faults.first_times():
            yield WakeAt(at_us, ("event", index, 0))
        for node in self._world.nodes.values():
            yield from self._plan_outages(node)
        yield from self._evictions.begin()

    def wake(self, key: Key) -> Commands:
        """Act at the time of an event, an outage, a pass, an eviction or a retry."""
        match key:
            case ("event", int(index), int(number)):
                yield from self._begin_occurrence(self._faults.occurrence(index, number))
            case ("undo", int(index), int(number)):
                yield from self._undo_occurrence(self._faults.occurrence(index, number))
            case ("fail", int(index), str(node), int(end_us)):
                yield from self._fail(index, node, end_us)
            case ("repair", int(index), str(node)):
                yield from self._repair(index, node)
            case ("health",):
                self._health_wakes_us = NEVER_US
                yield from self._apply_changes(self._health.advance(self._world.now_us))
            case ("evict", str(uid)):
                yield from self._evictions.evict_due(uid)
            case ("drain", str(node), *cause):
                yield from self._evictions.try_drain(node, tuple(cause))
            case _:
                assert key == ("budgets",), f"nothing wakes with the key {key}"
                yield from self._evictions.recount_replicas()
        yield from self._follow_up()

    # What happens to pods and nodes.

    def pod_started(self, pod: SimulatedPod) -> Commands:
        """Count a pod in its budgets; plan its eviction if it tolerates a taint only for a time."""
        self._evictions.count(pod)
        taints = self._no_execute.get(pod.node)
        return self._evictions.evict_from((pod,), taints) if taints else self._evictions.recount()

    def pod_terminating(self, pod: SimulatedPod) -> Commands:
        """Count a pod as not healthy in its budgets."""
        self._evictions.count(pod)
        return self._evictions.recount()

    def pod_ended(self, pod: SimulatedPod) -> Commands:
        """Remove a pod; a drain that waited only for it is done."""
        drains = self._evictions.pod_ended(pod)
        return self._finish_drains(drains) if drains else self._evictions.recount()

    def node_put(self, facts: NodeFacts, *, is_new: bool) -> Commands:
        """React to a node that was added, or whose taints may have changed."""
        name = facts.name
        if is_new:
            self._add(facts)
            yield from self._plan_outages(facts)
        elif name in self._marks:
            taints, before = no_execute_taints(facts), self._no_execute.pop(name, ())
            if taints:
                self._no_execute[name] = taints
            if taints != before:
                yield from self._evictions.evict_from(self._world.pods_on(name), taints)
        yield from self._follow_up()

    def node_dropped(self, name: str) -> Commands:
        """Remove a node that another component dropped, or that this one removed before."""
        self._forget(name)
        return self._follow_up()

    def validate(self) -> None:
        """Check that health, marks and stopped machines agree (O(nodes))."""
        self._health.validate()
        for name in self._world.nodes:
            assert name in self._marks, f"node {name} is not known"
            is_stopped = not self._health.answers(name)
            assert is_stopped == (name in self._stop_causes), f"node {name} is stopped for no cause"

    def _add(self, node: NodeFacts) -> None:
        self._marks.add(node)
        self._health.add(node)
        if taints := no_execute_taints(node):
            self._no_execute[node.name] = taints

    def _forget(self, name: str) -> None:
        if name not in self._marks:
            return
        self._marks.drop(name)
        self._health.drop(name)
        self._faults.drop_node(name)
        self._evictions.drop_node(name)
        self._stop_causes.pop(name, None)
        self._no_execute.pop(name, None)

    def _plan_outages(self, node: NodeFacts) -> Iterator[Command]:
        for failure, begin_us, end_us in self._faults.add_node(node, self._world.now_us):
            yield WakeAt(begin_us, ("fail", failure, node.name, end_us))

    def _follow_up(self) -> Iterator[Command]:
        """Yield the commands that follow any change: plan the next pass, recount the budgets."""
        now_us = self._world.now_us
        at_us = self._health.next_us(now_us)
        # If a pass is planned for an earlier time, this one is planned after it is made. NEVER_US
        # is negative: no pass is planned.
        if at_us is not None and not 0 <= self._health_wakes_us <= at_us:
            self._health_wakes_us = at_us
            yield WakeAt(at_us, ("health",))
        yield from self._evictions.recount()

    # Events of the scenario.

    def _begin_occurrence(self, occurrence: Occurrence) -> Iterator[Command]:
        event, number = occurrence.event, occurrence.number
        if occurrence.next_us != NEVER_US:
            yield WakeAt(occurrence.next_us, ("event", event.index, number + 1))
        cause: Cause = ("event", event.index, number)
        added = event.added(number) if event.action == "add" else ()
        chosen = tuple(each.name for each in added)
        if event.action != "add":
            nodes = self._world.nodes.values()
            # Without nodes that are being removed: the engine has not carried out DropNode yet.
            remaining = (node for node in nodes if node.name in self._marks)
            chosen = event.chosen(remaining, self._seed, number)
        if occurrence.ends_us != NEVER_US:
            self._nodes_of[cause] = chosen
            yield WakeAt(occurrence.ends_us, ("undo", event.index, number))
        for node in added:
            yield PutNode(node)
            yield Note("node added", node.name)
        for name in () if added else chosen:
            match event.action:
                case "lose":
                    yield from self._stop_node(name, cause, "by an event")
                case "drain":
                    yield from self._begin_drain(name, cause, removes_node=False)
                case "cordon":
                    yield from self._put_node(self._marks.cordon(name, cause), "cordoned", name)
                case "taint":
                    assert event.taint is not None, "an event without its taint"
                    facts = self._marks.taint(name, cause, event.taint)
                    yield from self._put_node(facts, "tainted", name, _taint_text(event.taint))
                case "remove":
                    yield from self._remove_node(name, "by an event")

    def _undo_occurrence(self, occurrence: Occurrence) -> Iterator[Command]:
        event = occurrence.event
        cause: Cause = ("event", event.index, occurrence.number)
        for name in self._nodes_of.pop(cause):
            if name not in self._marks:
                continue
            match event.action:
                case "lose":
                    yield from self._resume_node(name, cause)
                case "drain":
                    yield from self._end_drain(name, cause)
                case "cordon":
                    yield from self._put_node(
                        self._marks.remove_marks(name, cause), "uncordoned", name
                    )
                case "taint":
                    yield from self._put_node(
                        self._marks.remove_marks(name, cause), "taint removed", name
                    )
                case "add":
                    yield from self._begin_drain(name, cause, removes_node=True)

    def _put_node(
        self, facts: NodeFacts | None, what: str, name: str, detail: str = ""
    ) -> Iterator[Command]:
        if facts is not None:
            yield PutNode(facts)
            yield Note(what, name, detail)

    def _remove_node(self, name: str, why: str) -> Iterator[Command]:
        # Before the command is carried out: until then nothing may put the node again.
        self._forget(name)
        yield Note("node removed", name, why)
        yield DropNode(name)

    # Machines that stop, and the controller that notices.

    def _stop_node(self, name: str, cause: Cause, why: str) -> Iterator[Command]:
        causes = self._stop_causes.setdefault(name, {})
        causes[cause] = None
        if len(causes) == 1:
            self._health.stop(name, self._world.now_us)
            yield StopNode(name)
            yield Note("node lost", name, why)

    def _resume_node(self, name: str, cause: Cause) -> Iterator[Command]:
        causes = self._stop_causes.get(name, {})
        if cause not in causes:
            return
        del causes[cause]
        if causes:
            return
        del self._stop_causes[name]
        yield ResumeNode(name)
        yield Note("node back", name)
        yield from self._apply_changes(self._health.answer(name))

    def _fail(self, failure: int, name: str, end_us: int) -> Iterator[Command]:
        if name in self._marks:
            yield WakeAt(end_us, ("repair", failure, name))
            yield from self._stop_node(name, ("failure", failure), "by a random failure")

    def _repair(self, failure: int, name: str) -> Iterator[Command]:
        if name not in self._marks:
            return
        yield from self._resume_node(name, ("failure", failure))
        if (outage := self._faults.next_outage(failure, name)) is not None:
            begin_us, end_us = outage
            yield WakeAt(begin_us, ("fail", failure, name, end_us))

    def _apply_changes(self, changes: Iterable[TaintChange | ZoneChange]) -> Iterator[Command]:
        for change in changes:
            if isinstance(change, ZoneChange):
                name = zone_text(change.zone) or "nodes without a zone"
                detail = f"{change.not_ready} of {change.nodes} nodes are not ready"
                yield Note(f"zone {change.state}", name, detail)
                continue
            name = change.node
            match change.action:
                case TaintAction.ADD_NO_SCHEDULE | TaintAction.REMOVE_NO_SCHEDULE:
                    yield from self._set_ready(
                        name, is_ready=change.action is TaintAction.REMOVE_NO_SCHEDULE
                    )
                case TaintAction.ADD_NO_EXECUTE:
                    facts = self._marks.taint(name, HEALTH, Taint(UNREACHABLE, "", NO_EXECUTE))
                    yield from self._put_node(facts, "eviction began", name)
                case TaintAction.REMOVE_NO_EXECUTE:
                    facts = self._marks.remove_taint(name, HEALTH, NO_EXECUTE)
                    yield from self._put_node(facts, "eviction ended", name)

    def _set_ready(self, name: str, *, is_ready: bool) -> Iterator[Command]:
        if is_ready:
            facts = self._marks.remove_taint(name, HEALTH, NO_SCHEDULE)
        else:
            facts = self._marks.taint(name, HEALTH, Taint(UNREACHABLE, "", NO_SCHEDULE))
        if facts is not None:
            yield PutNode(facts)
        yield Note("node ready" if is_ready else "node not ready", name)
        for pod in self._world.pods_on(name):
            self._evictions.count(pod)

    # Drains.

    def _begin_drain(self, name: str, cause: Cause, *, removes_node: bool) -> Iterator[Command]:
        if (facts := self._marks.cordon(name, cause)) is not None:
            yield PutNode(facts)
        drain = self._evictions.begin_drain(name, cause, removes_node=removes_node)
        yield Note("drain began", name, f"{len(drain.waiting)} pods")
        if drain.is_done:
            yield from self._finish_drain(drain)
        else:
            yield from self._evictions.try_drain(name, cause)

    def _finish_drains(self, drains: Iterable[Drain]) -> Iterator[Command]:
        for drain in drains:
            yield from self._finish_drain(drain)
        yield from self._follow_up()

    def _finish_drain(self, drain: Drain) -> Iterator[Command]:
        self._evictions.end_drain(drain.node, drain.cause)
        took_s = (self._world.now_us - drain.began_us) // SECOND_US
        yield Note("drained", drain.node, f"in {took_s} s")
        if drain.removes_node:
            yield from self._remove_node(drain.node, "after its drain")

    def _end_drain(self, name: str, cause: Cause) -> Iterator[Command]:
        if (drain := self._evictions.end_drain(name, cause)) is not None:
            left = len(drain.waiting) + len(drain.leaving)
            yield Note("drain unfinished", name, f"{left} pods are left")
        yield from self._put_node(self._marks.remove_marks(name, cause), "uncordoned", name)


def needs_node_lifecycle(scenario: CompiledScenario) -> bool:
    """Whether a scenario needs `NodeLifecycle`; without it, a run is quicker."""
    return bool(
        scenario.node_events
        or scenario.failures
        or scenario.budgets
        or any(no_execute_taints(node) for node in scenario.nodes)
    )


def _taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
