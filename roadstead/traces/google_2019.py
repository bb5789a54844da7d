"""Google's cluster workload traces version 3 (ClusterData2019): eight Borg cells in May 2019.

Schema: https://github.com/google/cluster-data/blob/master/clusterdata_trace_format_v3.proto. The
tables are in BigQuery; this reads them as exported there to newline-delimited JSON, one object a
line with the fields of `MachineEvent` and `InstanceEvent`. Integers may be texts, as BigQuery
writes them, enums numbers or names. Times are microseconds; 0 is before, 2^63-1 after the trace.
CPUs and memory are shares of the largest machine of all cells.

The mapping: tasks become pods; so do instances of alloc sets, which reserve resources, while tasks
that run inside of one are left out. Machines become nodes with what they had when they were added
first. Constraints and removals of machines are left out.
"""

from __future__ import annotations

from pathlib import Path

from roadstead.facts.pod import PodFacts
from roadstead.traces.files import Meter, shard_files
from roadstead.traces.instance_events import NO_CLASS, Event, add_event, add_instances
from roadstead.traces.json_values import JsonRow, read_json_lines
from roadstead.traces.machines import Machines
from roadstead.traces.rows import AMOUNT_MAX
from roadstead.traces.sink import LeftOut, TraceSink, object_name, request_facts

INSTANCE_EVENTS = (
    *("SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST"),
    *("UPDATE_PENDING", "UPDATE_RUNNING"),
)
EVENTS: tuple[Event, ...] = (
    *("submit", "other", "other", "schedule"),
    *(("end",) * 5),
    *("other", "other"),
)
"""The meaning of each of INSTANCE_EVENTS."""

MACHINE_EVENTS = ("EVENT_TYPE_UNKNOWN", "ADD", "REMOVE", "UPDATE")
ADD = MACHINE_EVENTS.index("ADD")
COLLECTIONS = ("JOB", "ALLOC_SET")
SCHEDULING_CLASSES = ("MOST_INSENSITIVE", "INSENSITIVE", "SENSITIVE", "MOST_SENSITIVE")
CLASS_LABEL = "scheduling-class"
ALLOC_LABEL = "collection-type"
NO_ALLOC = 0
PRIORITY_MAX = 1000


class Google2019Reader:
    """Reads the files machine_events*.json and instance_events*.json of one cell."""

    def __init__(self, sink: TraceSink, machines: Machines) -> None:
        self._sink, self._machines = sink, machines

    def read(self, folder: Path, meter: Meter) -> None:
        """Read all shards; InputError for a field that is wrong."""
        machines = shard_files(folder, "machine_events*.json*")
        instances = shard_files(folder, "instance_events*.json*")
        meter.expect([*machines, *instances])
        for path in machines:
            self._sink.handle_rows(read_json_lines(path, meter), self._machine)
        for path in instances:
            self._sink.handle_rows(read_json_lines(path, meter), self._instance)
        add_instances(self._sink, "instance")

    def _machine(self, row: JsonRow) -> None:
        name = object_name(f"machine-{row.integer('machine_id')}")
        if row.choice("type", MACHINE_EVENTS) != ADD:
            raise LeftOut("removal or update of a machine")
        if name in self._sink.nodes:
            raise LeftOut("machine that was added again")
        capacity = self._amounts(row.part("capacity"))
        if capacity is None:
            raise LeftOut("machine without capacity")
        self._sink.add_node(name, capacity)

    def _amounts(self, part: JsonRow) -> dict[str, int] | None:
        """Return cpu and memory; None if either is missing."""
        cpus, memory = part.real("cpus"), part.real("memory")
        if cpus is None or memory is None:
            return None
        amounts = {
            "cpu": cpus * self._machines.cpu_milli,
            "memory": memory * self._machines.memory_bytes,
        }
        for field, name in (("cpus", "cpu"), ("memory", "memory")):
            if amounts[name] > AMOUNT_MAX:
                raise part.error(field, "is beyond all bounds")
        return {name: round(amount) for name, amount in amounts.items()}

    def _instance(self, row: JsonRow) -> None:
        collection = row.integer("collection_id")
        event = EVENTS[row.choice("type", INSTANCE_EVENTS)]
        if event == "other" or not self._sink.keep(str(collection)):
            return
        if row.integer("alloc_collection_id", NO_ALLOC) != NO_ALLOC:
            raise LeftOut("event of a task inside of an alloc instance")
        time_us = row.integer("time", 0)
        if time_us < 0:
            raise LeftOut("negative time")
        location = self._sink.spool.location(row.source, row.line)
        key = (collection, row.integer("instance_index", 0))
        pod_class = self._class(row) if event != "end" else NO_CLASS
        add_event(self._sink, key, time_us, event, pod_class, location)

    def _class(self, row: JsonRow) -> int:
        requests = self._amounts(row.part("resource_request"))
        if requests is None or not any(requests.values()):
            return NO_CLASS
        scheduling_class = row.choice("scheduling_class", SCHEDULING_CLASSES)
        collection = row.choice("collection_type", COLLECTIONS)
        priority = row.integer("priority", 0)
        if not 0 <= priority <= PRIORITY_MAX:
            raise row.error("priority", f"is not a number from 0 to {PRIORITY_MAX}")

        def make() -> PodFacts:
            labels = {
                CLASS_LABEL: str(scheduling_class),
                ALLOC_LABEL: COLLECTIONS[collection].lower(),
            }
            labels[ALLOC_LABEL] = labels[ALLOC_LABEL].replace("_", "-")
            return request_facts(self._sink.namespace, requests, labels=labels, priority=priority)

        return self._sink.pod_class(
            (*requests.values(), scheduling_class, collection, priority), make
        )
