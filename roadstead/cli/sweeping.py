"""Carrying out a sweep of a scenario: its runs, its files, its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from roadstead.api.scenario_sweep import (
    SweepFolder,
    prepare_sweep,
    run_sweep,
    sweep_document,
    sweep_of,
)
from roadstead.cli.notes import echo_note
from roadstead.cli.options import OutputFormat
from roadstead.cli.result_forms import print_json
from roadstead.cli.session import Session
from roadstead.cli.stress_options import JobOptions
from roadstead.cli.stress_runs import joins_cluster, processes_of
from roadstead.cli.sweep_progress import SweepProgress
from roadstead.config.scenario.read import ScenarioFile, load_scenario
from roadstead.config.scenario.vary import read_axis
from roadstead.interruption import Interrupted
from roadstead.lab.scenario_sweep import Row, ScenarioSweep, Spread, name_of, spreads, value_text
from roadstead.protocol.errors import InputError
from roadstead.report.units import significant
from roadstead.sweeps.carry_out import SweepEnd
from roadstead.sweeps.results_file import RESULTS_FILE_NAME

ENGINE: Final = "virtual"
"""The engine of all scenarios, by its name in `roadstead stress`: simulated time, one core a
run."""

METRICS_SHOWN: Final = (
    *("placed_share", "wait_p50_s", "wait_p99_s", "pending_pod_hours"),
    *("utilization cpu", "fragmentation cpu"),
)
"""Metrics of the table on the terminal; files and JSON have all."""


@dataclass(frozen=True, slots=True)
class SweepTarget:
    """The output of a sweep. has_tables: the tables of each run are written, too."""

    output: Path | None
    has_tables: bool
    output_format: OutputFormat


def sweep(
    session: Session,
    path: Path,
    vary: Sequence[str],
    seeds: int | None,
    jobs: JobOptions,
    target: SweepTarget,
) -> None:
    """Play every combination; write the files, print the result."""
    if target.has_tables and target.output is None:
        raise InputError("needs --output", source="--tables")
    file = load_scenario(path)
    planned = sweep_of(file, [read_axis(file, each) for each in vary], seeds)
    rows, end = run_scenarios(session, file, planned, jobs, target)
    if rows:
        show(planned, rows, target)
    if end.stopped_by is not None:
        click.echo(f"Incomplete sweep: {len(rows)} of {planned.size} runs", err=True)
        raise end.stopped_by


def run_scenarios(
    session: Session,
    file: ScenarioFile,
    planned: ScenarioSweep,
    jobs: JobOptions,
    target: SweepTarget,
) -> tuple[list[Row], SweepEnd]:
    """Play the runs of a sweep, with progress, and write its files.

    Every combination is compiled before the first run, so a wrong one is reported early.
    """
    folder = SweepFolder(target.output, target.has_tables, jobs.resume)
    prepare_sweep(file, planned, folder)
    if target.has_tables and joins_cluster(ENGINE, jobs):
        raise InputError("keeps no tables of runs on a cluster", source="--tables")
    runs = planned.runs()
    progress = SweepProgress(lambda number: name_of(runs[number][0]))
    try:
        rows, end = run_sweep(
            file,
            planned,
            folder,
            lambda work: processes_of(session, ENGINE, work, jobs, progress),
            progress,
        )
    finally:
        progress.end()
    if target.output is not None:
        _report_kept_results(end, target.output)
    return rows, end


def _report_kept_results(end: SweepEnd, output: Path) -> None:
    """Name the file of finished runs in the message of an interruption, or in a note."""
    if end.stopped_by is None or not end.results:
        return
    stored = f"Finished runs are in {output / RESULTS_FILE_NAME}"
    kept = f"{stored}; the same command with --resume continues the sweep."
    if isinstance(end.stopped_by, Interrupted):
        end.stopped_by.kept = kept
    else:
        echo_note(kept)


def show(planned: ScenarioSweep, rows: Sequence[Row], target: SweepTarget) -> None:
    """Print the result on standard output, and the folder on standard error."""
    if target.output_format == "json":
        print_json(sweep_document(planned, rows))
    else:
        _print_table(planned, rows)
    if target.output is not None:
        click.echo(f"\nWritten to {target.output}", err=True)


def _print_table(planned: ScenarioSweep, rows: Sequence[Row]) -> None:
    from rich.console import Console

    from roadstead.report.text_table import Column, print_table, text_column

    points = spreads(rows)
    names = [name for name in METRICS_SHOWN if any(name in metrics for _, _, metrics in points)]
    keys = [key for key, _ in planned.axes]
    columns = [*map(text_column, keys), Column("runs"), *(Column(name) for name in names)]
    cells = [
        [
            *(value_text(values[key]) for key in keys),
            str(count),
            *(_cell(metrics.get(name)) for name in names),
        ]
        for values, count, metrics in points
    ]
    title = f"{planned.scenario}: median (lowest to highest) over seeds"
    print_table(Console(), title, columns, cells, keys=max(1, len(keys)))


def _cell(spread: Spread | None) -> str:
    if spread is None:
        return "–"
    median = significant(spread.median, 3)
    if spread.low == spread.high:
        return median
    return f"{median} ({significant(spread.low, 3)} to {significant(spread.high, 3)})"
