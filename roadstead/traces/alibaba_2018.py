"""Alibaba's cluster-trace-v2018: 4,000 machines with services and batch work over eight days.

Schema: https://github.com/alibaba/clusterdata/blob/master/cluster-trace-v2018/schema.txt, tables
without header:
    machine_meta: machine_id, time_stamp, failure_domain_1, failure_domain_2, cpu_num, mem_size,
        status.
    container_meta: container_id, machine_id, time_stamp, app_du, status, cpu_request, cpu_limit,
        mem_size.
    batch_task: task_name, instance_num, job_name, task_type, status, start_time, end_time,
        plan_cpu, plan_mem.
Times are seconds; 100 of cpu is a core; memory is normalized to [0, 100], and -1 or 101 if invalid.

The mapping: an instance of a task becomes a pod that arrives when the task started; the trace does
not have when it was submitted. A container becomes a pod that arrives with its first row and does
not end. The second failure domain becomes the zone. Dependencies of tasks are left out.
"""

from __future__ import annotations

from pathlib import Path

from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import NEVER_MS
from roadstead.traces.files import ProgressMeter, required_file, table_file
from roadstead.traces.machines import MachineSpec
from roadstead.traces.rows import Row, read_table
from roadstead.traces.sink import (
    COUNT_MAX,
    LeftOut,
    TraceSink,
    label_value,
    object_name,
    request_facts,
)

MACHINE_COLUMNS = (
    *("machine_id", "time_stamp", "failure_domain_1", "failure_domain_2", "cpu_num", "mem_size"),
    "status",
)
CONTAINER_COLUMNS = (
    *("container_id", "machine_id", "time_stamp", "app_du", "status", "cpu_request", "cpu_limit"),
    "mem_size",
)
TASK_COLUMNS = (
    *("task_name", "instance_num", "job_name", "task_type", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem"),
)
CENT_CORE_MILLI = 10
"""Milli-CPU of a hundredth of a core, the unit of requests."""

CORE_MILLI = 1000
MEMORY_PARTS = 100
"""The normalized memory of the largest machine."""

KIND_LABEL = "kind"
"""The label of pods with value "batch" or "service"."""


class Alibaba2018Reader:
    """Read the tables of a folder; container_meta may be missing."""

    def __init__(self, sink: TraceSink, machine_spec: MachineSpec) -> None:
        self._sink, self._machine_spec = sink, machine_spec

    def read(self, folder: Path, meter: ProgressMeter) -> None:
        """Read the tables; InputError for a cell that is wrong."""
        machines, tasks = required_file(folder, "machine_meta"), required_file(folder, "batch_task")
        containers = table_file(folder, "container_meta")
        meter.expect([machines, tasks, *([containers] if containers else [])])
        self._sink.handle_rows(read_table(machines, MACHINE_COLUMNS, meter), self._machine)
        self._sink.handle_rows(read_table(tasks, TASK_COLUMNS, meter), self._task)
        if containers is not None:
            rows = read_table(containers, CONTAINER_COLUMNS, meter)
            self._sink.handle_rows(rows, self._container)

    def _machine(self, row: Row) -> None:
        name = object_name(row.text("machine_id"))
        if name in self._sink.nodes:
            raise LeftOut("further row of a machine")
        if row.is_empty("cpu_num") or row.is_empty("mem_size"):
            raise LeftOut("machine without capacity")
        size = {"cpu": row.amount("cpu_num", CORE_MILLI), "memory": self._memory(row, "mem_size")}
        domain = row.text("failure_domain_2") or row.text("failure_domain_1")
        self._sink.add_node(name, size, zone=label_value(domain))

    def _memory(self, row: Row, column: str) -> int:
        share = row.real(column)
        if not 0 <= share <= MEMORY_PARTS:
            raise LeftOut("memory that is marked as invalid")
        return round(share * self._machine_spec.memory_bytes / MEMORY_PARTS)

    def _task(self, row: Row) -> None:
        job = row.text("job_name")
        if not self._sink.is_sampled(job):
            return
        if row.is_empty("start_time") or row.is_empty("end_time"):
            raise LeftOut("no start or end time")
        start_ms, end_ms = row.time_ms("start_time"), row.time_ms("end_time")
        # Waiting and failed tasks have the time 0.
        if start_ms <= 0 or end_ms <= 0:
            raise LeftOut("no start or end time")
        if end_ms < start_ms:
            raise LeftOut("negative duration")
        count = 0 if row.is_empty("instance_num") else row.count("instance_num", COUNT_MAX)
        if not count:
            raise LeftOut("no instances")
        pod_class = self._class(row, "plan_cpu", "plan_mem", "batch")
        name = object_name(job, row.text("task_name"))
        self._sink.add_pods(name, count, pod_class, start_ms, end_ms - start_ms, row)

    def _container(self, row: Row) -> None:
        container = row.text("container_id")
        if not self._sink.is_sampled(container):
            return
        name = object_name("container", container)
        # Stored to recognize further rows of the container; the number is not read.
        if not self._sink.spool.put_number(name, 0):
            raise LeftOut("further row of a container")
        start_ms = row.time_ms("time_stamp")
        if start_ms < 0:
            raise LeftOut("negative time")
        pod_class = self._class(row, "cpu_request", "mem_size", "service")
        self._sink.add_pod(name, pod_class, start_ms, NEVER_MS, row)

    def _class(self, row: Row, cpu_column: str, memory_column: str, kind: str) -> int:
        if row.is_empty(cpu_column) or row.is_empty(memory_column):
            raise LeftOut("no request")
        cpu = row.amount(cpu_column, CENT_CORE_MILLI)
        memory = self._memory(row, memory_column)
        if not cpu and not memory:
            raise LeftOut("no request")

        def make() -> PodFacts:
            requests = {"cpu": cpu, "memory": memory}
            return request_facts(self._sink.namespace, requests, labels={KIND_LABEL: kind})

        return self._sink.pod_class((cpu, memory, kind), make)
