"""`roadstead trace sample|scale|shift|cut|concat|stats`: tools over trace files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from roadstead.cli.errors import ReportingCommand
from roadstead.cli.notes import echo_note
from roadstead.cli.options import OutputFormat, format_option

if TYPE_CHECKING:
    from roadstead.traces.rewriting import ReportProgress, WrittenTrace

_PATH = click.Path(path_type=Path)
_TRACE = click.argument("path", metavar="TRACE", type=_PATH)
_OUT = click.option(
    "-o", "--output", "out", metavar="PATH", type=_PATH, required=True, help="Output file."
)
_SEED = click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the choices."
)
FACTOR_MAX = 1000
"""Maximum factor of `roadstead trace scale`."""


def _run(work: Callable[[ReportProgress], WrittenTrace], output_format: OutputFormat) -> None:
    """Show the progress of writing a trace, then print its counts and digest."""
    import json

    from roadstead.cli.trace_progress import shown_steps

    with shown_steps() as report:
        written = work(report)
    if output_format == "json":
        counts = {"source": written.source, "nodes": written.nodes, "pods": written.pods}
        click.echo(json.dumps(counts | {"sha256": written.digest}, indent=2))
        return
    click.echo(f"{written.source}: {written.pods:,} pods, {written.nodes:,} nodes")
    if not written.pods:
        echo_note("Note: the trace has no pods.")
    click.echo(f"content sha256\n  {written.digest}")


def _time_ms(option: str, value: str) -> int:
    """Return a duration in Go's notation, with "d" for days, as milliseconds."""
    from roadstead.config.durations import parse_long_duration
    from roadstead.fleet.trace import S_MS
    from roadstead.protocol.errors import InputError, cut_short

    try:
        return round(parse_long_duration(value).seconds * S_MS)
    except ValueError as error:
        raise InputError(str(error), field=option, value=cut_short(value)) from None


@click.command("sample", cls=ReportingCommand, short_help="Keep a share of the pods.")
@_TRACE
@_OUT
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    required=True,
    metavar="SHARE",
    help="Share of the pods of each class, such as 0.1.",
)
@_SEED
@format_option
def sample_command(
    path: Path, out: Path, share: float, seed: int, output_format: OutputFormat
) -> None:
    """Keep a share of the pods of every class, and all nodes.

    The number of pods of a class is off by less than one. To make the fleet smaller as well, use
    roadstead trace scale --by 0.1.

    \b
    Examples:
      roadstead trace sample openb.trace --share 0.1 -o small.trace
    """
    from roadstead.traces.transforms import sample

    _run(lambda report: sample(path, out, share, seed, report), output_format)


@click.command("scale", cls=ReportingCommand, short_help="Multiply nodes and arrivals.")
@_TRACE
@_OUT
@click.option(
    "--by",
    type=click.FloatRange(0, FACTOR_MAX, min_open=True),
    default=1.0,
    show_default=True,
    metavar="F",
    help="Factor for both nodes and arrivals.",
)
@click.option(
    "--nodes",
    type=click.FloatRange(0, FACTOR_MAX),
    metavar="F",
    help="Factor for the nodes [default: that of --by].",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, FACTOR_MAX),
    metavar="F",
    help="Factor for the rate of arrivals [default: that of --by].",
)
@_SEED
@format_option
def scale_command(
    path: Path,
    out: Path,
    by: float,
    nodes: float | None,
    rate: float | None,
    seed: int,
    output_format: OutputFormat,
) -> None:
    """Multiply nodes and arrivals, with the same distributions, over the same time.

    Nodes and pods are copied within their classes. A copy of a pod runs as long as the pod, and
    arrives at a random time between the pod before it and the pod itself.

    \b
    Examples:
      roadstead trace scale openb.trace --by 2 -o twice.trace
      roadstead trace scale openb.trace --rate 1.5 -o busier.trace
    """
    from roadstead.traces.transforms import scale

    node_factor = by if nodes is None else nodes
    rate_factor = by if rate is None else rate
    _run(lambda report: scale(path, out, node_factor, rate_factor, seed, report), output_format)


