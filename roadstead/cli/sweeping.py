"""Carrying out a sweep of a scenario: its runs, its files, its table."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Final, cast

import click

from roadstead.api.scenario_runs import plan_with
from roadstead.cli.notes import echo_note
from roadstead.cli.options import OutputFormat
from roadstead.cli.result_forms import print_json
from roadstead.cli.session import Session
from roadstead.cli.stress_options import JobOptions
from roadstead.cli.stress_runs import joins_cluster, processes_of
from roadstead.cli.sweep_progress import SweepProgress
from roadstead.config.scenario.read import ScenarioFile, load_scenario
from roadstead.config.scenario.vary import CONFIG, configs_of, packed, read_axis
from roadstead.interruption import Interrupted
from roadstead.lab.scenario_sweep import (
    Row,
    ScenarioSweep,
    Spread,
    name_of,
    rows_of,
    spreads,
    value_text,
)
from roadstead.protocol.errors import InputError
from roadstead.report.paths import entries
from roadstead.report.units import significant
from roadstead.sweeps.carry_out import NoStore, ResultStore, SweepEnd, carry_out
from roadstead.sweeps.results_file import NAME, ResultsFile, header_of, refuse_unfinished
from roadstead.sweeps.tasks import Plain, Work

ENGINE: Final = "virtual"
JSON_FILE: Final = "sweep.json"
CSV_FILE: Final = "sweep.csv"
SHOWN: Final = (
    *("placed_share", "wait_p50_s", "wait_p99_s", "pending_pod_hours"),
    *("utilization cpu", "fragmentation cpu"),
)
"""Metrics of the table on the terminal; files and JSON have all."""


@dataclass(frozen=True, slots=True)
class SweepTarget:
    """Where the results go."""

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
    planned = sweep_of(file, vary, seeds)
    rows, end = run_scenarios(session, file, planned, jobs, target)
    if rows:
        show(planned, rows, target)
    if end.ended is not None:
        click.echo(f"Incomplete sweep: {len(rows)} of {planned.size} runs", err=True)
        raise end.ended


def sweep_of(file: ScenarioFile, vary: Sequence[str], seeds: int | None) -> ScenarioSweep:
    """Return the sweep that the options define. Raises InputError; nothing has run.

    The configurations of the scenario are an axis, unless the options name others.
    """
    axes = [read_axis(file, each) for each in vary]
    keys = [each.key for each in axes]
    if doubled := next((key for key in keys if keys.count(key) > 1), None):
        raise InputError("is varied twice", source="--vary", field=doubled)
    found = [(each.key, each.values) for each in axes]
    configs = configs_of(file)
    if len(configs) > 1 and not any(key.split(".")[0] in (CONFIG, "scheduler") for key in keys):
        found.append((CONFIG, tuple(configs)))
    chosen = tuple(range(seeds)) if seeds is not None else tuple(file.scenario.seeds)
    planned = ScenarioSweep(file.scenario.metadata.name, tuple(found), chosen)
    planned.check()
    return planned


def run_scenarios(
    session: Session,
    file: ScenarioFile,
    planned: ScenarioSweep,
    jobs: JobOptions,
    target: SweepTarget,
) -> tuple[list[Row], SweepEnd]:
    """Play the runs of a sweep, with progress, and write its files.

    Every combination is compiled before.
    """
    if jobs.resume and target.output is None:
        raise InputError("needs the --output folder of the sweep to continue", source="--resume")
    for values in planned.combinations():
        plan_with(file, values)
    if target.output is not None and not jobs.resume:
        refuse_unfinished(target.output / NAME)
        if entries(target.output):
            raise InputError("holds other files; name a new directory", source=str(target.output))
    runs = planned.runs()
    progress = SweepProgress(lambda number: name_of(runs[number][0]))
    is_on_cluster = joins_cluster(ENGINE, jobs)
    if is_on_cluster and target.has_tables:
        raise InputError("keeps no tables of runs on a cluster", source="--tables")
    folder = target.output.resolve() / "runs" if target.output and target.has_tables else None
    tasks: list[dict[str, Plain]] = [
        {
            "values": cast("Plain", values),
            "seed": seed,
            "tables": "" if folder is None else str(folder / f"{place + 1:03}"),
        }
        for place, (values, seed) in enumerate(runs)
    ]
    scenario = packed(file)
    work = Work("scenario", {"scenario": cast("Plain", scenario)}, tuple(tasks))
    processes = processes_of(session, ENGINE, work, jobs, progress)
    try:
        with _store(planned, scenario, target, is_resumed=jobs.resume) as store:
            end = carry_out(work, processes, store, progress, monotonic)
    finally:
        progress.end()
    rows = rows_of(planned, end.results)
    if target.output is not None:
        _write(target.output, planned, rows)
        _name_kept(end, target.output)
    return rows, end


@contextmanager
def _store(
    planned: ScenarioSweep, scenario: Mapping[str, object], target: SweepTarget, *, is_resumed: bool
) -> Iterator[ResultStore]:
    if target.output is None:
        yield NoStore()
        return
    plan = {
        "scenario": cast("Plain", scenario["document"]),
        "vary": cast("Plain", [[key, list(values)] for key, values in planned.axes]),
        "seeds": cast("Plain", list(planned.seeds)),
        "tables": target.has_tables,
    }
    path, header = target.output / NAME, header_of(plan, planned.size)
    opened = ResultsFile.resume(path, header) if is_resumed else ResultsFile.begin(path, header)
    try:
        yield opened
    finally:
        opened.close()


def _name_kept(end: SweepEnd, output: Path) -> None:
    if end.ended is None or not end.results:
        return
    stored = f"Finished runs are in {output / NAME}"
    kept = f"{stored}; the same command with --resume continues the sweep."
    if isinstance(end.ended, Interrupted):
        end.ended.kept = kept
    else:
        echo_note(kept)


def document(planned: ScenarioSweep, rows: Sequence[Row]) -> dict[str, object]:
    """Return the result as a JSON object."""
    return {
        "scenario": planned.scenario,
        "vary": {key: list(values) for key, values in planned.axes},
        "seeds": list(planned.seeds),
        "points": [
            {
                "values": dict(values),
                "runs": count,
                "metrics": {name: asdict(spread) for name, spread in metrics.items()},
            }
            for values, count, metrics in spreads(rows)
        ],
        "runs": [
            {"values": dict(row.values), "seed": row.seed, "metrics": dict(row.metrics)}
            for row in rows
        ],
    }


def _write(output: Path, planned: ScenarioSweep, rows: Sequence[Row]) -> None:
    """Write sweep.json, and sweep.csv with a row for each run."""
    text = json.dumps(document(planned, rows), indent=2)
    (output / JSON_FILE).write_text(f"{text}\n", encoding="utf-8")
    keys = [key for key, _ in planned.axes]
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    with (output / CSV_FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*keys, "seed", *names])
        for row in rows:
            values = (value_text(row.values[key]) for key in keys)
            writer.writerow([*values, row.seed, *(row.metrics.get(name, "") for name in names)])


def show(planned: ScenarioSweep, rows: Sequence[Row], target: SweepTarget) -> None:
    """Print the result on standard output, and the folder on standard error."""
    if target.output_format == "json":
        print_json(document(planned, rows))
    else:
        _print_table(planned, rows)
    if target.output is not None:
        click.echo(f"\nWritten to {target.output}", err=True)


def _print_table(planned: ScenarioSweep, rows: Sequence[Row]) -> None:
    from rich.console import Console

    from roadstead.report.text_table import Column, print_table, text_column

    points = spreads(rows)
    names = [name for name in SHOWN if any(name in metrics for _, _, metrics in points)]
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
    middle = significant(spread.median, 3)
    if spread.low == spread.high:
        return middle
    return f"{middle} ({significant(spread.low, 3)} to {significant(spread.high, 3)})"
