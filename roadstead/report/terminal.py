"""The summary of a run on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.bar import Bar
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roadstead.protocol.errors import printable
from roadstead.report.concurrency import Concurrency
from roadstead.report.concurrency_table import fill, headline
from roadstead.report.not_created import Refusals
from roadstead.report.pods import PodLine, Workload
from roadstead.report.summary import Reason, Summary, Use
from roadstead.report.units import human_amount, human_seconds, percent, resource_title

BAR_CHARS = 16
TITLE_MIN_CHARS = 8
ZONES_MAX = 16
RESOURCES_MAX = 6
REASONS_MAX = 10
SCHEDULERS_MAX = 16
WORKLOADS_MAX = 20
NODES_MAX = 8
"""Nodes of a workload that are named; of more it is said how many there are."""


def print_summary(console: Console, summary: Summary, workloads: Sequence[Workload] = ()) -> None:
    """Print what was placed where, how full the fleet is, why pods wait, and the time it took."""
    console.print(_headline(summary))
    if workloads:
        console.print(_placements(workloads))
    console.print(_utilization(summary.utilization))
    if len(summary.zones) > 1:
        console.print(_zones(summary.zones))
    if summary.refusals:
        console.print(_refusals(summary.refusals))
    if summary.reasons:
        console.print(_reasons(summary.reasons))
    if summary.concurrency is not None and summary.concurrency.is_notable:
        console.print(headline(summary.concurrency))
        console.print(_schedulers(summary.concurrency))
    if summary.timings_s:
        console.print(_timings(summary.timings_s, summary.elapsed_s))


def _headline(summary: Summary) -> Text:
    text = Text.assemble((f"{summary.placed:,} placed", "bold green"), ", ")
    text.append(f"{summary.pending:,} pending", style="bold yellow" if summary.pending else "")
    pods = summary.placed + summary.pending
    text.append(f" of {pods:,} pods on {summary.nodes:,} nodes")
    if summary.source:
        text.append(f" ({printable(summary.source)})")
    if summary.preempted:
        text.append(f"\n{summary.preempted:,} preempted", style="bold yellow")
        text.append(": they had to make room for pods of higher priority")
    if summary.not_created:
        text.append(f"\n{summary.not_created:,} not created", style="bold yellow")
        text.append(": admission refuses them or their claims")
    text.append(f"\n{summary.pods_per_s:,.0f} pods/s", style="bold")
    text.append(f" over {human_seconds(summary.scheduling_s)} of scheduling; ")
    text.append(f"{human_seconds(summary.elapsed_s)} in all")
    return text


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=f"\n{title}", title_justify="left", title_style="bold", box=None, pad_edge=False
    )
    table.add_column(columns[0], overflow="fold", min_width=TITLE_MIN_CHARS)
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _placements(workloads: Sequence[Workload]) -> Table:
    """Workloads with the nodes of their pods; all of them, or the first."""
    columns = ["placed", "pending"]
    if has_refused := any(each.not_created for each in workloads):
        columns.append("not created")
    table = _table("Where the pods are", "workload", *columns)
    table.add_column("nodes", overflow="fold")
    for each in workloads[:WORKLOADS_MAX]:
        left = [each.pending, each.not_created] if has_refused else [each.pending]
        cells = [Text(f"{count:,}", style="bold yellow" if count else "") for count in left]
        name = Text(printable(each.name))
        table.add_row(name, f"{each.placed:,}", *cells, Text(printable(_nodes(each))))
    _say_left_out(table, len(workloads) - WORKLOADS_MAX, "workloads; -o wide shows every pod")
    return table


def _nodes(workload: Workload) -> str:
    """The nodes by name, each with how many of its pods are there where it is more than one."""
    nodes = workload.nodes
    if len(nodes) > NODES_MAX:
        return f"{len(nodes):,} nodes, at most {max(nodes.values()):,} on one"
    return ", ".join(
        name if nodes[name] == 1 else f"{name} ({nodes[name]:,})" for name in sorted(nodes)
    )


def print_pods(console: Console, pods: Iterable[PodLine]) -> None:
    """Print each pod with its node, or why it has none."""
    table = _table("Pods", "pod")
    table.columns[0].no_wrap = True
    for column in ("workload", "node or reason"):
        table.add_column(column, overflow="fold")
    for each in pods:
        where = Text(printable(each.node or each.reason), style="" if each.node else "yellow")
        table.add_row(Text(printable(each.pod)), Text(printable(each.workload)), where)
    console.print(table)


def _bar(fraction: float) -> Bar:
    return Bar(size=1, begin=0, end=min(fraction, 1.0), width=BAR_CHARS, color="cyan")


def _utilization(uses: tuple[Use, ...]) -> Table:
    table = _table("Utilization", "resource", "allocatable", "before", "after", "%", "")
    for use in uses:
        amounts = [
            human_amount(use.resource, amount)
            for amount in (use.allocatable, use.before, use.after)
        ]
        share = percent(use.after_fraction)
        table.add_row(resource_title(use.resource), *amounts, share, _bar(use.after_fraction or 0))
    return table


def _zones(zones: dict[str, tuple[Use, ...]]) -> Table:
    shown = list(zones.items())[:ZONES_MAX]
    resources = [use.resource for use in shown[0][1]][:RESOURCES_MAX]
    table = _table("Utilization per zone, before → after", "zone", *map(resource_title, resources))
    for zone, uses in shown:
        cells = [
            f"{percent(use.before_fraction)} → {percent(use.after_fraction)}"
            for use in uses[:RESOURCES_MAX]
        ]
        table.add_row(zone or "(none)", *cells)
    _say_left_out(table, len(zones) - len(shown), "zones")
    return table


def _reasons(reasons: tuple[Reason, ...]) -> Table:
    table = _table("Why pods are pending", "reason", "pods", "nodes per pod")
    for reason in reasons[:REASONS_MAX]:
        per_pod = f"{reason.nodes / reason.pods:,.0f}"
        table.add_row(Text(printable(reason.reason)), f"{reason.pods:,}", per_pod)
    _say_left_out(table, len(reasons) - REASONS_MAX, "reasons")
    return table


def _refusals(refusals: Sequence[Refusals]) -> Table:
    table = _table("Why objects are not created", "reason", "objects")
    table.add_column("first", overflow="fold")
    for each in refusals[:REASONS_MAX]:
        first = Text(printable(f"{each.first.kind} {each.first.name}"))
        table.add_row(Text(printable(each.first.reason)), f"{each.count:,}", first)
    _say_left_out(table, len(refusals) - REASONS_MAX, "reasons")
    return table


def _schedulers(concurrency: Concurrency) -> Table:
    columns = ("scheduler", "busy", "decided", "bound", "conflicts", "retries", "passed on")
    table = _table("Schedulers", *columns)
    fill(table, concurrency, SCHEDULERS_MAX)
    _say_left_out(table, len(concurrency.schedulers) - SCHEDULERS_MAX, "schedulers")
    return table


def _timings(timings_s: dict[str, float], elapsed_s: float) -> Table:
    table = _table("Where the time went", "phase", "time", "")
    for phase, spent in timings_s.items():
        table.add_row(
            Text(phase), human_seconds(spent), _bar(spent / elapsed_s if elapsed_s else 0)
        )
    return table


def _say_left_out(table: Table, count: int, what: str) -> None:
    if count > 0:
        table.add_row(f"… and {count} more {what}")
