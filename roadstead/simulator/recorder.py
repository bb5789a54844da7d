"""TableRecorder: writes what happens in a simulated run to its tables."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.node import NodeFacts, zone_text
from roadstead.facts.pod import PodFacts
from roadstead.queue.reports import PendingReason
from roadstead.simulator.allocation_rows import AllocationRows
from roadstead.simulator.class_totals import ClassTotals
from roadstead.simulator.component import Note
from roadstead.simulator.recording import RecordedWorld, Recorder
from roadstead.simulator.samples import sample_rows
from roadstead.simulator.scenario import CompiledScenario
from roadstead.simulator.simulated_pods import SimulatedPod
from roadstead.simulator.summary import SummaryCounts
from roadstead.simulator.tables import Row, TableWriter
from roadstead.simulator.times import NEVER_US


class TableRecorder(Recorder):
    """A recorder of one run; `close` writes the remaining rows and the pods that have not ended.

    The values of a row are in the order of its table's columns, which `tables.COLUMNS` explains.

    reserving: names of the schedulers that reserve claims of devices; the pods of other schedulers
    are recorded without claims. counts: for the summary.
    """

    def __init__(
        self, directory: Path, scenario: CompiledScenario, reserving: Container[str] = ()
    ) -> None:
        self._scenario, self._reserving = scenario, reserving
        self.counts = SummaryCounts()
        max_rows = scenario.limits.rows
        self._pods = TableWriter(directory, "pods", max_rows)
        self._attempts = TableWriter(directory, "attempts", max_rows)
        self._events = TableWriter(directory, "events", max_rows)
        self._nodes = TableWriter(directory, "nodes", max_rows)
        self._samples = TableWriter(directory, "samples", max_rows)
        self._class_samples = TableWriter(directory, "class_samples", max_rows)
        self._classes = TableWriter(directory, "classes", max_rows)
        self._devices = TableWriter(directory, "devices", max_rows)
        self._allocations = TableWriter(directory, "allocations", max_rows)
        self._allocation_rows = AllocationRows()
        # Numbers of classes, by facts and by id of facts. The id is looked up first, as hashing
        # facts takes long; it stays valid, as `_number_of` keeps the facts.
        self._number_of: dict[PodFacts, int] = {}
        self._number_by_id: dict[int, int] = {}
        self._class_totals = ClassTotals()

    def pod_ended(self, pod: SimulatedPod) -> None:
        """Record a pod that has ended."""
        self._append_pod(pod, str(pod.ends_as))

    def bound(self, now_us: int, pod: SimulatedPod) -> None:
        """Record that a pod was bound to its node."""
        self._attempts.append(
            (now_us, pod.number, "bound", pod.node, None, None, (), (), None, None)
        )

    def not_bound(
        self,
        now_us: int,
        pod: SimulatedPod,
        reason: PendingReason,
        nominated: str,
        victims: Sequence[str],
    ) -> None:
        """Record an attempt that bound no pod, and its reason."""
        self.counts.unplaced_attempts += 1
        self._attempts.append(
            (
                now_us,
                pod.number,
                "pending",
                None,
                nominated or None,
                reason.message,
                [name for name, _ in reason.reasons],
                [nodes for _, nodes in reason.reasons],
                ",".join(reason.plugins),
                ",".join(victims) or None,
            )
        )

    def note(self, now_us: int, note: Note) -> None:
        """Record an event of the fleet."""
        self._events.append((now_us, note.what, note.subject, note.detail))

    def node(self, now_us: int, name: str, facts: NodeFacts | None, *, is_new: bool) -> None:
        """Record that a node was added, changed or removed. facts: None if it was removed."""
        if facts is None:
            self._nodes.append((now_us, name, "removed", None, None, None, None, None))
            return
        taints = ",".join(f"{each.key}={each.value}:{each.effect}" for each in facts.taints)
        self._nodes.append(
            (
                now_us,
                name,
                "added" if is_new else "changed",
                zone_text(facts.zone),
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
        """Record the devices that claims got and lost, and the pods that use them."""
        for row in self._allocation_rows.rows_of_change(world, changed, removed):
            self._allocations.append(row)

    def sample(self, world: RecordedWorld) -> None:
        """Record the state of the fleet."""
        for row in sample_rows(world):
            self._samples.append((world.now_us, *row))
        for counts in self._class_totals.changed(
            world.simulated_pods.by_class(), self._class_number
        ):
            self._class_samples.append((world.now_us, *counts))

    def close(self, world: RecordedWorld) -> None:
        """Write the pods that have not ended, and the remaining rows. Raises InputError."""
        for pod in world.pods.values():
            self._append_pod(pod, None)
        for table in (
            *(self._pods, self._attempts, self._events, self._nodes),
            *(self._samples, self._class_samples, self._classes),
            *(self._devices, self._allocations),
        ):
            table.close()

    def _append_pod(self, pod: SimulatedPod, ending: str | None) -> None:
        identity, facts, owner = pod.identity, pod.facts, owner_of(self._scenario, pod)
        self.counts.add(pod, owner or "", has_ended=ending is not None)
        waited_us = None if pod.bound_us == NEVER_US else pod.bound_us - pod.created_us
        self._pods.append(
            (
                pod.number,
                identity.namespace,
                identity.name,
                identity.uid,
                owner,
                self._class_number(facts),
                facts.priority,
                pod.created_us,
                _time_or_none(pod.first_tried_us),
                _time_or_none(pod.bound_us),
                _time_or_none(pod.started_us),
                None if ending is None else pod.ended_us,
                ending,
                pod.node or None,
                pod.attempts,
                waited_us,
                pod.preemptor or None,
            )
        )

    def _class_number(self, facts: PodFacts) -> int:
        number = self._number_by_id.get(id(facts))
        if number is None:
            number = self._number_of.get(facts)
            if number is None:
                number = self._number_of[facts] = len(self._number_of)
                self._number_by_id[id(facts)] = number
                self._append_class(number, facts)
        return number

    def _append_class(self, number: int, facts: PodFacts) -> None:
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
    """Return the names of the claims of a class's pods; a star is the name of the pod.

    claim_name: of a claim that exists, None for one that is created from a template. generated:
    name of the created claim; "" if the pod needs none, None if it is created with each pod. Left
    out are claims that are not needed, and those for extended resources.
    """
    return [
        each.claim_name or each.generated or f"*-{each.name}"
        for each in facts.device_claims
        if not each.extended and each.generated != ""
    ]


def owner_of(scenario: CompiledScenario, pod: SimulatedPod) -> str | None:
    """Return what created a pod: a controller as kind/name, or an entry of the workload."""
    if pod.controller >= 0:
        controller = scenario.controllers[pod.controller]
        return f"{controller.kind}/{controller.name}"
    return scenario.sources[pod.source].name if pod.source >= 0 else None


def _time_or_none(at_us: int) -> int | None:
    return None if at_us == NEVER_US else at_us
