"""The Standard Workload Format of the Parallel Workloads Archive: logs of supercomputers.

Schema: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html (version 2.2): one job a line with
18 fields separated by blanks, -1 for what is not known, and comments after ";", of which those at
the beginning are a header of "Name: value".

The mapping: a job becomes as few pods as possible, each with at most the processors of one node
(MaxProcs / MaxNodes of the header); a processor is a core. A pod requests the processors and the
memory (KB per processor) that its job requested; if it requested no processors, those that were
allocated. Used memory is ignored. Pods arrive with their job and run for its run time. The queue
becomes a label. The number of nodes is MaxNodes of the header.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from roadstead.facts.pod import PodFacts
from roadstead.fleet.trace import S_MS
from roadstead.protocol.errors import InputError
from roadstead.traces.files import ProgressMeter, read_lines
from roadstead.traces.machines import MachineSpec, add_machines
from roadstead.traces.rows import Row
from roadstead.traces.sink import COUNT_MAX, LeftOut, TraceSink, label_value, request_facts

FIELDS = (
    *("job", "submit", "wait", "run", "allocated", "cpu_used", "memory_used", "requested"),
    *("requested_time", "requested_memory", "status", "user", "group", "executable", "queue"),
    *("partition", "preceding_job", "think_time"),
)
PROCESSORS_MAX = 100_000_000
KB_BYTES = 1024
CORE_MILLI = 1000
QUEUE_LABEL = "queue"
CANCELED = 5
"""The status of a job that was canceled."""

_COLUMNS = {name: index for index, name in enumerate(FIELDS)}
_HEADER = re.compile(r";\s*(MaxNodes|MaxProcs)\s*:\s*([0-9]{1,9})\b")


class SwfReader:
    """Read one log. processors_per_node: None to use the header's."""

    def __init__(self, sink: TraceSink, machine_spec: MachineSpec, processors_per_node: int | None):
        self._sink, self._machine_spec = sink, machine_spec
        # MaxNodes and MaxProcs of the header's comments.
        self._header: dict[str, int] = {}
        self._processors_per_node = processors_per_node

    def read(self, path: Path, meter: ProgressMeter) -> None:
        """Read the log; InputError for a line that is not of the format."""
        meter.expect([path])
        self._sink.handle_rows(self._rows(path, meter), self._job)
        count = self._machine_spec.count
        if count is None:
            processors = self._header.get("MaxProcs", 0)
            count = self._header.get("MaxNodes") or math.ceil(processors / self._per_node)
        memory = self._machine_spec.memory_bytes
        size = {"cpu": self._per_node * CORE_MILLI, "memory": memory}
        add_machines(self._sink, "node", count, size)

    @property
    def _per_node(self) -> int:
        if self._processors_per_node is not None:
            return self._processors_per_node
        nodes, processors = self._header.get("MaxNodes", 0), self._header.get("MaxProcs", 0)
        return max(1, math.ceil(processors / nodes)) if nodes and processors else 1

    def _rows(self, path: Path, meter: ProgressMeter) -> Iterator[Row]:
        source = str(path)
        for line, text in read_lines(path, meter):
            if match := _HEADER.match(text):
                self._header.setdefault(match[1], int(match[2]))
            cells = text.partition(";")[0].split()
            if not cells:
                continue
            if len(cells) != len(FIELDS):
                problem = f"has {len(cells)} fields, not {len(FIELDS)}"
                raise InputError(problem, source=source, obj=f"line {line}")
            yield Row(source, line, cells, _COLUMNS)

    def _job(self, row: Row) -> None:
        if not self._sink.is_sampled(str(row.integer("job"))):
            return
        submit_ms, wait_ms, run_ms = (row.time_ms(name) for name in ("submit", "wait", "run"))
        if run_ms <= 0 and row.integer("status") == CANCELED:
            raise LeftOut("canceled before it started")
        # -1 s: not known.
        if run_ms == -S_MS:
            raise LeftOut("no run time")
        if run_ms < 0:
            raise LeftOut("negative run time")
        if submit_ms < 0:
            raise LeftOut("negative submit time")
        # The first of both numbers that is known.
        column = next((name for name in ("requested", "allocated") if row.real(name) > 0), "")
        if not column:
            raise LeftOut("no processors")
        processors = row.real(column)
        if processors > PROCESSORS_MAX or processors != int(processors):
            raise row.error(column, f"is not a whole number up to {PROCESSORS_MAX}")
        self._add_pods(row, submit_ms, max(wait_ms, 0), run_ms, column)

    def _add_pods(self, row: Row, submit_ms: int, wait_ms: int, run_ms: int, column: str) -> None:
        """Add the pods of a job. column: of its number of processors."""
        job = row.integer("job")
        full, remainder = divmod(int(row.real(column)), self._per_node)
        sizes = [self._per_node] * min(full, COUNT_MAX + 1) + [remainder] * bool(remainder)
        if len(sizes) > COUNT_MAX:
            raise row.error(column, f"makes more than {COUNT_MAX} pods")
        memory_kb = max(row.real("requested_memory"), 0)
        queue = row.integer("queue")
        for index, size in enumerate(sizes):
            name = f"job-{job}-{index}" if len(sizes) > 1 else f"job-{job}"
            pod_class = self._class(row, size, memory_kb, queue)
            end_ms = submit_ms + wait_ms + run_ms
            self._sink.add_pod(name, pod_class, submit_ms, run_ms, row, deletion_ms=end_ms)

    def _class(self, row: Row, processors: int, memory_kb: float, queue: int) -> int:
        memory = row.amount("requested_memory", processors * KB_BYTES) if memory_kb else 0

        def make() -> PodFacts:
            requests = {"cpu": processors * CORE_MILLI} | ({"memory": memory} if memory else {})
            labels = {QUEUE_LABEL: label_value(f"q{queue}")} if queue >= 0 else {}
            return request_facts(self._sink.namespace, requests, labels=labels)

        return self._sink.pod_class((processors, memory, queue), make)
