"""Microsoft's Philly traces: deep learning on a cluster with some 2,500 GPUs in 2017.

Schema: https://github.com/msr-fiddle/philly-traces (README): cluster_job_log is a JSON array of
jobs (status, vc, jobid, attempts, submitted_time, user; an attempt has start_time, end_time and
detail, a list of {ip, gpus}), cluster_machine_list a CSV file (machineId, number of GPUs, single
GPU mem). Times are strings like "2017-10-07 01:11:39" without a zone, "None" or null if unknown.

The mapping: each machine of a job's last attempt becomes a pod with as many GPUs (nvidia.com/gpu)
as the job had there. The pod arrives when the job was submitted and runs as long as that attempt.
The virtual cluster becomes a label. The log has no requests of cores and memory.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from roadstead.facts.pod import Labels, PodFacts
from roadstead.fleet.trace import NEVER_MS, S_MS
from roadstead.protocol.errors import InputError
from roadstead.traces.files import ProgressMeter
from roadstead.traces.json_values import JsonRow, read_json_array
from roadstead.traces.machines import MachineSpec
from roadstead.traces.rows import Row, read_header_table
from roadstead.traces.sink import (
    COUNT_MAX,
    LeftOut,
    TraceSink,
    label_value,
    object_name,
    request_facts,
)

JOBS = ("cluster_job_log", "cluster_job_log.json", "cluster_job_log.gz", "cluster_job_log.json.gz")
MACHINES = ("cluster_machine_list", "cluster_machine_list.csv")
GPU_RESOURCE = "nvidia.com/gpu"
MODEL_LABEL = "gpu-memory"
CLUSTER_LABEL = "virtual-cluster"
GPUS_MAX = 1000
UNKNOWN = (None, "", "None")
TIME_FORMAT = "%Y-%m-%d %H:%M:%S"

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
_ID_COLUMN, _GPUS_COLUMN, _MEMORY_COLUMN = "machineId", "number of GPUs", "single GPU mem"


class PhillyReader:
    """Read the job log and the list of machines of a folder."""

    def __init__(self, sink: TraceSink, machine_spec: MachineSpec) -> None:
        self._sink, self._machine_spec = sink, machine_spec
        self._repeated = 0

    def read(self, folder: Path, meter: ProgressMeter) -> None:
        """Read both files; InputError for a value that is wrong."""
        jobs, machines = _first_existing(folder, JOBS), _first_existing(folder, MACHINES)
        meter.expect([jobs, machines])
        self._sink.handle_rows(read_header_table(machines, meter), self._machine)
        self._sink.handle_rows(read_json_array(jobs, meter), self._job)
        if self._repeated:
            self._sink.notes.append(
                f"{self._repeated:,} attempts before a job's last are not counted"
            )

    def _machine(self, row: Row) -> None:
        for column in (_ID_COLUMN, _GPUS_COLUMN):
            if column not in row.columns:
                raise InputError(f"has no column {column}", source=row.source, obj="line 1")
        size = {"cpu": self._machine_spec.cpu_milli, "memory": self._machine_spec.memory_bytes}
        size |= {GPU_RESOURCE: row.count(_GPUS_COLUMN, GPUS_MAX)}
        labels: Labels = ()
        if _MEMORY_COLUMN in row.columns and row.text(_MEMORY_COLUMN):
            labels = ((MODEL_LABEL, label_value(row.text(_MEMORY_COLUMN))),)
        self._sink.add_node(object_name(row.text(_ID_COLUMN)), size, labels=labels)

    def _job(self, job: JsonRow) -> None:
        name = job.text("jobid")
        if not self._sink.is_sampled(name):
            return
        submitted_ms = _time_ms(job, "submitted_time")
        if submitted_ms is None:
            raise LeftOut("no submission time")
        attempts = job.children("attempts")
        if not attempts:
            raise LeftOut("never scheduled")
        attempt = attempts[-1]
        start_ms, end_ms = _time_ms(attempt, "start_time"), _time_ms(attempt, "end_time")
        if start_ms is None:
            raise LeftOut("no start time")
        if end_ms is not None and end_ms < start_ms:
            raise LeftOut("negative duration")
        sizes = [len(_gpus(each)) for each in attempt.children("detail")]
        if not any(sizes):
            raise LeftOut("no GPUs")
        if len(sizes) > COUNT_MAX:
            raise attempt.error("detail", f"has more than {COUNT_MAX} machines")
        self._repeated += len(attempts) - 1
        cluster = "" if job.get("vc") in UNKNOWN else label_value(job.text("vc"))
        duration_ms = NEVER_MS if end_ms is None else end_ms - start_ms
        ends_ms = NEVER_MS if end_ms is None else max(end_ms, submitted_ms)
        # The sink reads only the position of this row, for errors.
        location = Row(job.source, job.line, (), {})
        for index, size in enumerate(sizes):
            pod_name = object_name(name, str(index)) if len(sizes) > 1 else object_name(name)
            pod_class = self._class(size, cluster)
            self._sink.add_pod(
                pod_name, pod_class, submitted_ms, duration_ms, location, deletion_ms=ends_ms
            )

    def _class(self, gpus: int, cluster: str) -> int:
        def make() -> PodFacts:
            labels = {CLUSTER_LABEL: cluster} if cluster else {}
            return request_facts(self._sink.namespace, {GPU_RESOURCE: gpus}, labels=labels)

        return self._sink.pod_class((gpus, cluster), make)


def _first_existing(folder: Path, names: tuple[str, ...]) -> Path:
    path = next((path for name in names if (path := folder / name).is_file()), None)
    if path is None:
        raise InputError(f"has no file {names[0]}", source=str(folder))
    return path


def _gpus(detail: JsonRow) -> list[object]:
    gpus = detail.get("gpus")
    if not isinstance(gpus, list):
        raise detail.error("gpus", "is not a list")
    if len(gpus) > GPUS_MAX:
        raise detail.error("gpus", f"has more than {GPUS_MAX} entries")
    return gpus


def _time_ms(row: JsonRow, field: str) -> int | None:
    """Return a time as milliseconds; None if it is unknown."""
    if row.get(field) in UNKNOWN:
        return None
    text = row.text(field)
    try:
        if not _TIME.fullmatch(text):
            raise ValueError
        # The zone is the cluster's and not stated; only differences count.
        time = datetime.strptime(text, TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise row.error(field, 'is not a time (want e.g. "2017-10-07 01:11:39")') from None
    if time.year < 1970:
        raise row.error(field, "is before 1970")
    return round(time.timestamp()) * S_MS
