"""`roadstead explain`: one pod, or every pending one, node by node."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import (
    OutputFormat,
    RunOptions,
    SourceOptions,
    format_option,
    options_as,
    run_parameters,
    source_parameters,
)
from roadstead.cli.session import Session


@click.command("explain", cls=ReportingCommand)
@click.argument("pod", metavar="[POD]", required=False)
@click.option(
    "--all-pending",
    is_flag=True,
    help="Instead of one POD, explain all pending pods, by workload and reason.",
)
@options_as("source", SourceOptions, source_parameters)
@options_as("options", RunOptions, run_parameters)
@click.option(
    "--after-run",
    is_flag=True,
    help="Schedule all other pending pods first; with --all-pending, explain the pods that are "
    "then still pending. Default: explain on the cluster as given.",
)
@click.option(
    "--top",
    type=click.IntRange(0),
    default=None,
    metavar="N",
    help="Maximum number of feasible nodes to show, and of the node names listed for each reason; "
    "0 shows all [default: 10 nodes and 3 names; with --html 2,000 of each].",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write an HTML page with all scores: one file that needs no network.",
)
@click.option("--force", is_flag=True, help="Replace the FILE of --html if it exists.")
@format_option
@click.pass_obj
def explain_command(
    session: Session,
    *,
    pod: str | None,
    all_pending: bool,
    source: SourceOptions,
    options: RunOptions,
    after_run: bool,
    top: int | None,
    html: Path | None,
    force: bool,
    output_format: OutputFormat,
) -> None:
    """Explain which nodes a pod can run on, which of them is chosen, and why.

    POD is the name of a pod or of its workload, with or without the namespace, or the beginning of
    such a name: web-0, shop/web-0, deploy/web, cronjob/report. For a workload, its first pending
    pod is explained, or its first pod if none is pending. A running pod is explained as if it were
    not on its node.

    The answer contains, for the best nodes, the total score and the weighted score of each plugin,
    for the best node also its raw and normalized scores, and for the other nodes the plugin that
    filtered them out and the reason. JSON contains all scores of all nodes. By default, everything
    runs in this process; --runtime ray or a settings file changes that, with the same answer.

    \b
    Examples:
      roadstead explain web-0 --cluster cluster.yaml --pods app/
      roadstead explain shop/web-0 --cluster cluster.yaml --pods app/ --after-run
                                           # after all others are placed
      roadstead explain deploy/web --cluster cluster.yaml --pods app/
      roadstead explain --all-pending --cluster cluster.yaml --pods app/
                                           # why is anything pending?
      roadstead explain web-0 --cluster cluster.yaml --html web.html
                                           # plugins × nodes, for a browser
      roadstead explain openb-pod-0017 --trace openb.trace --top 3
      roadstead explain web-0 --cluster cluster.yaml --format json | jq .best

    Exit status: 0 done, also if no node is feasible, 1 the run failed, 2 invalid input, 3 a plugin
    does not support a field of a pod, 130 or 143 interrupted (SIGINT, SIGTERM).
    """
    # Exactly one of POD and --all-pending must be given.
    if (pod is None) != all_pending:
        raise click.UsageError("no pod given, or two choices: use either POD or --all-pending")
    source.check(options.config)
    options.check()
    from roadstead.cli import plan as plans
    from roadstead.cli.explain_run import ExplanationTarget, Question, explain
    from roadstead.cli.sources import load
    from roadstead.report.paths import check_file

    if html is not None:
        check_file(html, may_replace=force)
    settings = plans.read_settings(options.with_inline_default())
    config = plans.read_config(options)
    # Hashes of the inputs are only written to the folder of a run; this command writes none.
    loaded = load(source, with_digests=False)
    run_plan = plans.make_plan(options, settings, config, loaded.cluster)
    explain(
        session,
        loaded,
        run_plan,
        Question(pod, after_run),
        ExplanationTarget(output_format, top, html),
    )
