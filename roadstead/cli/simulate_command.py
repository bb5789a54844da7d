"""`roadstead simulate`: play a scenario in virtual time."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import Form, format_option

_PATH = click.Path(path_type=Path)


@click.command("simulate", cls=ReportingCommand)
@click.argument("scenario", metavar="SCENARIO", type=_PATH)
@click.option(
    "-o",
    "--output",
    type=_PATH,
    metavar="DIR",
    help="Folder for the tables of each run (Parquet) and summary.json; by default NAME.run.",
)
@click.option("--seed", type=int, metavar="N", help="Play this seed alone, in place of all.")
@click.option("--force", is_flag=True, help="Replace the results of another run.")
@format_option
def simulate_command(
    scenario: Path, output: Path | None, seed: int | None, force: bool, form: Form
) -> None:
    """Play a scenario in virtual time: what arrives, waits, runs and ends, and where.

    Decides as a live run does, with the configuration of the scenario, as fast as the machine can.
    Each configuration and seed of the scenario is a run of its own; one scenario and seed always
    give the same tables.

    \b
    Examples:
      roadstead scenario init -o small.yaml
      roadstead simulate small.yaml -o small.run
      roadstead simulate small.yaml --seed 2 --format json

    Exit status: 0 done, 1 a run failed, 2 wrong input.
    """
    from roadstead.cli.simulating import simulate

    simulate(scenario, output, seed=seed, is_replaced=force, form=form)
