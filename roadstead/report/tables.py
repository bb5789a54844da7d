"""The tables of a run: the rows and columns of the files in an output directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Final, Literal

import pyarrow as pa

from roadstead.report.pods import PodLine
from roadstead.report.result import Json, NodeUse, PendingPod, RunResult

RowTable = Literal["placements", "pending", "preempted", "not_created"]
"""Tables with a row for each object; each is a Parquet file and a JSON file of this name."""

COLUMNS: Final[Mapping[RowTable, Mapping[str, pa.DataType]]] = {
    "placements": dict.fromkeys(("pod", "uid", "node"), pa.string()),
    "pending": {
        **dict.fromkeys(("pod", "uid", "message"), pa.string()),
        "reasons": pa.list_(pa.struct([("reason", pa.string()), ("nodes", pa.int64())])),
        "plugins": pa.list_(pa.string()),
    },
    "preempted": dict.fromkeys(("pod", "uid", "node", "preemptor"), pa.string()),
    "not_created": dict.fromkeys(("kind", "name", "workload", "source", "reason"), pa.string()),
}
"""Types of the columns."""


def table_rows(result: RunResult, name: RowTable) -> list[dict[str, Json]]:
    """The rows of a table, sorted by pod, or by kind and name."""
    key = attrgetter("pod", "uid")
    match name:
        case "placements":
            return [asdict(each) for each in sorted(result.placements, key=key)]
        case "pending":
            return [_pending_row(each) for each in sorted(result.pending, key=key)]
        case "preempted":
            return [asdict(each) for each in sorted(result.preempted, key=key)]
        case "not_created":
            refused = sorted(result.not_created, key=attrgetter("kind", "name"))
            return [asdict(each) for each in refused]


def _pending_row(pod: PendingPod) -> dict[str, Json]:
    return {
        "pod": pod.pod,
        "uid": pod.uid,
        "message": pod.message,
        "reasons": [{"reason": reason, "nodes": nodes} for reason, nodes in pod.reasons],
        "plugins": list(pod.plugins),
    }


def arrow_table(name: RowTable, rows: Sequence[Mapping[str, Json]]) -> pa.Table:
    """The rows of `table_rows` as an Arrow table."""
    columns = {
        column: pa.array([row[column] for row in rows], kind)
        for column, kind in COLUMNS[name].items()
    }
    return pa.table(columns)


def arrow_nodes(use: NodeUse) -> pa.Table:
    """A row for each node: its zone, and for each resource allocatable, before and after."""
    kinds = {"allocatable": use.allocatable, "before": use.before, "after": use.after}
    columns = {"node": pa.array(use.nodes, pa.string()), "zone": pa.array(use.zones, pa.string())}
    for index, resource in enumerate(use.resources):
        for kind, amounts in kinds.items():
            columns[f"{resource}_{kind}"] = pa.array(amounts[:, index], pa.int64())
    return pa.table(columns)


def arrow_pods(lines: Iterable[PodLine]) -> pa.Table:
    """A row for each pod, with the columns of the CSV form."""
    rows = list(lines)
    columns = [each.name for each in fields(PodLine)]
    return pa.table(
        {name: pa.array([getattr(each, name) for each in rows], pa.string()) for name in columns}
    )


def arrow_answers(
    nodes: Sequence[str],
    refused: Mapping[str, tuple[str, str]],
    scores: Mapping[str, Mapping[str, int]],
) -> pa.Table:
    """A row for each node: who filtered it out and why, and its scores by column.

    refused: node → (plugin, reason). scores: column → node → weighted score; null for others.
    """
    columns = {
        "node": pa.array(nodes, pa.string()),
        "plugin": pa.array([refused.get(node, (None, None))[0] for node in nodes], pa.string()),
        "reason": pa.array([refused.get(node, (None, None))[1] for node in nodes], pa.string()),
    }
    for name, score_of in scores.items():
        columns[name] = pa.array([score_of.get(node) for node in nodes], pa.int64())
    return pa.table(columns)
