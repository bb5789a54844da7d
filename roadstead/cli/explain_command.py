"""`roadstead explain`: one pod, or every pending one, node by node."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import (
    Form,
    PlanOptions,
    SourceOptions,
    format_option,
    gathered,
    plan_parameters,
    source_parameters,
)
from roadstead.cli.session import Session


@click.command("explain", cls=ReportingCommand)
@click.argument("pod", metavar="[POD]", required=False)
@click.option(
    "--all-pending",
    is_flag=True,
    help="Explain every pending pod, by workload and reason, in place of POD.",
)
@gathered("source", SourceOptions, source_parameters)
@gathered("plan", PlanOptions, plan_parameters)
@click.option(
    "--after-run",
    is_flag=True,
    help="Schedule all other pending pods first; with --all-pending, explain those that are left. "
    "Default: the cluster as it is given.",
)
@click.option(
    "--top",
    type=click.IntRange(0),
    default=None,
    metavar="N",
    help="Show N nodes that can take it, and the names of N for each reason; 0 for all. "
    "[default: 10 nodes, 3 names; --html: 2,000]",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it as a page, too, with all scores: one file that needs no network.",
)
@click.option("--force", is_flag=True, help="Replace the FILE of --html if it is there.")
@format_option
@click.pass_obj
def explain_command(
    session: Session,
    *,
    pod: str | None,
    all_pending: bool,
    source: SourceOptions,
    plan: PlanOptions,
    after_run: bool,
    top: int | None,
    html: Path | None,
    force: bool,
    form: Form,
) -> None:
    """Why a pod goes where it goes, or goes nowhere.

    POD is the name of a pod, or of the workload that makes it, with its namespace or without, or
    the beginning of one: web-0, shop/web-0, deploy/web, cronjob/report. Of a workload the first pod
    is explained, one that is pending if there is any; a pod that runs, as if it were not there.

    The answer has the total and the weighted score of each plugin for the best nodes, the raw and
    normalized scores of the first of them, and which plugin filtered out the other nodes and why.
    JSON has all scores of all nodes. Runs in this process unless --runtime ray or a settings file
    says otherwise: the answer is the same.

    \b
    Examples:
      roadstead explain web-0 --cluster cluster.yaml --pods app/
      roadstead explain shop/web-0 --cluster cluster.yaml --pods app/ --after-run
                                           # once all the others are placed
      roadstead explain deploy/web --cluster cluster.yaml --pods app/
      roadstead explain --all-pending --cluster cluster.yaml --pods app/
                                           # why is anything pending?
      roadstead explain web-0 --cluster cluster.yaml --html web.html
                                           # plugins × nodes, for a browser
      roadstead explain openb-pod-0017 --trace openb.trace --top 3
      roadstead explain web-0 --cluster cluster.yaml --format json | jq .best
    """
    if (pod is None) != all_pending:
        raise click.UsageError("say which pod to explain: either POD or --all-pending")
    source.check(plan.config)
    plan.check()
    from roadstead.cli import plan as plans
    from roadstead.cli.explaining import Answer, Question, explain
    from roadstead.cli.sources import load
    from roadstead.report.paths import check_file

    if html is not None:
        check_file(html, is_replaced=force)
    settings = plans.read_settings(plan.or_inline())
    config = plans.read_config(plan)
    loaded = load(source, with_digests=False)
    run_plan = plans.make_plan(plan, settings, config, loaded.cluster)
    explain(session, loaded, run_plan, Question(pod, after_run), Answer(form, top, html))
