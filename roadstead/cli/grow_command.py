"""`roadstead grow`: which nodes to add so that every pod is placed, or which to remove."""

from __future__ import annotations

from pathlib import Path
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

    from roadstead.api.what_if import ChosenNodes
    from roadstead.inputs.loaded import Loaded
    from roadstead.run import RunPlan


@click.command("grow", cls=ReportingCommand)
@options_as("source", SourceOptions, moment_parameters)
@options_as("options", RunOptions, one_scheduler_parameters)
@click.option(
    "--catalog",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Shapes of nodes that may be added, with prices if they are known.",
)
@click.option(
    "--shrink",
    is_flag=True,
    help="Search for nodes that can be removed, in place of nodes to add.",
)
@click.option(
    "--zone",
    "zones",
    multiple=True,
    metavar="ZONE",
    help="With --shrink: consider the nodes of this zone. May be given more than once.",
)
@click.option(
    "--selector",
    "-l",
    default="",
    metavar="LABELS",
    help="With --shrink: consider the nodes with these labels, given as for kubectl.",
)
@click.option(
    "--max-runs",
    type=click.IntRange(2),
    metavar="N",
    help="Maximum number of runs of the search [default: 200]; with --shrink, of nodes that are "
    "tried for removal [default: 2,000].",
)
@options_as("target", AnswerTarget, answer_parameters("--force"))
def grow_command(
    *,
    source: SourceOptions,
    options: RunOptions,
    catalog: Path | None,
    shrink: bool,
    zones: tuple[str, ...],
    selector: str,
    max_runs: int | None,
    target: AnswerTarget,
) -> None:
    """Search for the fewest, or cheapest, nodes to add so that every pod is placed.

    The catalogue is a YAML file of kind NodeCatalog (apiVersion roadstead.dev/v1). Its shapes have
    a name, a node (a Node without a name), and optionally pricePerHour and maxCount. Each
    candidate, a number of nodes of each shape, is tried by scheduling with these nodes added. A
    complete run proves the answer: it places every pod and preempts none. With one node less of any
    one shape, a run leaves a pod pending; another combination of shapes may still be cheaper. With
    --output, nodes.yaml contains the nodes to add.

    With --shrink, the answer is a list of nodes that can be removed together: all their pods find
    other nodes. Pods of daemon sets end with their node. Disruption budgets that this would violate
    are reported; they do not prevent a removal.

    Exit status: 0 everything is placed, 1 a pod stays pending or the run failed, 2 invalid input.

    \b
    Examples:
      roadstead grow --catalog shapes.yaml --cluster cluster.yaml --pods app/
      roadstead grow --catalog shapes.yaml --cluster nodes.yaml --pods app/ \\
        --output added
      roadstead schedule --cluster nodes.yaml --cluster added/nodes.yaml \\
        --pods app/                        # the proof: everything is placed
      roadstead grow --shrink --cluster cluster.yaml
      roadstead grow --shrink --cluster cluster.yaml --selector pool=batch
    """
    from roadstead.api.what_if import ChosenNodes

    # Both are given, or neither.
    if shrink == (catalog is not None):
        raise click.UsageError("use either --catalog FILE or --shrink")
    if not shrink and (zones or selector):
        raise click.UsageError("--zone and --selector need --shrink")
    loaded, run_plan = prepare(source, options, target)
    if catalog is None:
        chosen = ChosenNodes(zones=zones, selector=selector)
        _shrink(loaded, run_plan, chosen, max_runs, target)
    else:
        _grow(loaded, run_plan, catalog, max_runs, target)


def _grow(
    loaded: Loaded,
    plan: RunPlan,
    catalog: Path,
    max_runs: int | None,
    target: AnswerTarget,
) -> None:
    from roadstead.api.what_if import grow_nodes
    from roadstead.cli.progress import shown_progress
    from roadstead.config.yaml_text import yaml_text
    from roadstead.report.what_if_output import AnswerFiles

    with shown_progress() as progress:
        result = grow_nodes(loaded, plan, catalog, progress, max_runs)

    def show(console: Console) -> None:
        from roadstead.report.what_if_tables import print_grow

        print_grow(console, result)

    items = [dict(each) for each in result.manifests]
    nodes = yaml_text({"apiVersion": "v1", "kind": "List", "items": items}, sort_keys=False)
    files = AnswerFiles(
        "grow",
        result.document(),
        {"shapes.parquet": result.to_arrow()},
        {"nodes.yaml": nodes} if items else {},
    )
    answer(target, files, show, is_complete=result.is_complete)


def _shrink(
    loaded: Loaded,
    plan: RunPlan,
    chosen: ChosenNodes,
    max_runs: int | None,
    target: AnswerTarget,
) -> None:
    from roadstead.api.what_if import shrink_nodes
    from roadstead.cli.progress import shown_progress
    from roadstead.report.what_if_output import AnswerFiles

    with shown_progress() as progress:
        result = shrink_nodes(loaded, plan, chosen, progress, max_runs)

    def show(console: Console) -> None:
        from roadstead.report.what_if_tables import print_shrink

        print_shrink(console, result)

    files = AnswerFiles("shrink", result.document(), {"nodes.parquet": result.to_arrow()})
    answer(target, files, show, is_complete=True)
