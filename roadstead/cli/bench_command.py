"""`roadstead bench`: how fast pods are scheduled, workload by workload."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.concurrency_options import ConcurrencyOptions, concurrency_parameters
from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import PlanOptions, gathered, plan_parameters
from roadstead.cli.session import Session

TIMEOUT_S = 1800.0
_PATH = click.Path(path_type=Path)


@click.command("bench", cls=ReportingCommand)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "lists", is_flag=True, help="Show all workloads by name, and run none.")
@click.option(
    "--file",
    type=_PATH,
    metavar="FILE",
    help="Workloads of your own, in scheduler_perf's format (YAML), in place of those that ship.",
)
@click.option(
    "--openb", type=_PATH, metavar="PATH", help="For openb: its trace, or its folder of CSV files."
)
@click.option("--runs", type=click.IntRange(1, 1000), default=1, show_default=True, metavar="N",
              help="Run each workload so often; the median is told.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option(
    "--compare", type=_PATH, metavar="OLD.json", help="Show what changed since an older --json."
)
@click.option(
    "--profile", type=_PATH, metavar="FILE",
    help="Write where the time went, function by function, for https://www.speedscope.app.",
)  # fmt: skip
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True, max=86_400),
    default=TIMEOUT_S,
    show_default=True,
    metavar="SECONDS",
    help="How long the pods of one step may take.",
)
@gathered("plan", PlanOptions, plan_parameters)
@gathered("concurrency", ConcurrencyOptions, concurrency_parameters)
@click.pass_obj
def bench_command(
    session: Session,
    *,
    names: tuple[str, ...],
    lists: bool,
    file: Path | None,
    openb: Path | None,
    runs: int,
    as_json: bool,
    compare: Path | None,
    profile: Path | None,
    timeout_s: float,
    plan: PlanOptions,
    concurrency: ConcurrencyOptions,
) -> None:
    """Measure how fast pods are scheduled.

    Each NAME is a workload of kube-scheduler's scheduler_perf, with its sizes, or one of ours. A
    case alone stands for its main workload; CASE/WORKLOAD is that one, and both may hold *. Upper
    and lower case, hyphens and a leading "Scheduling" do not matter.

    The rate is that of scheduler_perf: pods that are measured, from the first one submitted to the
    last bind acknowledged, by way of queue, cache and binder. Latency is that of each pod. With
    --journal every bind is durable before it is acknowledged.

    \b
    Examples:
      roadstead bench --list
      roadstead bench SchedulingBasic --runtime inline --kernel on
      roadstead bench 'SchedulingBasic/*' TopologySpreading --runs 5
      roadstead bench ten-classes --json > new.json
      roadstead bench ten-classes --compare new.json
      roadstead bench PodAffinity --runtime inline --profile profile.json
      roadstead bench openb --openb openb.trace
      roadstead bench --file perf/performance-config.yaml
    """
    plan.check()
    from roadstead.cli import benching
    from roadstead.report.paths import check_file

    wanted = benching.Wanted(names, file, openb, runs, timeout_s, profiles=profile is not None)
    if lists:
        benching.print_list(wanted)
        return
    if not names and file is None:
        raise click.UsageError("say what to run: NAME, or --list to see what there is")
    older = benching.read_older(compare)
    if profile is not None:
        check_file(profile)
    settings = benching.settings_of(plan, concurrency)
    ran = benching.run_all(session, wanted, plan, settings)
    if profile is not None:
        benching.write_profile(profile, ran)
    benching.tell(session, ran, settings, older, as_json=as_json)
