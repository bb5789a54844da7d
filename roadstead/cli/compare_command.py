"""`roadstead compare`: paired differences of two configurations, runs or sweeps."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import OutputFormat, format_option, gathered
from roadstead.cli.session import Session
from roadstead.cli.stress_options import JobOptions, job_parameters

_PATH = click.Path(path_type=Path)


@click.command("compare", cls=ReportingCommand)
@click.argument("first", metavar="SCENARIO|RUN_A", type=_PATH)
@click.argument("second", metavar="[RUN_B]", type=_PATH, required=False)
@click.option(
    "--a",
    "config_a",
    metavar="CONFIG",
    help="Configuration of A: a file, or the name of an included one (roadstead config --preset).",
)
@click.option(
    "--b", "config_b", metavar="CONFIG", help="Configuration of B, which is compared with A."
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Number of runs of each configuration [default: the seeds of the scenario].",
)
@gathered("jobs", JobOptions, job_parameters)
@click.option(
    "-o",
    "--output",
    type=_PATH,
    metavar="DIR",
    help="Folder for the runs of the scenario, as of `roadstead sweep`.",
)
@format_option
@click.pass_obj
def compare_command(
    session: Session,
    *,
    first: Path,
    second: Path | None,
    config_a: str | None,
    config_b: str | None,
    seeds: int | None,
    jobs: JobOptions,
    output: Path | None,
    output_format: OutputFormat,
) -> None:
    """Compare two configurations on one scenario and the same seeds, or two finished runs.

    RUN_A and RUN_B are folders of roadstead simulate or roadstead sweep; runs with the same seed
    are a pair.

    Prints for each metric the means of A and B, their paired difference (B minus A) and its 95%
    confidence interval. If an interval includes 0, no difference is shown.

    \b
    Examples:
      roadstead compare small.yaml --a default --b binpack --seeds 10
      roadstead simulate small.yaml -o before
      roadstead simulate changed.yaml -o after
      roadstead compare before after

    Exit status: 0 done, 1 a run failed, 2 wrong input, 130 or 143 interrupted (SIGINT, SIGTERM).
    """
    from roadstead.cli import comparing

    if second is None:
        configs = config_a, config_b
        comparing.play_and_compare(session, first, configs, seeds, jobs, output, output_format)
    else:
        given = {
            "--a": config_a,
            "--b": config_b,
            "--seeds": seeds,
            "--jobs": jobs.jobs,
            "--ray-address": jobs.ray_address,
            "--settings": jobs.settings,
            "--resume": jobs.resume or None,
            "--output": output,
        }
        comparing.compare_finished(first, second, given, output_format)
