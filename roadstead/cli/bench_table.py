"""The figures of `roadstead bench` on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from roadstead.bench.machine import Machine
from roadstead.bench.metrics import WorkloadResult
from roadstead.bench.result import ResultComparison
from roadstead.report.text_table import Cells, Column, print_table, text_column
from roadstead.report.units import human_bytes, human_seconds, percent

PHASES_SHOWN = 6
PROCESSES_SHOWN = 8
TITLES = {
    "pods_per_s": "pods/s",
    "latency_p50_s": "latency p50",
    "latency_p99_s": "latency p99",
    "peak_bytes": "memory",
}
"""Titles of the figures that are compared."""


def print_bench(
    console: Console, outcomes: Sequence[WorkloadResult], machine: Machine, commit: str
) -> None:
    """Print rates, latencies and memory of every workload, then the phases of each.

    Of several runs of a workload, that with the median rate is printed; the spread is the range of
    the rates, as a share of the median. A gap is the time between two acknowledged binds; the
    longest one is printed. A phase has its share of the measured interval.
    """
    console.print(Text(f"{machine}\nCommit {commit or 'unknown'}", style="dim"))
    _print_rates(console, outcomes)
    for outcome in outcomes:
        _print_phases(console, outcome)


def _print_rates(console: Console, outcomes: Sequence[WorkloadResult]) -> None:
    headings = (
        *("pods/s", "spread", "bound", "in", "CPU"),
        *("p50", "p99", "gap", "gap CPU", "memory", "kernel"),
    )
    rows: list[Cells] = []
    for outcome in outcomes:
        each = outcome.median_run
        bound = f"{each.bound:,}" if each.bound == each.pods else f"{each.bound:,}/{each.pods:,}"
        row: Cells = [
            each.name,
            Text(f"{each.pods_per_s:,.0f}", style="bold green"),
            f"±{outcome.spread / 2:.0%}" if len(outcome.rates) > 1 else "–",
            bound,
            human_seconds(each.seconds),
            human_seconds(each.processor_s),
            human_seconds(each.latency_p50_s),
            human_seconds(each.latency_p99_s),
            human_seconds(each.longest_gap_s),
            human_seconds(each.longest_gap_cpu_s),
            human_bytes(each.peak_bytes),
            percent(each.kernel.share),
        ]
        rows.append(row)
    print_table(console, "", [text_column("workload"), *map(Column, headings)], rows)


def _print_phases(console: Console, outcome: WorkloadResult) -> None:
    each = outcome.median_run
    rows: list[Cells] = [
        [phase, percent(share)] for phase, share in [*each.shares.items()][:PHASES_SHOWN]
    ]
    # Inline there is one, and its processor time is in the first table.
    if len(each.process_us_per_pod) > 1:
        for name, spent_us in [*each.process_us_per_pod.items()][:PROCESSES_SHOWN]:
            rows.append([f"CPU of {name}", f"{spent_us:,.0f} µs a pod"])
    # Reason → number of pods, the most frequent reason first.
    for why, pods in sorted(each.kernel.reference.items(), key=lambda item: -item[1]):
        rows.append([f"decided without the kernel: {why}", f"{pods:,} pods"])
    title = f"Where the time went: {each.name}"
    print_table(console, title, [text_column("phase"), Column("share")], rows)


def print_comparison(console: Console, comparison: ResultComparison) -> None:
    """Print the changes, figure by figure."""
    columns = [
        text_column("workload"),
        text_column("figure"),
        *map(Column, ("before", "after", "")),
    ]
    rows: list[Cells] = []
    for each in comparison.changes:
        # Neither better nor worse if the difference is within the noise.
        style = "" if each.better is None else "green" if each.better else "red"
        factor = Text(f"× {each.factor:.2f}", style=style)
        before, after = (_shown(each.metric, value) for value in (each.before, each.after))
        rows.append([each.workload, TITLES[each.metric], before, after, factor])
    print_table(console, f"Changes since {comparison.commit or 'the older result'}", columns, rows)
    if comparison.missing:
        console.print(Text(f"Not in the older result: {', '.join(comparison.missing)}"))
    if not comparison.same_machine:
        console.print(Text("The older result was measured on another machine.", style="yellow"))
    if comparison.settings:
        names = ", ".join(comparison.settings)
        line = f"The older result was measured with other settings: {names}"
        console.print(Text(line, style="yellow"))


def _shown(figure: str, value: float) -> str:
    if figure == "peak_bytes":
        return human_bytes(int(value))
    return f"{value:,.0f}" if figure == "pods_per_s" else human_seconds(value)
