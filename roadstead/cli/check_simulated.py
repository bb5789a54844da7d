"""Reading the tables of simulated runs, to check them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

import click

from roadstead.cli.errors import FAILED
from roadstead.cli.options import OutputFormat
from roadstead.invariants.simulated_run import NodeRow, PodRow, RunTables, SampleRow, check_run
from roadstead.protocol.errors import InputError
from roadstead.report.parquet import read_columns

PODS = (
    *("number", "uid", "class", "created_us", "bound_us", "started_us", "ended_us"),
    *("ending", "node"),
)


def runs_in(folder: Path) -> list[Path]:
    """Return the folders of simulated runs that a folder is or has; none if it has none."""
    if (folder / "pods").is_dir() and (folder / "samples").is_dir():
        return [folder]
    if not folder.is_dir():
        return []
    return sorted(each for each in folder.iterdir() if (each / "pods").is_dir())


def check_simulated(runs: Sequence[Path], show: int, output_format: OutputFormat) -> None:
    """Check simulated runs and print what was found; exit status 1 if a rule is violated."""
    found = []
    for run in runs:
        tables = read_run(run)
        found.append((run, len(tables.pods), list(check_run(tables))))
    if output_format == "json":
        documents = [
            {"run": str(run), "pods": pods, "violations": [asdict(each) for each in violations]}
            for run, pods, violations in found
        ]
        click.echo(json.dumps({"runs": documents}, indent=2))
    else:
        for run, pods, violations in found:
            for each in violations[: show or None]:
                click.echo(f"{each.rule}  {each.subject}: {each.text}")
            click.echo(f"{run}: {pods:,} pods checked: {len(violations) or 'no'} violations")
    if any(violations for _, _, violations in found):
        raise click.exceptions.Exit(FAILED)


def read_run(folder: Path) -> RunTables:
    """Read the tables of a run. Raises InputError for one that cannot be read."""
    pods = [_pod(row) for row in _rows_of_table(folder, "pods", PODS)]
    classes = _rows_of_table(folder, "classes", ("class", "requests", "from_devices"))
    attempts = _rows_of_table(folder, "attempts", ("time_us", "pod", "outcome", "node"))
    nodes = _rows_of_table(folder, "nodes", ("time_us", "node", "allocatable", "pods"))
    samples = _rows_of_table(folder, "samples", ("time_us", "zone", "metric", "value"))
    return RunTables(
        pods,
        {cast("int", number): json.loads(str(requests)) for number, requests, _ in classes},
        [
            NodeRow(
                cast("int", time_us),
                str(node),
                None if room is None else json.loads(str(room)),
                cast("int", limit or 0),
            )
            for time_us, node, room, limit in nodes
        ],
        [
            (cast("int", time_us), cast("int", pod), str(node))
            for time_us, pod, outcome, node in attempts
            if outcome == "bound"
        ],
        [
            SampleRow(cast("int", time_us), str(metric), cast("float", value))
            for time_us, zone, metric, value in samples
            if not zone
        ],
        {cast("int", number): frozenset(str(names).split(",")) for number, _, names in classes},
    )


def _pod(row: tuple[object, ...]) -> PodRow:
    number, uid, pod_class, created_us, bound_us, started_us, ended_us, ending, node = row
    return PodRow(
        cast("int", number),
        str(uid),
        cast("int", pod_class),
        cast("int", created_us),
        cast("int | None", bound_us),
        cast("int | None", started_us),
        cast("int | None", ended_us),
        cast("str | None", ending),
        cast("str | None", node),
    )


def _rows_of_table(folder: Path, table: str, columns: Sequence[str]) -> list[tuple[object, ...]]:
    """Return the named columns of a table, row by row. InputError if it cannot be read."""
    rows: list[tuple[object, ...]] = []
    parts = sorted((folder / table).glob("part-*.parquet"))
    if not parts:
        raise InputError("has no parts", source=str(folder / table))
    for part in parts:
        try:
            rows += zip(*read_columns(part, columns), strict=True)
        except (OSError, ValueError) as unreadable:
            raise InputError(str(unreadable), source=str(part)) from unreadable
    return rows
