"""`roadstead drain`: where the pods of nodes would go, and what forbids it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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


REPLACE: Final = "--replace"
"""Not --force as elsewhere, which is a flag of `kubectl drain`."""


@click.command("drain", cls=ReportingCommand)
@click.argument("names", metavar="[NODE_OR_ZONE]...", nargs=-1)
@click.option(
    "--zone",
    "zones",
    multiple=True,
    metavar="ZONE",
    help="Drain all nodes of this zone. May be given more than once.",
)
@click.option(
    "--selector",
    "-l",
    default="",
    metavar="LABELS",
    help="Drain the nodes with these labels, given as for kubectl: pool=a,env!=dev,gpu.",
)
@options_as("source", SourceOptions, moment_parameters)
@options_as("options", RunOptions, one_scheduler_parameters)
@click.option(
    "--force",
    is_flag=True,
    help="Evict also pods without a controller, as kubectl drain does with this flag. Nothing "
    "creates them again; the answer has the node that they would get. To overwrite an answer, use "
    "--replace.",
)
@click.option(
    "--delete-emptydir-data",
    is_flag=True,
    help="Evict also pods with an emptyDir, as kubectl drain does with this flag.",
)
@options_as("target", AnswerTarget, answer_parameters(REPLACE))
def drain_command(
    *,
    names: tuple[str, ...],
    zones: tuple[str, ...],
    selector: str,
    source: SourceOptions,
    options: RunOptions,
    force: bool,
    delete_emptydir_data: bool,
    target: AnswerTarget,
) -> None:
    """Show where the pods of nodes would go, which stay pending, and which budgets refuse.

    NODE_OR_ZONE is the name of a node, or of a zone whose nodes are all drained. The given pending
    pods are placed first. Then all nodes are cordoned, and their pods evicted in rounds, as many in
    each round as the disruption budgets allow (disruptionsAllowed). The scheduler places a
    replacement for each; one that is placed counts as ready, so that its budget allows the next
    eviction.

    Pods of daemon sets and static pods end with the node. kubectl drain stops at pods without a
    controller, and at pods with an emptyDir, unless --force or --delete-emptydir-data is given;
    such pods are shown, and the others are evicted nevertheless.

    Exit status: 0 all pods find another node, 1 one stays pending, blocked or refused, or is
    preempted, or the run failed, 2 invalid input.

    \b
    Examples:
      roadstead drain n-17 --cluster cluster.yaml
      roadstead drain --zone eu-1b --cluster cluster.yaml
                                           # all nodes of a zone
      roadstead drain --zone zone-1 --run zone-loss.run --at 6h10m
      roadstead drain -l pool=old --cluster cluster.yaml --force --format json
    """
    from roadstead.api.what_if import ChosenNodes, drain_nodes
    from roadstead.cli.progress import shown_progress
    from roadstead.report.what_if_output import AnswerFiles

    if not (names or zones or selector):
        raise click.UsageError("no node is chosen: name nodes or zones, or use --selector")
    loaded, run_plan = prepare(source, options, target, replace_flag=REPLACE)
    with shown_progress() as progress:
        result = drain_nodes(
            loaded,
            run_plan,
            ChosenNodes(names, zones, selector),
            progress,
            force=force,
            delete_emptydir_data=delete_emptydir_data,
        )

    def show(console: Console) -> None:
        from roadstead.report.what_if_tables import print_drain

        print_drain(console, result)

    files = AnswerFiles("drain", result.document(), {"pods.parquet": result.to_arrow()})
    answer(target, files, show, is_complete=result.is_complete)