@click.command("shift", cls=ReportingCommand)
@_TRACE
@_OUT
@click.option(
    "--by",
    required=True,
    metavar="DURATION",
    help="Time by which all pods arrive later, such as 90m or 1d12h; -1h for earlier.",
)
@format_option
def shift_command(path: Path, out: Path, by: str, output_format: OutputFormat) -> None:
    """Move all arrivals in time.

    \b
    Examples:
      roadstead trace shift openb.trace --by 6h -o later.trace
      roadstead trace shift later.trace --by=-6h -o openb.trace
    """
    from roadstead.traces.transforms import shift

    by_ms = _time_ms("--by", by)
    _run(lambda report: shift(path, out, by_ms, report), output_format)


@click.command("cut", cls=ReportingCommand, short_help="Keep the pods that arrive in a span.")
@_TRACE
@_OUT
@click.option(
    "--from", "start", default="0s", show_default=True, metavar="DURATION", help="Start of the cut."
)
@click.option("--to", "end", metavar="DURATION", help="End of the cut [default: the trace's].")
@click.option(
    "--keep-running",
    is_flag=True,
    help="Also keep pods that arrived before the start and still run then, for the rest of their "
    "time.",
)
@format_option
def cut_command(
    path: Path,
    out: Path,
    start: str,
    end: str | None,
    keep_running: bool,
    output_format: OutputFormat,
) -> None:
    """Keep the pods that arrive in a span of time, whose start becomes the start of the trace.

    \b
    Examples:
      roadstead trace cut google.trace --from 2d --to 3d -o day-3.trace
    """
    from roadstead.protocol.errors import InputError
    from roadstead.traces.transforms import cut

    from_ms = _time_ms("--from", start)
    to_ms = None if end is None else _time_ms("--to", end)
    if from_ms < 0:
        raise InputError("must not be negative", field="--from", value=start)
    if to_ms is not None and to_ms <= from_ms:
        raise InputError(f"must be after --from ({start})", field="--to", value=end or "")
    _run(lambda report: cut(path, out, from_ms, to_ms, report, running=keep_running), output_format)


@click.command("concat", cls=ReportingCommand)
@click.argument("paths", metavar="TRACE...", type=_PATH, nargs=-1, required=True)
@_OUT
@click.option(
    "--merge",
    is_flag=True,
    help="Start all traces at the same time. By default, each starts after the last arrival of the "
    "previous one.",
)
@click.option(
    "--gap",
    default="0s",
    show_default=True,
    metavar="DURATION",
    help="Time between the last arrival of a trace and the start of the next.",
)
@click.option(
    "--nodes",
    type=click.Choice(["all", "first"]),
    default="all",
    show_default=True,
    help="Nodes of all traces, where equal nodes of one name are one, or only of the first.",
)
@format_option
def concat_command(
    paths: tuple[Path, ...],
    out: Path,
    merge: bool,
    gap: str,
    nodes: Literal["all", "first"],
    output_format: OutputFormat,
) -> None:
    """Make one trace of several.

    Pods of the second trace are named NAME-2, those of the third NAME-3, and so on.

    \b
    Examples:
      roadstead trace concat monday.trace tuesday.trace -o both.trace
      roadstead trace concat services.trace batch.trace --merge -o all.trace
    """
    from roadstead.protocol.errors import InputError
    from roadstead.traces.concat import concat

    gap_ms = _time_ms("--gap", gap)
    if gap_ms < 0:
        raise InputError("must not be negative", field="--gap", value=gap)
    order: Literal["merged", "after"] = "merged" if merge else "after"
    _run(lambda report: concat(paths, out, order, nodes, gap_ms, report), output_format)


@click.command("stats", cls=ReportingCommand, short_help="Print statistics of a trace.")
@_TRACE
@click.option(
    "--top",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="Number of node shapes and pod classes to print; JSON has all.",
)
@format_option
def stats_command(path: Path, top: int, output_format: OutputFormat) -> None:
    """Print statistics of a trace: shapes, classes, lifetimes, arrivals, requests over time.

    Requests over time are those of pods that start when they arrive. Quantiles of lifetimes are
    at most 1.6% too high.

    \b
    Examples:
      roadstead trace stats openb.trace
      roadstead trace stats openb.trace --format json
    """
    from rich.console import Console

    from roadstead.cli.trace_progress import shown_steps
    from roadstead.traces.stats import trace_stats
    from roadstead.traces.stats_report import print_stats, stats_json

    with shown_steps() as report:
        stats = trace_stats(path, report)
    if output_format == "json":
        click.echo(stats_json(stats))
    else:
        print_stats(Console(), stats, top)


TOOLS = (
    sample_command,
    scale_command,
    shift_command,
    cut_command,
    concat_command,
    stats_command,
)
