"""The figures of `roadstead bench` on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from roadstead.bench.figures import Outcome
from roadstead.bench.machine import Machine
from roadstead.bench.result import Comparison
from roadstead.report.units import human_bytes, human_seconds, percent

PHASES_SHOWN = 6
FILE_CHARS = 140
TITLES = {
    "pods_per_s": "pods/s",
    "latency_p50_s": "latency p50",
    "latency_p99_s": "latency p99",
    "peak_bytes": "memory",
}


def wide_console(*, stderr: bool = False) -> Console:
    """As wide as the terminal; where there is none, so that no name of a workload is broken."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=FILE_CHARS)


def print_bench(
    console: Console, outcomes: Sequence[Outcome], machine: Machine, commit: str
) -> None:
    """Rates, latencies and memory of every workload, then where the time of each went."""
    console.print(Text(f"{machine}\nCommit {commit or 'unknown'}", style="dim"))
    console.print(_rates(outcomes))
    for outcome in outcomes:
        console.print(Text(f"\nWhere the time went: {outcome.middle.name}", style="bold"))
        console.print(_phases(outcome))


def _table(first: str, *columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _rates(outcomes: Sequence[Outcome]) -> Table:
    table = _table(
        "workload", "pods/s", "spread", "bound", "in", "CPU", "p50", "p99", "memory", "kernel"
    )
    for outcome in outcomes:
        each = outcome.middle
        bound = f"{each.bound:,}" if each.bound == each.pods else f"{each.bound:,}/{each.pods:,}"
        table.add_row(
            Text(each.name),
            Text(f"{each.pods_per_s:,.0f}", style="bold green"),
            f"±{outcome.spread / 2:.0%}" if len(outcome.rates) > 1 else "–",
            bound,
            human_seconds(each.seconds),
            human_seconds(each.processor_s),
            human_seconds(each.latency_p50_s),
            human_seconds(each.latency_p99_s),
            human_bytes(each.peak_bytes),
            percent(each.kernel.share),
        )
    return table


def _phases(outcome: Outcome) -> Table:
    each = outcome.middle
    table = _table("phase", "share")
    for phase, share in list(each.shares.items())[:PHASES_SHOWN]:
        table.add_row(phase, percent(share))
    if each.processes > 1:
        critical = human_seconds(each.critical_us_per_pod / 1e6)
        table.add_row("CPU of the busiest process", f"{critical} a pod")
    for why, pods in sorted(each.kernel.reference.items(), key=lambda item: -item[1]):
        table.add_row(Text(f"by the reference, for {why}"), f"{pods:,} pods")
    return table


def print_comparison(console: Console, comparison: Comparison) -> None:
    """What changed, figure by figure."""
    since = f"\nSince {comparison.commit or 'the older result'}"
    console.print(Text(since, style="bold"))
    table = _table("workload", "figure", "before", "after", "")
    for each in comparison.changes:
        style = "" if each.better is None else "green" if each.better else "red"
        factor = Text(f"× {each.factor:.2f}", style=style)
        before, after = (_shown(each.figure, value) for value in (each.before, each.after))
        table.add_row(Text(each.workload), TITLES[each.figure], before, after, factor)
    console.print(table)
    if comparison.missing:
        console.print(Text(f"Not in the older result: {', '.join(comparison.missing)}"))
    if not comparison.same_machine:
        console.print(Text("The older result is of another machine.", style="yellow"))


def _shown(figure: str, value: float) -> str:
    if figure == "peak_bytes":
        return human_bytes(int(value))
    return f"{value:,.0f}" if figure == "pods_per_s" else human_seconds(value)
