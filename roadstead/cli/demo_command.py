"""`roadstead demo`: a generated fleet, scheduled."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import (
    RunFormat,
    RunOptions,
    demo_run_parameters,
    force_option,
    options_as,
    output_option,
    run_format_option,
)
from roadstead.cli.session import Session

NODES: Final = 2_000
PODS: Final = 10_000
SMALL_NODES: Final = 200
SMALL_PODS: Final = 1_000
COUNT_MAX: Final = 10_000_000

_COUNT = click.IntRange(1, COUNT_MAX)


@click.command("demo", cls=ReportingCommand)
@click.option("--small", is_flag=True, help=f"{SMALL_NODES} nodes and {SMALL_PODS:,} pods.")
@click.option("--nodes", type=_COUNT, metavar="N", help=f"Number of nodes [default: {NODES:,}].")
@click.option("--pods", type=_COUNT, metavar="N", help=f"Number of pods [default: {PODS:,}].")
@click.option("--live", is_flag=True, help="Play a day of a small fleet that loses a zone.")
@options_as("options", RunOptions, demo_run_parameters)
@output_option
@force_option
@run_format_option
@click.pass_obj
def demo_command(
    session: Session,
    *,
    small: bool,
    nodes: int | None,
    pods: int | None,
    live: bool,
    options: RunOptions,
    output: Path | None,
    force: bool,
    output_format: RunFormat,
) -> None:
    """Schedule a generated fleet.

    Nodes with and without GPUs, and pods of mixed shapes with the statistics of a production GPU
    cluster, are generated from the seed; nothing is downloaded. A local Ray is started for the run
    and stopped afterwards; --ray-address joins a Ray cluster, and with --runtime inline all actors
    run in this process.

    With --live, a day of a small fleet that loses a zone is played in virtual time, without Ray.
    Its folder is demo.run, or --output; roadstead why and query read it.

    \b
    Examples:
      roadstead demo                       # 2,000 nodes, 10,000 pods, on Ray
      roadstead demo --small --runtime inline
                                           # about a second, without Ray
      roadstead demo --live                # a day in seconds
      roadstead demo --nodes 500 --pods 20000 --seed 7
                                           # not all fit: why pods are pending
      roadstead demo --output out          # write all placements
      roadstead demo --format json | jq .pods_per_s
      roadstead demo --ray-address auto --settings roadstead.yaml
                                           # on a Ray cluster
    """
    if live:
        # The last condition: any option of a run but --seed.
        if (
            small
            or nodes
            or pods
            or output_format != "table"
            or options != RunOptions(seed=options.seed)
        ):
            raise click.UsageError("only --seed, --output and --force apply to --live")
        from roadstead.cli.live_demo import live_demo

        live_demo(output, options.seed or 0, may_replace=force)
        return
    default = (SMALL_NODES, SMALL_PODS) if small else (NODES, PODS)
    with session.watch.phase("read inputs"):
        from roadstead.api.plan import ConfigText
        from roadstead.cli import plan as plans
        from roadstead.cli import schedule_run
        from roadstead.inputs.loaded import load_generated

        target = schedule_run.ResultTarget(output_format, output)
        target.check(may_replace=force or options.resume)
        settings = plans.read_settings(options)
        session.launcher().prepare(settings, plans.log_dir(options))
        loaded = load_generated(
            nodes or default[0],
            pods or default[1],
            settings.seed,
            with_digests=output is not None,
        )
        digests = plans.plan_digests(options, ConfigText()) if output is not None else ()
    run_plan = plans.make_plan(options, settings, ConfigText(), loaded.cluster)
    schedule_run.schedule(session, loaded, run_plan, target, digests)
