"""TableRecorder: writes what happens in a simulated run to its tables."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.queue.reports import PendingReason
from roadstead.simulator.allocation_rows import AllocationRows
from roadstead.simulator.component import Note
from roadstead.simulator.recording import RecordedWorld, Recorder
from roadstead.simulator.samples import sample_rows
from roadstead.simulator.scenario import CompiledScenario
from roadstead.simulator.simulated_pods import NEVER_US, SimulatedPod
from roadstead.simulator.summary import SummaryCounts
from roadstead.simulator.tables import Row, TableWriter


class TableRecorder(Recorder):
    """A recorder of one run; `close` writes what is left, the pods that have not ended included.

    reserving: names of the schedulers that reserve claims of devices. counts: for the summary.
    """

    def __init__(
        self, directory: Path, plan: CompiledScenario, reserving: Container[str] = ()
    ) -> None:
        self._plan, self._reserving = plan, reserving
        self.counts = SummaryCounts()
        most = plan.limits.rows
        self._pods = TableWriter(directory, "pods", most)
        self._attempts = TableWriter(directory, "attempts", most)
        self._events = TableWriter(directory, "events", most)
        self._nodes = TableWriter(directory, "nodes", most)
        self._samples = TableWriter(directory, "samples", most)
        self._classes = TableWriter(directory, "classes", most)
        self._devices = TableWriter(directory, "devices", most)
        self._allocations = TableWriter(directory, "allocations", most)
        self._allocation_rows = AllocationRows()
        self._class_of: dict[PodFacts, int] = {}
        # By id first, as hashing facts takes long; facts in `_class_of` keep their id.
        self._class_by_id: dict[int, int] = {}

    def pod_ended(self, life: SimulatedPod) -> None:
        """Record a pod whose life is over."""
        self._pod(life, str(life.ends_as))

    def bound(self, now_us: int, life: SimulatedPod) -> None:
        """Record that a pod was bound to its node."""
        self._attempts.append((now_us, life.number, "bound", life.node, None, None, None, None))

    def not_bound(
        self,
        now_us: int,
        life: SimulatedPod,
        note: PendingReason,
        nominated: str,
        victims: Sequence[str],
    ) -> None:
        """Record that a scheduler tried a pod in vain, and why."""
        self.counts.unplaced_attempts += 1
        self._attempts.append(
            (
                now_us,
                life.number,
                "pending",
                None,
                nominated or None,
                note.message,
                ",".join(note.plugins),
                ",".join(victims) or None,
            )
        )

    def note(self, now_us: int, note: Note) -> None:
        """Record an event of the fleet."""
        self._events.append((now_us, note.what, note.subject, note.detail))

    def node(self, now_us: int, name: str, facts: NodeFacts | None, *, is_new: bool) -> None:
        """Record that a node was added or changed, or removed (None)."""
        if facts is None:
            self._nodes.append((now_us, name, "removed", None, None, None, None, None))
            return
        taints = ",".join(f"{each.key}={each.value}:{each.effect}" for each in facts.taints)
        self._nodes.append(
            (
                now_us,
                name,
                "added" if is_new else "changed",
                facts.zone,
                int(facts.unschedulable),
                facts.allocatable_pods,
                json.dumps(dict(facts.allocatable)),
                taints,
            )
        )

    def devices(self, rows: Iterable[Row]) -> None:
        """Record the devices of the fleet."""
        for row in rows:
            self._devices.append(row)

    def claims(
        self, world: RecordedWorld, changed: Sequence[DeviceClaimFacts], removed: Sequence[str]
    ) -> None:
        """Record what devices claims got and lost, and for which pods."""
        for row in self._allocation_rows.changed(world, changed, removed):
            self._allocations.append(row)

    def sample(self, world: RecordedWorld) -> None:
        """Record the state of the fleet."""
        for row in sample_rows(world):
            self._samples.append((world.now_us, *row))

    def close(self, world: RecordedWorld) -> None:
        """Write the pods that have not ended, and all that is left. Raises OSError."""
        for life in world.pods.values():
            self._pod(life, None)
        logs = self._attempts, self._events, self._nodes, self._samples
        for table in (self._pods, *logs, self._classes, self._devices, self._allocations):
            table.close()

    def _pod(self, life: SimulatedPod, ending: str | None) -> None:
        identity, facts, owner = life.identity, life.facts, owner_of(self._plan, life)
        self.counts.ended(life, owner or "", is_over=ending is not None)
        waited_us = None if life.bound_us == NEVER_US else life.bound_us - life.created_us
        self._pods.append(
            (
                life.number,
                identity.namespace,
                identity.name,
                identity.uid,
                owner,
                self._class_number(facts),
                facts.priority,
                life.created_us,
                _time(life.first_tried_us),
                _time(life.bound_us),
                _time(life.started_us),
                None if ending is None else life.ended_us,
                ending,
                life.node or None,
                life.attempts,
                waited_us,
                life.preemptor or None,
            )
        )

    def _class_number(self, facts: PodFacts) -> int:
        number = self._class_by_id.get(id(facts))
        if number is None:
            number = self._class_of.get(facts)
            if number is None:
                number = self._class_of[facts] = len(self._class_of)
                self._class_by_id[id(facts)] = number
                self._new_class(number, facts)
        return number

    def _new_class(self, number: int, facts: PodFacts) -> None:
        requests, labels = dict(facts.requests), dict(facts.labels)
        self._classes.append(
            (
                number,
                facts.namespace,
                facts.scheduler_name,
                facts.priority,
                requests.get("cpu", 0),
                requests.get("memory", 0),
                json.dumps(requests),
                json.dumps(labels),
                ",".join(sorted({each.resource for each in facts.extended_requests})),
                ",".join(_claims(facts)) if facts.scheduler_name in self._reserving else "",
            )
        )


def _claims(facts: PodFacts) -> list[str]:
    """Return the names of the claims that each pod has; a star is the name of the pod."""
    return [
        each.claim_name or each.generated or f"*-{each.name}"
        for each in facts.device_claims
        if not each.extended and each.generated != ""
    ]


def owner_of(plan: CompiledScenario, life: SimulatedPod) -> str | None:
    """Return what created a pod: a controller as kind/name, or an entry of the workload."""
    if life.controller >= 0:
        controller = plan.controllers[life.controller]
        return f"{controller.kind}/{controller.name}"
    return plan.sources[life.source].name if life.source >= 0 else None


def _time(at_us: int) -> int | None:
    return None if at_us == NEVER_US else at_us
