"""`roadstead compare`: paired differences of two configurations, plugins, runs or sweeps."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import OutputFormat, format_option, options_as, plugin_option
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
    help="Configuration of A: a file, or the name of an included one (roadstead config --preset). "
    "May be left out, with --b, if the plugins differ.",
)
@click.option(
    "--b", "config_b", metavar="CONFIG", help="Configuration of B, which is compared with A."
)
@click.option(
    "--plugin-a",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Plugin of A alone, as of --plugin; may be repeated.",
)
@click.option(
    "--plugin-b",
    multiple=True,
    metavar="MODULE:CLASS",
    help="Plugin of B alone. With --plugin-a, two versions of a plugin in two files are compared; "
    "without, the plugin with none.",
)
@plugin_option
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Number of runs of each side [default: the seeds of the scenario].",
)
@options_as("jobs", JobOptions, job_parameters)
@click.option(
    "-o",
    "--output",
    type=_PATH,
    metavar="DIR",
    help="Folder for compare.json, compare.csv and report.html, and for the runs of the scenario, "
    "as of `roadstead sweep`.",
)
@click.option(
    "--tables",
    is_flag=True,
    help="Keep the tables of each run in DIR/runs (Parquet). The report then shows pods and "
    "resources over time.",
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
    plugin_a: tuple[str, ...],
    plugin_b: tuple[str, ...],
    plugin: tuple[str, ...],
    seeds: int | None,
    jobs: JobOptions,
    output: Path | None,
    tables: bool,
    output_format: OutputFormat,
) -> None:
    """Compare two configurations or plugins on one scenario and the same seeds, or finished runs.

    RUN_A and RUN_B are folders of roadstead simulate or roadstead sweep; runs with the same seed
    are a pair.

    Prints for each metric the means of A and B, their paired difference (B minus A) and its 95%
    confidence interval. If it includes 0, no difference is shown.

    \b
    Examples:
      roadstead compare small.yaml --a default --b binpack --seeds 10
      roadstead compare small.yaml --a default --b binpack --tables -o packed
      roadstead compare small.yaml --plugin-a old.py --plugin-b new.py
      roadstead simulate small.yaml -o before
      roadstead simulate changed.yaml -o after
      roadstead compare before after -o changed

    Exit status: 0 done, 1 a run failed, 2 invalid input, 130 or 143 interrupted (SIGINT, SIGTERM).
    """
    from roadstead.cli import compare_run
    from roadstead.cli.sweep_run import SweepTarget

    target = SweepTarget(output, tables, output_format)
    if second is None:
        sides = (config_a, plugin_a), (config_b, plugin_b)
        compare_run.play_and_compare(session, first, sides, plugin, seeds, jobs, target)
    else:
        unused = {
            "--a": config_a,
            "--b": config_b,
            "--plugin-a": plugin_a or None,
            "--plugin-b": plugin_b or None,
            "--plugin": plugin or None,
            "--seeds": seeds,
            "--jobs": jobs.jobs,
            "--ray-address": jobs.ray_address,
            "--settings": jobs.settings,
            "--resume": jobs.resume or None,
            "--tables": tables or None,
        }
        compare_run.compare_folders(first, second, unused, target)
