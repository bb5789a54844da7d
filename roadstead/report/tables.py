"""The tables of a run: the rows and columns of the files in an output directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Final, Literal

from arro3.core import DataType, Table

from roadstead.report.arrow import INT64, STRING, column, list_of, make_table, struct_of
from roadstead.report.pods import PodLine
from roadstead.report.result import Json, NodeUse, PendingPod, RunResult

RowTable = Literal["placements", "pending", "preempted", "not_created", "devices"]
"""Tables with a row for each object; each has a Parquet file and a JSON file of this name."""

COLUMNS: Final[Mapping[RowTable, Mapping[str, DataType]]] = {
    "placements": dict.fromkeys(("pod", "uid", "node"), STRING),
    "pending": {
        **dict.fromkeys(("pod", "uid", "message"), STRING),
        "reasons": list_of(struct_of({"reason": STRING, "nodes": INT64})),
        "plugins": list_of(STRING),
    },
    "preempted": dict.fromkeys(("pod", "uid", "node", "preemptor"), STRING),
    "not_created": dict.fromkeys(("kind", "name", "workload", "source", "reason"), STRING),
    "devices": {
        **dict.fromkeys(("claim", "request", "driver", "pool", "device"), STRING),
        "pods": list_of(STRING),
    },
}
"""Types of the columns: table → column → type."""


def table_rows(result: RunResult, name: RowTable) -> list[dict[str, Json]]:
    """The rows of a table, sorted by pod, by kind and name, or by claim."""
    key = attrgetter("pod", "uid")
    match name:
        case "placements":
            # Scores are left out: they are unknown if a scheduler ended during the run.
            placed = sorted(result.placements, key=key)
            return [{"pod": e.pod, "uid": e.uid, "node": e.node} for e in placed]
        case "pending":
            return [_pending_row(each) for each in sorted(result.pending, key=key)]
        case "preempted":
            return [asdict(each) for each in sorted(result.preempted, key=key)]
        case "not_created":
            refused = sorted(result.not_created, key=attrgetter("kind", "name"))
            return [asdict(each) for each in refused]
        case "devices":
            # Devices of a claim stay in the order of its allocation, which is part of the result.
            used = sorted(result.devices, key=attrgetter("claim"))
            return [asdict(each) | {"pods": list(each.pods)} for each in used]


def _pending_row(pod: PendingPod) -> dict[str, Json]:
    return {
        "pod": pod.pod,
        "uid": pod.uid,
        "message": pod.message,
        "reasons": [{"reason": reason, "nodes": nodes} for reason, nodes in pod.reasons],
        "plugins": list(pod.plugins),
    }


def arrow_table(name: RowTable, rows: Sequence[Mapping[str, Json]]) -> Table:
    """The rows of `table_rows` as an Arrow table."""
    types = COLUMNS[name].items()
    return make_table({key: column([row[key] for row in rows], kind) for key, kind in types})


def arrow_nodes(use: NodeUse) -> Table:
    """A row for each node: its zone, and allocatable, before and after for each resource."""
    kinds = {"allocatable": use.allocatable, "before": use.before, "after": use.after}
    columns = {"node": column(use.nodes, STRING), "zone": column(use.zones, STRING)}
    for index, resource in enumerate(use.resources):
        for kind, amounts in kinds.items():
            columns[f"{resource}_{kind}"] = column(amounts[:, index].tolist(), INT64)
    return make_table(columns)


def arrow_pods(lines: Iterable[PodLine]) -> Table:
    """A row for each pod, with the columns of the CSV form."""
    rows = list(lines)
    return make_table(
        {
            each.name: column(
                [getattr(row, each.name) for row in rows],
                INT64 if each.name == "score" else STRING,
            )
            for each in fields(PodLine)
        }
    )


def arrow_answers(
    nodes: Sequence[str],
    refused: Mapping[str, tuple[str, str]],
    scores: Mapping[str, Mapping[str, int]],
) -> Table:
    """A row for each node: the plugin that filtered it out, the reason, and its scores by column.

    refused: node → (plugin, reason). scores: column → node → weighted score; null for
    nodes without one.
    """
    columns = {
        "node": column(nodes, STRING),
        "plugin": column([refused.get(node, (None, None))[0] for node in nodes], STRING),
        "reason": column([refused.get(node, (None, None))[1] for node in nodes], STRING),
    }
    for name, score_of in scores.items():
        columns[name] = column([score_of.get(node) for node in nodes], INT64)
    return make_table(columns)
