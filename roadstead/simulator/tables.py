"""The tables of a simulated run: their columns, and how rows become Parquet files.

A table is a folder of parts, `pods/part-00000.parquet` and so on, each with at most PART_ROWS rows,
which bounds the memory of a run. A part gets its name when it is complete, so a run that was killed
leaves only complete parts. A run that is played again into its folder must give equal parts: those
that exist are compared, the others are written. All times are microseconds from the start of the
scenario.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from arro3.core import DataType

from roadstead.protocol.errors import InputError
from roadstead.report.arrow import FLOAT64, INT64, STRING, column, list_of, make_table
from roadstead.report.parquet import encode_parquet
from roadstead.simulator.limits import LimitExceededError, PartDiffersError

PART_ROWS: Final = 1 << 16
"""Maximum rows of a part, which are in memory until they are written."""

Row = tuple[int | float | str | Sequence[int | str] | None, ...]

COLUMNS: Final[Mapping[str, Mapping[str, tuple[DataType, str]]]] = {
    "pods": {
        "number": (INT64, "of the pod, in the order of creation"),
        "namespace": (STRING, "its namespace"),
        "name": (STRING, "its name"),
        "uid": (STRING, "its UID: that of its manifest, or namespace/name, which may be numbered"),
        "owner": (STRING, "what created it: a workload entry, or a controller as kind/name"),
        "class": (INT64, "its class, see `classes`"),
        "priority": (INT64, "its priority"),
        "created_us": (INT64, "when it was created"),
        "first_tried_us": (INT64, "when a scheduler first tried it"),
        "bound_us": (INT64, "when it was bound"),
        "started_us": (INT64, "when it began to run"),
        "ended_us": (INT64, "when it ended; null if it had not at the horizon"),
        "ending": (STRING, "how it ended: done, failed, deleted, evicted, preempted or lost"),
        "node": (STRING, "its node; null if it was never bound"),
        "attempts": (INT64, "how often a scheduler tried it"),
        "waited_us": (INT64, "from its creation to its bind; null if it was never bound"),
        "preemptor": (STRING, "namespace/name of the pod for which it was preempted"),
    },
    "classes": {
        "class": (INT64, "number of the class"),
        "namespace": (STRING, "namespace of its pods"),
        "scheduler_name": (STRING, "the scheduler that its pods name"),
        "priority": (INT64, "priority of its pods"),
        "cpu_milli": (INT64, "requested CPU"),
        "memory_bytes": (INT64, "requested memory"),
        "requests": (STRING, "all requests, as JSON"),
        "labels": (STRING, "labels of its pods, as JSON"),
        "from_devices": (STRING, "extended resources that devices may serve, separated by commas"),
        "claims": (
            STRING,
            "claims of devices of a pod, separated by commas; a star is the pod's name",
        ),
    },
    "attempts": {
        "time_us": (INT64, "when the attempt ended"),
        "pod": (INT64, "number of the pod"),
        "outcome": (STRING, "bound, or pending"),
        "node": (STRING, "the node, if it was bound"),
        "nominated": (STRING, "the node to which it was nominated"),
        "message": (STRING, "why it was not bound, as the scheduler reports it"),
        "reasons": (list_of(STRING), "the reasons that nodes were refused; empty if it was bound"),
        "reason_nodes": (list_of(INT64), "for each of `reasons`, the number of nodes"),
        "plugins": (STRING, "the plugins that refused it, separated by commas"),
        "victims": (STRING, "UIDs of the pods that were preempted for it, separated by commas"),
    },
    "events": {
        "time_us": (INT64, "when it happened"),
        "what": (STRING, "what happened"),
        "subject": (STRING, "the node, controller or pod"),
        "detail": (STRING, "more about it"),
    },
    "nodes": {
        "time_us": (INT64, "when it was added, changed or removed"),
        "node": (STRING, "its name"),
        "what": (STRING, "added, changed or removed"),
        "zone": (STRING, "its zone, with its region before it if it has one"),
        "unschedulable": (INT64, "1 if it is cordoned, else 0"),
        "pods": (INT64, "how many pods it may hold"),
        "allocatable": (STRING, "allocatable amounts, as JSON"),
        "taints": (STRING, "its taints as key=value:effect, separated by commas"),
    },
    "devices": {
        "driver": (STRING, "its driver"),
        "pool": (STRING, "its pool"),
        "device": (STRING, "its name"),
        "slice": (STRING, "the ResourceSlice that lists it"),
        "node": (STRING, "the node that reaches it; null if several may"),
        "capacity": (STRING, "its capacities, as JSON"),
        "consumes": (STRING, "what it consumes of the counters of its slice, as JSON"),
        "counters": (STRING, "the counters of its slice, as JSON"),
    },
    "allocations": {
        "time_us": (INT64, "when it happened"),
        "what": (
            STRING,
            "allocated or deallocated: a device of the claim; "
            "reserved or unreserved: the claim, for a pod",
        ),
        "claim": (STRING, "namespace/name of the claim"),
        "pod": (
            INT64,
            "number of the pod that uses the claim; of several, the first to begin or last to end",
        ),
        "node": (STRING, "node of the pod, if it begins to use the claim"),
        "driver": (STRING, "driver of the device"),
        "pool": (STRING, "pool of the device"),
        "device": (STRING, "name of the device; null if only a pod changed"),
        "request": (STRING, "the request of the claim"),
        "admin_access": (INT64, "1 if the request is for admin access, else 0"),
        "share": (STRING, "share of a device that several claims may use; null for all of it"),
        "consumed": (STRING, "what the share consumes of capacities, as JSON"),
    },
    "samples": {
        "time_us": (INT64, "when the sample was taken"),
        "zone": (STRING, "zone of the nodes, as in `nodes`; the empty string for the whole fleet"),
        "metric": (STRING, "what was measured"),
        "resource": (STRING, "the resource, if the metric is of one"),
        "value": (FLOAT64, "the value"),
    },
    "class_samples": {
        "time_us": (INT64, "when the sample was taken"),
        "class": (INT64, "the class; null for all after the first 4,096 classes, together"),
        "created": (INT64, "its pods so far"),
        "pending": (INT64, "those that wait for a node"),
        "running": (INT64, "those on nodes"),
        "finished": (INT64, "those that are done or failed"),
        "removed": (INT64, "those that were deleted, evicted, preempted or lost"),
    },
}
"""Columns by table, in order: type and meaning. The documentation lists these."""


class TableWriter:
    """Append rows to one table.

    directory: of all tables; the table's folder is created in it. max_rows: of the table. rows:
    number of rows in complete parts.
    """

    def __init__(self, directory: Path, name: str, max_rows: int = sys.maxsize) -> None:
        self._name, self._max_rows = name, max_rows
        # Rows in memory at which to act: a part is full, or the table has one row too many.
        self._next_write = min(PART_ROWS, max_rows + 1)
        self._folder = directory / name
        self._columns = COLUMNS[name]
        self._rows: list[Row] = []
        self._parts = 0
        self.rows = 0
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritten(self._folder, error) from error

    def append(self, row: Row) -> None:
        """Append a row.

        Raises InputError if a part cannot be written, PartDiffersError if a part of its name has
        other content, LimitExceededError beyond `max_rows`.
        """
        self._rows.append(row)
        if len(self._rows) >= self._next_write:
            if self.rows + len(self._rows) > self._max_rows:
                problem = f"table {self._name} has more than {self._max_rows:,} rows"
                raise LimitExceededError(f"{problem} (limits.rows)")
            self._write()
            self._next_write = min(PART_ROWS, self._max_rows + 1 - self.rows)

    def close(self) -> None:
        """Write the remaining rows; a table without rows has one empty part.

        Raises as `append`, and PartDiffersError if the folder has more parts than the run.
        """
        if self._rows or not self._parts:
            self._write()
        if surplus := sorted(self._folder.glob("part-*.parquet"))[self._parts :]:
            raise PartDiffersError(f"{surplus[0]} is there, and the run has no such part")

    def _part(self, number: int) -> Path:
        return self._folder / f"part-{number:05}.parquet"

    def _write(self) -> None:
        values: Sequence[Sequence[object]] = (
            list(zip(*self._rows, strict=True)) if self._rows else [[] for _ in self._columns]
        )
        types = [data_type for data_type, _ in self._columns.values()]
        columns = [column(each, data_type) for each, data_type in zip(values, types, strict=True)]
        target = self._part(self._parts)
        content = encode_parquet(make_table(dict(zip(self._columns, columns, strict=True))))
        if target.exists():
            if target.read_bytes() != content:
                raise PartDiffersError(f"{target} differs from what the run gives now")
        else:
            unfinished = target.with_suffix(".unfinished")
            try:
                unfinished.write_bytes(content)
                os.replace(unfinished, target)
            except OSError as error:
                raise _unwritten(target, error) from error
        self._parts += 1
        self.rows += len(self._rows)
        self._rows = []


def _unwritten(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written: {error.strerror}", source=str(path))
