"""`roadstead fit`: how many more replicas fit, where, and what stops the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import RunOptions, SourceOptions, options_as
from roadstead.cli.what_if import (
    AnswerTarget,
    answer,
    answer_parameters,
    moment_parameters,
    one_scheduler_parameters,
    prepare,
)

if TYPE_CHECKING:
    from rich.console import Console


@click.command("fit", cls=ReportingCommand)
@click.argument("specs", metavar="POD_OR_WORKLOAD...", nargs=-1, required=True)
@options_as("source", SourceOptions, moment_parameters)
@options_as("options", RunOptions, one_scheduler_parameters)
@click.option(
    "--total",
    is_flag=True,
    help="Count the given pending pods of the named workloads, too, rather than place them first.",
)
@click.option(
    "--max",
    "max_replicas",
    type=click.IntRange(1, 10_000_000),
    metavar="N",
    help="Stop the count at N replicas [default: 1,000,000].",
)
@click.option(
    "--max-changes",
    type=click.IntRange(0),
    metavar="N",
    help="Number of changes to show that would admit the next replica; 0 tries none [default: 5].",
)
@click.option(
    "--at-least",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="Exit with status 1 if fewer replicas fit.",
)
@options_as("target", AnswerTarget, answer_parameters("--force"))
def fit_command(
    *,
    specs: tuple[str, ...],
    source: SourceOptions,
    options: RunOptions,
    total: bool,
    max_replicas: int | None,
    max_changes: int | None,
    at_least: int,
    target: AnswerTarget,
) -> None:
    """Count the replicas that still fit, by node, with the reason against the next one.

    POD_OR_WORKLOAD names a pod or a workload of the inputs as for roadstead explain: web-0,
    shop/web-0, deploy/web. The given pods are placed first. Then the scheduler places replicas of
    the pod, or of the workload's first pod, until it refuses one. Replicas evict no other pods.
    Several specs are counted together, in rounds; web=3 db=1 counts three web for each db.

    The answer contains the replicas by shape of node, zone and node, the scheduler's message for
    the next replica, and the smallest changes of the pod that would admit it: a taint tolerated, a
    selector, constraint, port or label dropped, less of a resource, a higher priority and the pods
    that it then preempts. Each change was tried by scheduling the changed pod.

    Exit status: 0 if at least --at-least replicas fit, 1 if fewer fit or the run failed, 2
    invalid input.

    \b
    Examples:
      roadstead fit web --cluster cluster.yaml --pods web.yaml
                                           # after its given replicas are placed
      roadstead fit web --cluster cluster.yaml --pods web.yaml --total
                                           # its given replicas included
      roadstead fit web=3 db=1 --cluster cluster.yaml --pods app/
                                           # three web for each db
      roadstead fit api --run zone-loss.run --at 6h10m
                                           # at a moment of a simulated run
      roadstead fit train-0 --trace openb.trace --format json | jq .replicas
    """
    from roadstead.api.what_if import FitLimits, fit_pods
    from roadstead.cli.progress import shown_progress
    from roadstead.report.what_if_output import AnswerFiles

    loaded, run_plan = prepare(source, options, target)
    limits = FitLimits(total, max_replicas, max_changes)
    with shown_progress() as progress:
        result = fit_pods(loaded, run_plan, specs, limits, progress)

    def show(console: Console) -> None:
        from roadstead.report.what_if_tables import print_fit

        print_fit(console, result)

    files = AnswerFiles("fit", result.document(), {"nodes.parquet": result.to_arrow()})
    is_complete = result.replicas >= at_least
    answer(target, files, show, is_complete=is_complete)
