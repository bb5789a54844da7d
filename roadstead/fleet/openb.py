"""The openb trace: CSV files of a production GPU cluster, read as nodes and pods.

The files are those of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent" (USENIX ATC'23), repository hkust-adsl/kubernetes-scheduler-simulator, data/csv.

The mapping: GPU capacity and shares are the extended resource `alibabacloud.com/gpu-milli` (1000
a GPU; a pod requests `num_gpu` times `gpu_milli`), the GPU model is a node label, `gpu_spec` a
required node affinity to one of the models named, `qos` a pod label. Zones are assigned round
robin.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from roadstead.config.files import read_text
from roadstead.facts.cluster import NAME_LABEL
from roadstead.facts.node import HOSTNAME_LABEL, ZONE_LABEL, NodeFacts
from roadstead.facts.pod import Labels, PodFacts
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.fleet.trace import NEVER_S, TIME_MAX_S, Trace, TraceBuilder
from roadstead.protocol.errors import InputError, cut_short
from roadstead.protocol.names import is_label_value, is_subdomain

NODE_LIST = "openb_node_list_all_node.csv"
POD_LIST = "openb_pod_list_{}.csv"
# sn: the serial number, which names a node.
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
CLASS_COLUMNS = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos")
TIME_COLUMNS = ("creation_time", "deletion_time", "scheduled_time")
POD_COLUMNS = ("name", *CLASS_COLUMNS, "pod_phase", *TIME_COLUMNS)

NAMESPACE = "openb"
NAMESPACE_LABELS: Labels = ((NAME_LABEL, NAMESPACE),)
GPU_RESOURCE = "alibabacloud.com/gpu-milli"
MODEL_LABEL = "alibabacloud.com/gpu-model"
IMAGE = "openb/task:1"
ZONES = 4
PODS_PER_NODE = 250
GPU_MILLI = 1000
MIB_BYTES = 1 << 20

FILE_MAX_BYTES = 1 << 28
ROWS_MAX = 1_000_000
AMOUNT_MAX = 1_000_000_000
GPUS_MAX = 1_000

_NUMBER = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One line of a CSV file and its position; methods that read a cell name it in their errors."""

    source: str
    line: int
    cells: Mapping[str, str]

    def error(self, column: str, problem: str) -> InputError:
        value = cut_short(self.cells[column])
        return InputError(
            problem, source=self.source, obj=f"line {self.line}", field=column, value=value
        )

    def number(self, column: str, maximum: int = AMOUNT_MAX) -> int:
        """Return a whole number from 0 to `maximum`."""
        text = self.cells[column]
        if not _NUMBER.fullmatch(text):
            raise self.error(column, 'is not a whole number (want e.g. "32000")')
        if int(text) > maximum:
            raise self.error(column, f"is more than {maximum}")
        return int(text)

    def time_s(self, column: str) -> int:
        """Return seconds from the trace's start; NEVER_S for an empty cell."""
        return self.number(column, TIME_MAX_S) if self.cells[column] else NEVER_S

    def name(self, column: str) -> str:
        text = self.cells[column]
        if not is_subdomain(text):
            raise self.error(column, "is not a name (want lower case letters, digits, '-', '.')")
        return text

    def label_value(self, column: str) -> str:
        text = self.cells[column]
        if not is_label_value(text):
            raise self.error(column, "is not a label value (want up to 63 of A-Za-z0-9-_.)")
        return text

    def models(self, column: str) -> tuple[str, ...]:
        """Return GPU models joined by `|`, sorted and unique; empty for an empty cell."""
        text = self.cells[column]
        models = text.split("|") if text else []
        if not all(model and is_label_value(model) for model in models):
            raise self.error(column, 'is not a list of GPU models (want e.g. "T4|V100M16")')
        return tuple(sorted(set(models)))


def import_openb(folder: Path, pod_list: str = "default") -> Trace:
    """Import the trace in `folder`: `NODE_LIST` and `openb_pod_list_<pod_list>.csv`.

    Raises InputError naming file, line, column, value and rule.
    """
    builder = TraceBuilder(f"openb {pod_list}", {NAMESPACE: NAMESPACE_LABELS})
    _add_nodes(builder, folder / NODE_LIST)
    _add_pods(builder, folder / POD_LIST.format(pod_list))
    return builder.build()


def _add_nodes(builder: TraceBuilder, path: Path) -> None:
    lines: dict[str, int] = {}
    for index, row in enumerate(read_rows(path, NODE_COLUMNS)):
        _check_unique(row, "sn", lines)
        builder.add_node(node_facts(row, index))


def _add_pods(builder: TraceBuilder, path: Path) -> None:
    lines: dict[str, int] = {}
    facts_by_cells: dict[tuple[str, ...], PodFacts] = {}
    for row in read_rows(path, POD_COLUMNS):
        _check_unique(row, "name", lines)
        cells = tuple(row.cells[column] for column in CLASS_COLUMNS)
        facts = facts_by_cells.get(cells)
        if facts is None:
            facts = facts_by_cells[cells] = pod_facts(row)
        name = row.name("name")
        builder.add_pod(name, f"uid-{name}", facts, *_times_s(row))


