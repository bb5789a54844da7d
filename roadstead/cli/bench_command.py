"""`roadstead bench`: how fast pods are scheduled, workload by workload."""

from __future__ import annotations

from pathlib import Path

import click

from roadstead.cli.concurrency_options import ConcurrencyOptions, concurrency_parameters
from roadstead.cli.errors import ReportingCommand
from roadstead.cli.options import RunOptions, options_as, run_parameters
from roadstead.cli.session import Session

TIMEOUT_S = 1800.0
"""Default of --timeout; the slowest included workload takes minutes."""

UNUSED_BY_SIMULATE = (False, None, None, None, 1, TIMEOUT_S, RunOptions(), ConcurrencyOptions())
"""Defaults of the options that have no use with `bench simulate`."""

_PATH = click.Path(path_type=Path)


@click.command("bench", cls=ReportingCommand)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "lists", is_flag=True, help="List all workloads by name; run none.")
@click.option(
    "--file",
    type=_PATH,
    metavar="FILE",
    help="Your workloads, in scheduler_perf's format (YAML), in place of the included ones.",
)
@click.option(
    "--openb",
    type=_PATH,
    metavar="PATH",
    help="For the workload openb: its trace, or the folder of its CSV files.",
)
@click.option("--runs", type=click.IntRange(1, 1000), default=1, show_default=True, metavar="N",
              help="Number of runs of each workload; the median is reported.")  # fmt: skip
@click.option("--slow", is_flag=True,
              help="With `simulate`: also the scenario that takes minutes.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option(
    "--compare",
    type=_PATH,
    metavar="OLD.json",
    help="Show the changes since OLD.json, an earlier output of --json.",
)
@click.option(
    "--profile", type=_PATH, metavar="FILE",
    help="Write a profile, the time by function, for https://www.speedscope.app.",
)  # fmt: skip
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True, max=86_400),
    default=TIMEOUT_S,
    show_default=True,
    metavar="SECONDS",
    help="Maximum time of a step until its pods are bound.",
)
@options_as("options", RunOptions, run_parameters)
@options_as("concurrency", ConcurrencyOptions, concurrency_parameters)
@click.pass_obj
def bench_command(
    session: Session,
    *,
    names: tuple[str, ...],
    lists: bool,
    file: Path | None,
    openb: Path | None,
    runs: int,
    slow: bool,
    as_json: bool,
    compare: Path | None,
    profile: Path | None,
    timeout_s: float,
    options: RunOptions,
    concurrency: ConcurrencyOptions,
) -> None:
    """Measure how fast pods are scheduled.

    NAME is a workload of kube-scheduler's scheduler_perf, with its sizes, or one of Roadstead's.
    CASE selects the main workload of a case, CASE/WORKLOAD a certain one; both may contain the
    wildcard *. Upper and lower case, hyphens and a leading "Scheduling" are ignored.

    The rate is computed as in scheduler_perf: the measured pods, over the time from the first
    submitted pod to the last acknowledged bind, through queue, cache and binder. Latency is
    measured for each pod. With --journal, every bind is durable before it is acknowledged.

    `bench simulate` plays scenarios in virtual time instead, and compares events per second with
    floors, the required rates. Only --openb, --slow and --json apply to it.

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
      roadstead bench simulate --openb openb.trace
    """
    if names[:1] == ("simulate",):
        others = lists, file, compare, profile, runs, timeout_s, options, concurrency
        if others != UNUSED_BY_SIMULATE:
            raise click.UsageError("only --openb, --slow and --json apply to `bench simulate`")
        from roadstead.cli.bench_simulate import bench_simulate

        bench_simulate(names[1:], openb, slow=slow, as_json=as_json)
        return
    if slow:
        raise click.UsageError("--slow needs `bench simulate`")
    options.check()
    from roadstead.cli import bench_run
    from roadstead.report.paths import check_file

    profiles = profile is not None
    selection = bench_run.BenchSelection(names, file, openb, runs, timeout_s, profiles)
    if lists:
        bench_run.print_list(selection)
        return
    if not names and file is None:
        raise click.UsageError("no workload given: use NAME; --list shows all workloads")
    # Files of results are checked before the runs, which take minutes.
    older = bench_run.read_older(compare)
    if profile is not None:
        check_file(profile)
    settings = bench_run.settings_of(options, concurrency)
    results = bench_run.run_all(session, selection, options, settings)
    bench_run.write_profile(profile, results)
    bench_run.report_runs(session, results, settings, older, as_json=as_json)
