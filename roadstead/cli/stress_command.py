"""`roadstead stress`: the conflict lab: sweeps over schedulers, staleness, batch and more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import (
    OutputFormat,
    SourceOptions,
    format_option,
    options_as,
    source_parameters,
)
from roadstead.cli.session import Session
from roadstead.cli.stress_options import (
    JobOptions,
    SweepOptions,
    job_parameters,
    sweep_parameters,
)


@click.command("stress", cls=ReportingCommand)
@click.option(
    "--list",
    "is_list",
    is_flag=True,
    help="List all presets, and the parameters of each study with their values; run none.",
)
@options_as("sweep_options", SweepOptions, sweep_parameters)
@options_as("source", SourceOptions, source_parameters)
@options_as("jobs", JobOptions, job_parameters)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the runs (each as soon as it ends, at last as Parquet and JSON), report.html "
    "and, for study product, the journals.",
)
@format_option
@click.pass_obj
def stress_command(
    session: Session,
    *,
    is_list: bool,
    sweep_options: SweepOptions,
    source: SourceOptions,
    jobs: JobOptions,
    output: Path | None,
    output_format: OutputFormat,
) -> None:
    """Measure the cost of conflicts between schedulers, in a sweep over parameters.

    Models reproduce the published figures of Omega and ParSync. With --cluster, --pods or --trace,
    Roadstead itself schedules that input in every combination of the parameters, and recommends a
    mode, a number of schedulers and a batch size for it.

    \b
    Presets: quick, omega-decision-time, omega-schedulers, omega-choices,
      omega-trace, parsync-schedulers, parsync-gap, parsync-variance,
      parsync-partitions, parsync-policies, constraint-heavy

    \b
    Examples:
      roadstead stress --list              # presets and parameters
      roadstead stress --preset quick
      roadstead stress --preset omega-choices --output out
                                           # out/report.html
      roadstead stress --decision-time 0.1,1,10 --vary placement=pack
      roadstead stress --preset constraint-heavy --output heavy
      roadstead check heavy                # 0 violations
      roadstead stress --trace openb.trace --schedulers 1,2,4 --batch 256,1024
                                           # with a recommendation
      roadstead stress --preset omega-trace --output trace --ray-address auto
                                           # over all nodes of a Ray cluster
      roadstead stress --preset omega-trace --output trace --resume
                                           # the rest of an interrupted sweep

    Exit status: 0 done, 1 a run failed, 2 invalid input, 130 or 143 interrupted (SIGINT, SIGTERM);
    finished combinations are shown, and finished runs are kept in --output.
    """
    if is_list:
        from rich.console import Console

        from roadstead.cli.stress_list import print_list

        print_list(Console())
        return
    from roadstead.cli import schedule_run, stress_run

    if source.trace is not None or source.cluster or source.pods:
        source.check()
        sweep_options = replace(sweep_options, study=sweep_options.study or "product")
    stress_run.stress(
        session, sweep_options, source, schedule_run.ResultTarget(output_format, output), jobs
    )
