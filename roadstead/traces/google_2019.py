"""Google's cluster workload traces version 3 (ClusterData2019): eight Borg cells in May 2019.

Schema: https://github.com/google/cluster-data/blob/master/clusterdata_trace_format_v3.proto. The
tables are in BigQuery; this reads them as exported there to newline-delimited JSON, one object a
line with the fields of `MachineEvent` and `InstanceEvent`. An integer may be a JSON string, as
BigQuery writes it; an enum may be a number or a name. Times are microseconds; time 0 means before
the trace, 2^63-1 after it. CPUs and memory are fractions of the largest machine's amount.

The mapping: tasks become pods. An alloc set reserves resources: each of its instances becomes a
pod, and the tasks inside of it are left out. A machine becomes a node with the capacity of its
first ADD event. Placement constraints, and updates and removals of machines, are left out.
"""

from __future__ import annotations

from pathlib import Path

from roadstead.facts.pod import PodFacts
from roadstead.traces.files import ProgressMeter, shard_files
from roadstead.traces.instance_events import NO_CLASS, Event, add_event, add_instances
from roadstead.traces.json_values import JsonRow, read_json_lines
from roadstead.traces.machines import MachineSpec
from roadstead.traces.rows import AMOUNT_MAX
from roadstead.traces.sink import LeftOut, TraceSink, object_name, request_facts

EVENTS: dict[str, Event] = {
    "SUBMIT": "submit",
    "QUEUE": "other",
    "ENABLE": "other",
    "SCHEDULE": "schedule",
    "EVICT": "end",
    "FAIL": "end",
    "FINISH": "end",
    "KILL": "end",
    "LOST": "end",
    "UPDATE_PENDING": "other",
    "UPDATE_RUNNING": "other",
}
"""The trace's events of instances, in the order of their numbers, and what they mean here."""

INSTANCE_EVENTS = tuple(EVENTS)
MACHINE_EVENTS = ("EVENT_TYPE_UNKNOWN", "ADD", "REMOVE", "UPDATE")
ADD = MACHINE_EVENTS.index("ADD")
COLLECTIONS = ("JOB", "ALLOC_SET")
SCHEDULING_CLASSES = ("MOST_INSENSITIVE", "INSENSITIVE", "SENSITIVE", "MOST_SENSITIVE")
SCHEDULING_CLASS_LABEL = "scheduling-class"
COLLECTION_LABEL = "collection-type"
NO_ALLOC = 0
"""The `alloc_collection_id` of an instance outside of alloc sets."""

PRIORITY_MAX = 1000
"""A choice above all priorities of the trace; a larger number is an error."""


class Google2019Reader:
    """Read the files machine_events*.json and instance_events*.json of one cell.

    machine_spec: the size of the largest machine, by which fractions become amounts.
    """

    def __init__(self, sink: TraceSink, machine_spec: MachineSpec) -> None:
        self._sink, self._machine_spec = sink, machine_spec

    def read(self, folder: Path, meter: ProgressMeter) -> None:
        """Read all files; InputError for a field that is wrong."""
        machines = shard_files(folder, "machine_events*.json*")
        instances = shard_files(folder, "instance_events*.json*")
        meter.expect([*machines, *instances])
        for path in machines:
            self._sink.handle_rows(read_json_lines(path, meter), self._machine)
        for path in instances:
            self._sink.handle_rows(read_json_lines(path, meter), self._instance)
        # The events of each instance become one pod.
        add_instances(self._sink, name_prefix="instance")

    def _machine(self, row: JsonRow) -> None:
        name = object_name(f"machine-{row.integer('machine_id')}")
        if row.choice("type", MACHINE_EVENTS) != ADD:
            raise LeftOut("removal or update of a machine")
        if name in self._sink.nodes:
            raise LeftOut("machine that was added again")
        capacity = self._amounts(row.child("capacity"))
        if capacity is None:
            raise LeftOut("machine without capacity")
        self._sink.add_node(name, capacity)

    def _amounts(self, resources: JsonRow) -> dict[str, int] | None:
        """Return cpu and memory; None if either is missing."""
        cpus, memory = resources.real("cpus"), resources.real("memory")
        if cpus is None or memory is None:
            return None
        amounts = {
            "cpu": cpus * self._machine_spec.cpu_milli,
            "memory": memory * self._machine_spec.memory_bytes,
        }
        for field, name in (("cpus", "cpu"), ("memory", "memory")):
            if amounts[name] > AMOUNT_MAX:
                raise resources.error(field, "is too large")
        return {name: round(amount) for name, amount in amounts.items()}

    def _instance(self, row: JsonRow) -> None:
        collection = row.integer("collection_id")
        event = EVENTS[INSTANCE_EVENTS[row.choice("type", INSTANCE_EVENTS)]]
        # Collections outside the sample are left out as a whole.
        if event == "other" or not self._sink.is_sampled(str(collection)):
            return
        if row.integer("alloc_collection_id", NO_ALLOC) != NO_ALLOC:
            raise LeftOut("event of a task inside of an alloc instance")
        time_us = row.integer("time", 0)
        if time_us < 0:
            raise LeftOut("negative time")
        # For errors about an instance that are found only when all its events have been read.
        line_id = self._sink.spool.line_id(row.source, row.line)
        key = (collection, row.integer("instance_index", 0))
        pod_class = self._class(row) if event != "end" else NO_CLASS
        add_event(self._sink, key, time_us, event, pod_class, line_id)

    def _class(self, row: JsonRow) -> int:
        requests = self._amounts(row.child("resource_request"))
        if requests is None or not any(requests.values()):
            return NO_CLASS
        scheduling_class = row.choice("scheduling_class", SCHEDULING_CLASSES)
        collection = row.choice("collection_type", COLLECTIONS)
        priority = row.integer("priority", 0)
        if not 0 <= priority <= PRIORITY_MAX:
            raise row.error("priority", f"is not a number from 0 to {PRIORITY_MAX}")

        def make() -> PodFacts:
            labels = {
                SCHEDULING_CLASS_LABEL: str(scheduling_class),
                COLLECTION_LABEL: COLLECTIONS[collection].lower().replace("_", "-"),
            }
            return request_facts(self._sink.namespace, requests, labels=labels, priority=priority)

        return self._sink.pod_class(
            (*requests.values(), scheduling_class, collection, priority), make
        )
