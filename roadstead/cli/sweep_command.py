"""`roadstead sweep`: play variants of a scenario."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import OutputFormat, format_option, options_as, plugin_option
from roadstead.cli.session import Session
from roadstead.cli.stress_options import JobOptions, job_parameters


@click.command("sweep", cls=ReportingCommand)
@click.argument("scenario", metavar="SCENARIO", type=click.Path(path_type=Path))
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=V1,V2,…",
    help="Values to play in place of the one at KEY: a path in the scenario, in which an entry of "
    "a list has its number or name; config, for files or included configurations; or plugin, for "
    "plugins as of --plugin, null for none.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Number of runs of each combination [default: the seeds of the scenario].",
)
@plugin_option
@options_as("jobs", JobOptions, job_parameters)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the runs: each as soon as it ends, at last sweep.json, sweep.csv and "
    "report.html.",
)
@click.option("--tables", is_flag=True, help="Keep the tables of each run in DIR/runs (Parquet).")
@format_option
@click.pass_obj
def sweep_command(
    session: Session,
    *,
    scenario: Path,
    vary: tuple[str, ...],
    seeds: int | None,
    plugin: tuple[str, ...],
    jobs: JobOptions,
    output: Path | None,
    tables: bool,
    output_format: OutputFormat,
) -> None:
    """Play a scenario with every combination of some values and every seed.

    Each run is a task of its own, on the CPUs of this machine or on all nodes of a Ray cluster.
    Prints for each combination the median over the seeds, and the lowest and highest value.

    \b
    Examples:
      roadstead sweep small.yaml --vary fleet.0.generate.nodes=16,20,24
      roadstead sweep small.yaml --vary config=default,binpack -o packed
      roadstead sweep small.yaml --vary plugin=null,mine.py
      roadstead sweep small.yaml \\
        --vary workload.tasks.arrivals.poisson.per_hour=60,120,240 \\
        --jobs 2 -o rates
      roadstead sweep small.yaml --vary config=default,binpack -o packed --resume

    Exit status: 0 done, 1 a run failed, 2 invalid input, 130 or 143 interrupted (SIGINT, SIGTERM);
    finished runs are shown and kept in DIR.
    """
    from roadstead.cli.sweep_run import SweepTarget, sweep

    sweep(session, scenario, vary, seeds, plugin, jobs, SweepTarget(output, tables, output_format))
