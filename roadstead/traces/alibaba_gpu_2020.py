"""Alibaba's cluster-trace-gpu-v2020: machine learning on 1,800 machines with 6,500 GPUs.

Schema: https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2020, tables without
header (the names are in *.header files):
    pai_machine_spec: machine, gpu_type, cap_cpu (cores), cap_mem (GB), cap_gpu.
    pai_task_table: job_name, task_name, inst_num, status, start_time, end_time, plan_cpu (100 is a
        core), plan_mem (GB), plan_gpu (100 is a GPU), gpu_type.
    pai_job_table: job_name, inst_id, user, status, start_time, end_time.
Times are seconds.

The mapping: an instance of a task becomes a pod. It arrives when its job was submitted
(`pai_job_table`; without that table when the task started) and runs for the time of the task. GPUs
are `alibabacloud.com/gpu-milli`, as in Alibaba's other trace, openb (`roadstead.fleet.openb`).
`gpu_type` is the type that the task got, not the one that it requested, so it restricts nodes only
with an option.
"""

from __future__ import annotations

from pathlib import Path

from roadstead.facts.pod import PodFacts
from roadstead.fleet.openb import GPU_RESOURCE, MODEL_LABEL
from roadstead.fleet.trace import NEVER_MS
from roadstead.traces.files import ProgressMeter, required_file, table_file
from roadstead.traces.machines import GIB_BYTES
from roadstead.traces.rows import Row, read_table
from roadstead.traces.sink import (
    COUNT_MAX,
    LeftOut,
    TraceSink,
    label_value,
    object_name,
    request_facts,
)

MACHINE_COLUMNS = ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")
TASK_COLUMNS = (
    *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
)
JOB_COLUMNS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
CORE_MILLI, CENT_MILLI, GPU_MILLI = 1000, 10, 1000
"""Thousandths of a core, of a hundredth of a core or GPU, and of a GPU."""

NO_GPU = ("", "CPU")
"""Values of gpu_type that name no type of GPU."""
TASK_LABEL = "task"


class AlibabaGpu2020Reader:
    """Read the tables of a folder; pai_job_table may be missing.

    requires_type: whether a task may run only on nodes with its type of GPU.
    """

    def __init__(self, sink: TraceSink, *, requires_type: bool) -> None:
        self._sink, self._requires_type = sink, requires_type

    def read(self, folder: Path, meter: ProgressMeter) -> None:
        """Read the tables; InputError for a cell that is wrong."""
        machines = required_file(folder, "pai_machine_spec")
        tasks = required_file(folder, "pai_task_table")
        jobs = table_file(folder, "pai_job_table")
        meter.expect([machines, tasks, *([jobs] if jobs else [])])
        self._sink.handle_rows(read_table(machines, MACHINE_COLUMNS, meter), self._machine)
        if jobs is None:
            self._sink.notes.append("pai_job_table is missing: pods arrive when they started")
        else:
            self._sink.handle_rows(read_table(jobs, JOB_COLUMNS, meter), self._job)
        self._sink.handle_rows(read_table(tasks, TASK_COLUMNS, meter), self._task)

    def _machine(self, row: Row) -> None:
        if any(row.is_empty(column) for column in ("cap_cpu", "cap_mem", "cap_gpu")):
            raise LeftOut("machine without capacity")
        size = {
            "cpu": row.amount("cap_cpu", CORE_MILLI),
            "memory": row.amount("cap_mem", GIB_BYTES),
        }
        gpus = row.amount("cap_gpu", GPU_MILLI)
        size |= {GPU_RESOURCE: gpus} if gpus else {}
        model = row.text("gpu_type")
        labels = () if model in NO_GPU else ((MODEL_LABEL, label_value(model)),)
        self._sink.add_node(object_name(row.text("machine")), size, labels=labels)

    def _job(self, row: Row) -> None:
        job = row.text("job_name")
        if not self._sink.is_sampled(job):
            return
        if row.is_empty("start_time"):
            raise LeftOut("job without submission time")
        # Stored for the tasks of the job.
        if not self._sink.spool.put_number(job, row.time_ms("start_time")):
            raise row.error("job_name", "is the name of another job")

    def _task(self, row: Row) -> None:
        job = row.text("job_name")
        if not self._sink.is_sampled(job):
            return
        if row.is_empty("start_time"):
            raise LeftOut("never started")
        start_ms = row.time_ms("start_time")
        if start_ms < 0:
            raise LeftOut("negative time")
        duration_ms = NEVER_MS
        if not row.is_empty("end_time"):
            duration_ms = row.time_ms("end_time") - start_ms
            if duration_ms < 0:
                raise LeftOut("negative duration")
        count = 0 if row.is_empty("inst_num") else row.count("inst_num", COUNT_MAX)
        if not count:
            raise LeftOut("no instances")
        pod_class = self._class(row)
        submitted_ms = self._sink.spool.number_of(job)
        arrival_ms = start_ms if submitted_ms is None else min(max(submitted_ms, 0), start_ms)
        name = object_name(job, row.text("task_name"))
        ends_ms = NEVER_MS if duration_ms == NEVER_MS else start_ms + duration_ms
        self._sink.add_pods(
            name, count, pod_class, arrival_ms, duration_ms, row, deletion_ms=ends_ms
        )

    def _class(self, row: Row) -> int:
        units = {"plan_cpu": CENT_MILLI, "plan_mem": GIB_BYTES, "plan_gpu": CENT_MILLI}
        cpu, memory, gpu = (
            None if row.is_empty(column) else row.amount(column, unit)
            for column, unit in units.items()
        )
        if not cpu and not memory and not gpu:
            raise LeftOut("no request")
        amounts = {"cpu": cpu, "memory": memory, GPU_RESOURCE: gpu or None}
        requests = {name: amount for name, amount in amounts.items() if amount is not None}
        model = row.text("gpu_type") if self._requires_type and gpu else ""
        task = label_value(row.text("task_name"))

        def make() -> PodFacts:
            required = {} if model in NO_GPU else {MODEL_LABEL: (label_value(model),)}
            labels = {TASK_LABEL: task}
            namespace = self._sink.namespace
            return request_facts(namespace, requests, labels=labels, node_labels=required)

        return self._sink.pod_class((cpu, memory, gpu, model, task), make)
