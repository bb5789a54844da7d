"""`roadstead simulate`: play a scenario in virtual time."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import OutputFormat, format_option, plugin_option

_PATH = click.Path(path_type=Path)


@click.command("simulate", cls=ReportingCommand)
@click.argument("scenario", metavar="SCENARIO", type=_PATH)
@click.option(
    "-o",
    "--output",
    type=_PATH,
    metavar="DIR",
    help="Folder for the tables of each run (Parquet), summary.json and report.html [default: "
    "small.run for small.yaml].",
)
@click.option("--seed", type=int, metavar="N", help="Play this seed alone, in place of all.")
@click.option("--force", is_flag=True, help="Replace the results of other runs.")
@click.option(
    "--resume",
    is_flag=True,
    help="Continue runs that were interrupted. Finished runs are kept; another one is played again "
    "from its start, and what it had written is compared.",
)
@click.option("--wide", is_flag=True, help="Also print the waits by owner of the pods.")
@plugin_option
@format_option
def simulate_command(
    *,
    scenario: Path,
    output: Path | None,
    seed: int | None,
    force: bool,
    resume: bool,
    wide: bool,
    plugin: tuple[str, ...],
    output_format: OutputFormat,
) -> None:
    """Play a scenario in virtual time: what arrives, waits, runs and ends, and where.

    Decides as a live run does, with the configuration of the scenario, as fast as the machine can.
    Each configuration and seed of the scenario is a run of its own; one scenario and seed always
    give the same tables, byte for byte. With --resume, SCENARIO may be the folder of the runs.

    \b
    Examples:
      roadstead scenario init -o small.yaml
      roadstead simulate small.yaml -o small.run
      roadstead simulate small.run --resume
      roadstead simulate small.yaml --seed 2 --format json
      roadstead why small.run web-0                         # the life of one pod
      roadstead query small.run 'FROM pods LIMIT 10'        # SQL over the tables
      roadstead check small.run       # do the tables keep every rule?

    Exit status: 0 done, 1 a run failed, 2 invalid input, 130 or 143 interrupted.
    """
    if force and resume:
        raise click.UsageError("--force and --resume exclude each other")
    from roadstead.cli.simulate_run import SimulateOptions, simulate

    options = SimulateOptions(
        output,
        seed,
        may_replace=force,
        is_resumed=resume,
        is_wide=wide,
        output_format=output_format,
    )
    simulate(scenario, plugin, options)