def _check_unique(row: CsvRow, column: str, lines: dict[str, int]) -> None:
    first = lines.setdefault(row.cells[column], row.line)
    if first != row.line:
        raise row.error(column, f"is in line {first} already")


def _times_s(row: CsvRow) -> tuple[int, int, int]:
    """Return creation time, deletion time and duration.

    The duration is the time from the scheduling of the pod to its deletion; from its creation, if
    no scheduling time is given or it is earlier.
    """
    creation_s = row.number("creation_time", TIME_MAX_S)
    deletion_s = row.time_s("deletion_time")
    scheduled_s = row.time_s("scheduled_time")
    if deletion_s == NEVER_S:
        return creation_s, deletion_s, NEVER_S
    if deletion_s < creation_s:
        raise row.error("deletion_time", f"is before the creation time {creation_s}")
    started_s = min(max(creation_s, scheduled_s), deletion_s)
    return creation_s, deletion_s, deletion_s - started_s


def node_facts(row: CsvRow, index: int) -> NodeFacts:
    """Return the node of a row; `index` is its position in the list, which determines the zone."""
    name, model, gpus = row.name("sn"), row.label_value("model"), row.number("gpu", GPUS_MAX)
    labels = {HOSTNAME_LABEL: name, ZONE_LABEL: f"zone-{index % ZONES}"}
    allocatable = {
        "cpu": row.number("cpu_milli"),
        "memory": row.number("memory_mib") * MIB_BYTES,
    }
    if model:
        labels[MODEL_LABEL] = model
    if gpus:
        allocatable[GPU_RESOURCE] = gpus * GPU_MILLI
    return NodeFacts(
        name=name,
        labels=tuple(sorted(labels.items())),
        allocatable=tuple(sorted(allocatable.items())),
        allocatable_pods=PODS_PER_NODE,
    )


def pod_facts(row: CsvRow) -> PodFacts:
    """Return the class of a row's pod, in which one container requests everything."""
    # gpu_milli: the part of each of its GPUs that the pod uses.
    gpus, milli_per_gpu = row.number("num_gpu", GPUS_MAX), row.number("gpu_milli", GPU_MILLI)
    if bool(gpus) != bool(milli_per_gpu):
        raise row.error("gpu_milli", f"does not go with num_gpu {gpus}")
    qos = row.label_value("qos")
    return task_facts(
        NAMESPACE,
        (("qos", qos),) if qos else (),
        cpu_milli=row.number("cpu_milli"),
        memory_bytes=row.number("memory_mib") * MIB_BYTES,
        gpu_milli=gpus * milli_per_gpu,
        models=row.models("gpu_spec"),
    )


def task_facts(
    namespace: str,
    labels: Labels,
    *,
    cpu_milli: int,
    memory_bytes: int,
    gpu_milli: int,
    models: tuple[str, ...],
    image: str = IMAGE,
) -> PodFacts:
    """Return the facts of a pod with one container; `models`, if any, restrict its nodes."""
    requests = {"cpu": cpu_milli, "memory": memory_bytes}
    if gpu_milli:
        requests[GPU_RESOURCE] = gpu_milli
    term = NodeSelectorTerm(expressions=(Requirement(MODEL_LABEL, "In", models),))
    return PodFacts(
        namespace=namespace,
        labels=labels,
        requests=tuple(sorted(requests.items())),
        nonzero_cpu_milli=cpu_milli,
        nonzero_memory_bytes=memory_bytes,
        required_node_terms=(term,) if models else None,
        images=(image,),
        container_count=1,
    )


def read_rows(path: Path, columns: tuple[str, ...]) -> Iterator[CsvRow]:
    """Yield the rows of a CSV file whose header holds exactly `columns`, in any order.

    Raises InputError for a file that is missing, too large, not UTF-8, or not such a table.
    """
    source = str(path)
    reader = csv.reader(io.StringIO(read_text(path, FILE_MAX_BYTES), newline=""), strict=True)
    try:
        header = _header(source, next(reader, []), columns)
        for count, cells in enumerate(reader, start=1):
            line = reader.line_num
            where = f"line {line}"
            if len(cells) != len(header):
                problem = f"has {len(cells)} cells for {len(header)} columns"
                raise InputError(problem, source=source, obj=where)
            if count > ROWS_MAX:
                raise InputError(f"is past the limit of {ROWS_MAX} rows", source=source, obj=where)
            yield CsvRow(source, line, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        where = f"line {reader.line_num}"
        raise InputError(f"is not CSV: {error}", source=source, obj=where) from error


def _header(source: str, header: list[str], columns: tuple[str, ...]) -> list[str]:
    for column in columns:
        if header.count(column) != 1:
            rule = f"must be in the header once (want {','.join(columns)})"
            raise InputError(rule, source=source, obj="line 1", field=column)
    for column in header:
        if column not in columns:
            raise InputError(
                f"is not a column of this list (want {','.join(columns)})",
                source=source,
                obj="line 1",
                value=cut_short(column),
            )
    return header
