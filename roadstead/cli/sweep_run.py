"""Carrying out a sweep of a scenario: its runs, its files, its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from roadstead.api.run_folder import REPORT_FILE
from roadstead.api.scenario_sweep import (
    PreparedSweep,
    SweepFolder,
    prepare_sweep,
    run_sweep,
    sweep_document,
    sweep_of,
    write_sweep_report,
)
from roadstead.cli.notes import echo_note
from roadstead.cli.options import OutputFormat
from roadstead.cli.result_forms import print_json
from roadstead.cli.session import Session
from roadstead.cli.stress_options import JobOptions
from roadstead.cli.stress_runs import joins_cluster, processes_of, report_kept_results
from roadstead.cli.sweep_progress import CombinationLines, SweepProgress
from roadstead.config.scenario.read import ScenarioFile, load_scenario
from roadstead.config.scenario.vary import read_axis
from roadstead.lab.scenario_sweep import (
    MetricSpread,
    ScenarioSweep,
    SweepRow,
    name_of,
    spreads,
    value_text,
)
from roadstead.protocol.errors import InputError
from roadstead.report.units import counted, significant
from roadstead.sweeps.carry_out import SweepEnd

ENGINE: Final = "virtual"
"""The engine of all scenarios, by its name in `roadstead stress`: simulated time, one core a
run."""

METRICS_SHOWN: Final = (
    *("placed_share", "wait_p50_s", "wait_p99_s", "pending_pod_hours"),
    *("utilization cpu", "fragmentation cpu"),
)
"""Metrics of the table on the terminal; files and JSON have all."""


NOTES_MAX: Final = 10
"""Maximum number of notes on the scenarios of all combinations."""


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
    plugins: Sequence[str],
    jobs: JobOptions,
    target: SweepTarget,
) -> None:
    """Play every combination; write the files, print the result."""
    file = load_scenario(path)
    planned = sweep_of(file, [read_axis(file, each) for each in vary], seeds)
    prepared, rows, end = run_scenarios(session, file, planned, plugins, jobs, target)
    if target.output is not None:
        write_sweep_report(target.output, prepared, rows)
    if rows:
        show(prepared, rows, target)
    if end.stopped_by is not None:
        click.echo(f"Incomplete sweep: {len(rows)} of {planned.size} runs", err=True)
        raise end.stopped_by


def run_scenarios(
    session: Session,
    file: ScenarioFile,
    planned: ScenarioSweep,
    plugins: Sequence[str],
    jobs: JobOptions,
    target: SweepTarget,
) -> tuple[PreparedSweep, list[SweepRow], SweepEnd]:
    """Play the runs of a sweep, with progress, and write its files.

    Every combination is compiled before the first run, so a wrong one is reported early.
    """
    if target.has_tables and target.output is None:
        raise InputError("needs --output", source="--tables")
    folder = SweepFolder(target.output, target.has_tables, jobs.resume)
    prepared = prepare_sweep(file, planned, folder, plugins)
    if target.has_tables and joins_cluster(ENGINE, jobs):
        raise InputError("keeps no tables of runs on a cluster", source="--tables")
    for note in prepared.notes[:NOTES_MAX]:
        echo_note(f"note: {note}")
    runs = planned.runs()
    progress = SweepProgress(lambda number: name_of(runs[number][0]))
    try:
        rows, end = run_sweep(
            prepared,
            lambda work: processes_of(session, ENGINE, work, jobs, progress),
            progress,
            CombinationLines(planned, progress.result),
        )
    finally:
        progress.end()
    if errors := sum(row.metrics.get("plugin_errors", 0.0) for row in rows):
        shown = f"note: Plugins failed in {counted(round(errors), 'attempt')}"
        echo_note(f"{shown}; a pod waits after one. roadstead simulate has the messages.")
    report_kept_results(end, target.output)
    return prepared, rows, end


def show(prepared: PreparedSweep, rows: Sequence[SweepRow], target: SweepTarget) -> None:
    """Print the result on standard output, and the folder on standard error."""
    if target.output_format == "json":
        print_json(sweep_document(prepared, rows))
    else:
        _print_table(prepared.planned, rows)
    if target.output is not None:
        echo_written(target.output)


def echo_written(output: Path) -> None:
    """Name the folder and the report on standard error."""
    click.echo(f"\nWritten to {output}; report: {output / REPORT_FILE}", err=True)


def _print_table(planned: ScenarioSweep, rows: Sequence[SweepRow]) -> None:
    from roadstead.report.scenario_sweep_plots import varying_metrics
    from roadstead.report.text_table import Column, print_table, text_column, wide_console

    # (combination, number of its runs, metrics over them).
    points = spreads(rows)
    varying, constant = varying_metrics(points)
    names = [name for name in METRICS_SHOWN if name in varying]
    keys = [key for key, _ in planned.axes]
    heads = short_keys(keys)
    columns = [*map(text_column, heads), Column("runs"), *(Column(name) for name in names)]
    cells = [
        [
            *(value_text(values[key]) for key in keys),
            str(count),
            *(_cell(metrics.get(name)) for name in names),
        ]
        for values, count, metrics in points
    ]
    title = f"{planned.scenario}: median (lowest to highest) over seeds"
    first = points[0][2]
    equal = [
        f"{each} {significant(first[each].median, 3)}" for each in METRICS_SHOWN if each in constant
    ]
    left_out = f"\nThe same in every run: {', '.join(equal)}" if equal else ""
    keys_shown = max(1, len(keys))
    print_table(wide_console(), title, columns, cells, keys=keys_shown, left_out=left_out)


def short_keys(keys: Sequence[str]) -> list[str]:
    """Return the last parts of keys, each with as many as make it unique, or with all."""
    short = []
    for key in keys:
        parts = key.split(".")
        others = [each.split(".") for each in keys if each != key]
        unique = (
            n for n in range(1, len(parts)) if all(each[-n:] != parts[-n:] for each in others)
        )
        # A whole key may be the end of another one.
        short.append(".".join(parts[-next(unique, len(parts)) :]))
    return short


def _cell(spread: MetricSpread | None) -> str:
    if spread is None:
        return "–"
    median = significant(spread.median, 3)
    if spread.low == spread.high:
        return median
    return f"{median} ({significant(spread.low, 3)} to {significant(spread.high, 3)})"
