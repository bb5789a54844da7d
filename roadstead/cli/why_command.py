"""`roadstead why`: the life of one pod of a simulated run."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import (
    OutputFormat,
    check_run_is_first,
    format_option,
    plugin_option,
)


@click.command("why", cls=ReportingCommand)
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("pod", metavar="POD")
@click.option(
    "--at",
    metavar="TIME",
    help="Explain the pod node by node at this time of the scenario (3h20m), as if it were on no "
    "node. By default: at its bind.",
)
@click.option("--seed", type=int, metavar="N", help="Seed of the run; by default the first run.")
@click.option("--config", metavar="NAME", help="Configuration of the run; by default the first.")
@click.option(
    "--tables-only", is_flag=True, help="Use the tables alone; do not play the run again."
)
@click.option(
    "--top",
    type=click.IntRange(0),
    default=None,
    metavar="N",
    help="Number of feasible nodes to show, and of node names for each reason; 0 shows all "
    "[default: 10 nodes, 3 names].",
)
@plugin_option
@format_option
def why_command(
    *,
    folder: Path,
    pod: str,
    at: str | None,
    seed: int | None,
    config: str | None,
    tables_only: bool,
    top: int | None,
    plugin: tuple[str, ...],
    output_format: OutputFormat,
) -> None:
    """Explain the life of a simulated pod: attempts, refusals, bind with its reason, end.

    RUN is the folder of roadstead simulate, or that of one run; POD a name, NAMESPACE/NAME, a UID,
    or the beginning of one; or a workload with one pod: deploy/api, or an entry of the scenario.
    Of a workload with several pods, the first ones are listed. The life of a pod is from the
    tables. To explain its bind, plugin by plugin, the run is played again up to then, from the
    copies of its inputs, which takes as long as the run took. A run of roadstead sweep --tables
    cannot be played again: only the life is shown.

    \b
    Examples:
      roadstead why small.run task-0-8
      roadstead why small.run default/web-abcde --seed 2
      roadstead why small.run task-0-8 --at 3h20m     # which nodes were feasible?
      roadstead why small.run task-0-8 --tables-only  # at once
      roadstead why small.run task-0-8 --format json | jq .explanation.best

    Exit status: 0 done, 2 invalid input, or inputs that have changed since the run.
    """
    if at is not None and tables_only:
        raise click.UsageError("--at needs the run to be played again: not with --tables-only")
    from roadstead.cli.why_output import WhyQuestion, why

    check_run_is_first(folder, pod, "POD")
    why(folder, WhyQuestion(pod, at, seed, config, tables_only, plugin), top, output_format)
