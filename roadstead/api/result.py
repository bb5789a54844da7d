"""The result of a run in the Python API."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from roadstead.api.frames import as_frame
from roadstead.api.run_steps import check_output, write_result
from roadstead.facts.pod import Pod
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.pods import ControllerPods, PodLine, all_lines, result_document, workloads
from roadstead.report.result import (
    ClaimedDevice,
    InputDigest,
    Json,
    NotCreated,
    PendingPod,
    PlacedPod,
    PreemptedPod,
    RunResult,
)
from roadstead.report.tables import RowTable, arrow_nodes, arrow_pods, arrow_table, table_rows
from roadstead.run import RunPlan

if TYPE_CHECKING:
    import pandas as pd
    from arro3.core import Table

TableName = Literal["placements", "pending", "preempted", "not_created", "devices", "nodes", "pods"]
"""Names of the tables of `Result.to_arrow`."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Result:
    """The result of `Cluster.schedule`: everything that `roadstead schedule` prints and writes.

    notes: on the inputs, the configuration and the run. _reported: the pods that were to be
    scheduled, then the running pods that were preempted.
    """

    notes: tuple[str, ...]
    _run: RunResult
    _plan: RunPlan
    _reported: tuple[Pod, ...]
    _digests: tuple[InputDigest, ...]

    def __repr__(self) -> str:
        placed, pending = len(self.placements), len(self.pending)
        preempted = f", {len(self.preempted):,} preempted" if self.preempted else ""
        refused = f", {len(self.not_created):,} not created" if self.not_created else ""
        counts = f"{placed:,} placed, {pending:,} pending{preempted}{refused}"
        return f"<Result {self._run.source}: {counts}>"

    @property
    def placements(self) -> tuple[PlacedPod, ...]:
        """Pods that were placed: pod (`namespace/name`), uid, node."""
        return self._run.placements

    @property
    def pending(self) -> tuple[PendingPod, ...]:
        """Pods without a node: pod, uid, message (FailedScheduling), reasons, plugins."""
        return self._run.pending

    @property
    def preempted(self) -> tuple[PreemptedPod, ...]:
        """Running pods that were evicted for others: pod, uid, node, preemptor."""
        return self._run.preempted

    @property
    def devices(self) -> tuple[ClaimedDevice, ...]:
        """Devices allocated to claims: claim, request, driver, pool, device, pods."""
        return self._run.devices

    @property
    def not_created(self) -> tuple[NotCreated, ...]:
        """Objects that admission refuses: kind, name, workload, source, reason."""
        return self._run.not_created

    @property
    def pods(self) -> tuple[PodLine, ...]:
        """Every pod that was to be scheduled: pod, workload, node ("" for none), reason.

        Preempted pods and pods that are not created come last, with the reason.
        """
        return tuple(all_lines(self._reported, self._run))

    @property
    def workloads(self) -> tuple[ControllerPods, ...]:
        """Counts by workload: name, nodes (node → pods), placed, pending, preempted."""
        return workloads(self._reported, self._run)

    def document(self) -> dict[str, Json]:
        """The summary, workloads and pods: the JSON of `roadstead schedule -o json`."""
        return result_document(self._run, self._reported)

    def to_arrow(self, table: TableName = "placements") -> Table:
        """Return a table of the result. Raises InputError for an unknown name.

        All tables but `pods` equal the Parquet files of an output directory. `nodes` has int64
        columns RESOURCE_allocatable, RESOURCE_before and RESOURCE_after: cpu in milli-CPU, memory
        in bytes. `pods` has the rows of the property `pods`.
        """
        match table:
            case "nodes":
                return arrow_nodes(self._run.node_use)
            case "pods":
                return arrow_pods(self.pods)
            case _ if table in get_args(RowTable):
                return arrow_table(table, table_rows(self._run, table))
        known = ", ".join(get_args(TableName))
        raise InputError(f"is no table (there are: {known})", field="table", value=cut_short(table))

    def to_pandas(self, table: TableName = "placements") -> pd.DataFrame:
        """Return `to_arrow` as a pandas frame. Raises RoadsteadError if pandas is not installed."""
        return as_frame(self.to_arrow(table))

    def write(self, directory: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the output directory of `roadstead schedule --output`, without a journal.

        force: replace the results of another run. Raises InputError if it cannot be written.
        """
        path = Path(directory)
        check_output(path, may_replace=force, force="force=True")
        write_result(path, self._run, self._plan, self._digests)
