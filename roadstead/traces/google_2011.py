"""Google's cluster-usage traces version 2 (clusterdata-2011-2): one Borg cell over 29 days of 2011.

Schema: https://github.com/google/cluster-data/blob/master/ClusterData2011_2.md and the "format +
schema" document that it names (Reiss, Wilkes, Hellerstein), tables without header, empty for null:
    machine_events: time (µs), machine id, event type (0 ADD, 1 REMOVE, 2 UPDATE), platform id,
        CPUs, memory.
    task_events: time (µs), missing info, job id, task index, machine id, event type (0 SUBMIT,
        1 SCHEDULE, 2 EVICT, 3 FAIL, 4 FINISH, 5 KILL, 6 LOST, 7 UPDATE_PENDING, 8 UPDATE_RUNNING),
        user, scheduling class, priority, CPU request, memory request, disk space request,
        different-machines restriction.
CPUs and memory are fractions of the largest machine's amount.

The mapping: tasks become pods. A machine becomes a node with the capacity of its first ADD event.
Scheduling class and priority are kept. Placement constraints, disk space, the restriction to
different machines, and updates and removals of machines are left out.
"""

from __future__ import annotations

from pathlib import Path

from roadstead.facts.pod import PodFacts
from roadstead.traces.files import ProgressMeter, shard_files
from roadstead.traces.instance_events import NO_CLASS, Event, add_event, add_instances
from roadstead.traces.machines import MachineSpec
from roadstead.traces.rows import Row, read_table
from roadstead.traces.sink import LeftOut, TraceSink, request_facts

MACHINE_COLUMNS = ("time", "machine_id", "event_type", "platform_id", "cpus", "memory")
TASK_COLUMNS = (
    *("time", "missing_info", "job_id", "task_index", "machine_id", "event_type", "user"),
    *("scheduling_class", "priority", "cpu_request", "memory_request", "disk_request"),
    "different_machines",
)
EVENTS: tuple[Event, ...] = (
    *("submit", "schedule"),
    # EVICT, FAIL, FINISH, KILL and LOST.
    *("end", "end", "end", "end", "end"),
    *("other", "other"),
)
"""The meaning of each event type, by its number."""

SCHEDULING_CLASS_LABEL = "scheduling-class"
PRIORITY_MAX = 1000
CACHED_CELLS_MAX = 100_000
"""Maximum number of cached classes, so that memory is bounded."""

CLASS_COLUMNS = ("cpu_request", "memory_request", "scheduling_class", "priority")


class Google2011Reader:
    """Read the folders machine_events and task_events.

    machine_spec: the size of the largest machine, by which fractions become amounts.
    """

    def __init__(self, sink: TraceSink, machine_spec: MachineSpec) -> None:
        self._sink, self._machine_spec = sink, machine_spec
        # By the cells of CLASS_COLUMNS.
        self._class_of_cells: dict[tuple[str, ...], int] = {}

    def read(self, folder: Path, meter: ProgressMeter) -> None:
        """Read all files of both tables; InputError for a cell that is wrong."""
        machines = shard_files(folder / "machine_events", "part-*.csv*")
        tasks = shard_files(folder / "task_events", "part-*.csv*")
        meter.expect([*machines, *tasks])
        for path in machines:
            self._sink.handle_rows(read_table(path, MACHINE_COLUMNS, meter), self._machine)
        for path in tasks:
            self._sink.handle_rows(read_table(path, TASK_COLUMNS, meter), self._task)
        # The events of each task become one pod.
        add_instances(self._sink, name_prefix="task")

    def _machine(self, row: Row) -> None:
        name = f"machine-{row.integer('machine_id')}"
        if row.count("event_type", 2) != 0:
            raise LeftOut("removal or update of a machine")
        if name in self._sink.nodes:
            raise LeftOut("machine that was added again")
        if row.is_empty("cpus") or row.is_empty("memory"):
            raise LeftOut("machine without capacity")
        self._sink.add_node(name, self._amounts(row, "cpus", "memory"))

    def _amounts(self, row: Row, cpus: str, memory: str) -> dict[str, int]:
        return {
            "cpu": row.amount(cpus, self._machine_spec.cpu_milli),
            "memory": row.amount(memory, self._machine_spec.memory_bytes),
        }

    def _task(self, row: Row) -> None:
        job = row.integer("job_id")
        event = EVENTS[row.count("event_type", len(EVENTS) - 1)]
        if event == "other" or not self._sink.is_sampled(str(job)):
            return
        time_us = row.integer("time")
        if time_us < 0:
            raise LeftOut("negative time")
        # For errors about a task that are found only when all its events have been read.
        line_id = self._sink.spool.line_id(row.source, row.line)
        key = (job, row.integer("task_index"))
        pod_class = self._class(row) if event != "end" else NO_CLASS
        add_event(self._sink, key, time_us, event, pod_class, line_id)

    def _class(self, row: Row) -> int:
        # Most tasks of a job have the same cells; reading numbers is most of the work of a row.
        cells = tuple(row.cells[row.columns[column]] for column in CLASS_COLUMNS)
        number = self._class_of_cells.get(cells)
        if number is None:
            if len(self._class_of_cells) == CACHED_CELLS_MAX:
                self._class_of_cells.clear()
            number = self._class_of_cells[cells] = self._new_class(row)
        return number

    def _new_class(self, row: Row) -> int:
        if row.is_empty("cpu_request") or row.is_empty("memory_request"):
            return NO_CLASS
        requests = self._amounts(row, "cpu_request", "memory_request")
        if not any(requests.values()):
            return NO_CLASS
        scheduling_class = (
            row.count("scheduling_class", 3) if not row.is_empty("scheduling_class") else 0
        )
        priority = row.count("priority", PRIORITY_MAX)

        def make() -> PodFacts:
            labels = {SCHEDULING_CLASS_LABEL: str(scheduling_class)}
            return request_facts(self._sink.namespace, requests, labels=labels, priority=priority)

        return self._sink.pod_class((*requests.values(), scheduling_class, priority), make)
