"""The summary of a run on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from roadstead.protocol.errors import printable
from roadstead.report.concurrency_table import headline, print_schedulers
from roadstead.report.not_created import RefusedObjects
from roadstead.report.pods import ControllerPods, PodLine
from roadstead.report.ray_nodes_table import print_ray_nodes
from roadstead.report.result import ClaimedDevice
from roadstead.report.summary import ReasonSummary, ResourceUse, Summary
from roadstead.report.text_table import Cells, Column, bar, print_table, text_column
from roadstead.report.units import human_amount, human_seconds, percent, resource_title

# Maximum numbers of rows and columns of tables.
ZONES_MAX = 16
RESOURCES_MAX = 6
REASONS_MAX = 10
WORKLOADS_MAX = 20
NODES_MAX = 8
"""Maximum number of a workload's nodes that are named; more are only counted."""


def print_summary(
    console: Console, summary: Summary, workloads: Sequence[ControllerPods] = ()
) -> None:
    """Print placements, utilization, reasons of pending pods, and times."""
    console.print(_headline(summary))
    # The placements and the reasons of pending pods answer the question of most users, so they
    # come first.
    if workloads:
        _print_placements(console, workloads)
    if summary.refusals:
        _print_refusals(console, summary.refusals)
    if summary.reasons:
        _print_reasons(console, summary.reasons)
    _print_utilization(console, summary.utilization)
    if len(summary.zones) > 1:
        _print_zones(console, summary.zones)
    # Notable: several schedulers, or refused binds.
    if summary.concurrency is not None and summary.concurrency.is_notable:
        console.print(headline(summary.concurrency))
        print_schedulers(console, summary.concurrency)
    if summary.ray_nodes:
        print_ray_nodes(console, summary.ray_nodes)
    if summary.timings_s:
        _print_timings(console, summary.timings_s, summary.elapsed_s)


def _headline(summary: Summary) -> Text:
    line = Text.assemble((f"{summary.placed:,} placed", "bold green"), ", ")
    line.append(f"{summary.pending:,} pending", style="bold yellow" if summary.pending else "")
    pods = summary.placed + summary.pending
    line.append(f" of {pods:,} pods on {summary.nodes:,} nodes")
    if summary.source:
        line.append(f" ({printable(summary.source)})")
    if summary.preempted:
        line.append(f"\n{summary.preempted:,} preempted", style="bold yellow")
        line.append(": evicted for pods of higher priority")
    if summary.not_created:
        line.append(f"\n{summary.not_created:,} not created", style="bold yellow")
        line.append(": admission refuses them or their claims")
    line.append(f"\n{summary.pods_per_s:,.0f} pods/s", style="bold")
    line.append(f" over {human_seconds(summary.scheduling_s)} of scheduling; ")
    line.append(f"{human_seconds(summary.elapsed_s)} in all")
    return line


def _print_placements(console: Console, workloads: Sequence[ControllerPods]) -> None:
    """Print workloads with the nodes of their pods: all workloads, or the first ones."""
    columns = [text_column("workload"), Column("placed"), Column("pending")]
    has_preempted = any(each.preempted for each in workloads)
    has_refused = any(each.not_created for each in workloads)
    columns += [Column("preempted")] * has_preempted + [Column("not created")] * has_refused
    rows: list[Cells] = []
    for each in workloads[:WORKLOADS_MAX]:
        unplaced = [each.pending]
        unplaced += [each.preempted] * has_preempted + [each.not_created] * has_refused
        counts = [Text(f"{count:,}", style="bold yellow" if count else "") for count in unplaced]
        rows.append([printable(each.name), f"{each.placed:,}", *counts, printable(_nodes(each))])
    more = _more(len(workloads) - WORKLOADS_MAX, "workloads; -o wide shows every pod")
    print_table(
        console, "Where the pods are", [*columns, text_column("nodes")], rows, left_out=more
    )


def _nodes(workload: ControllerPods) -> str:
    """The nodes by name, with the number of pods if it is more than one."""
    nodes = workload.nodes
    if len(nodes) > NODES_MAX:
        return f"{len(nodes):,} nodes, at most {max(nodes.values()):,} on one"
    return ", ".join(
        name if nodes[name] == 1 else f"{name} ({nodes[name]:,})" for name in sorted(nodes)
    )


def print_pods(console: Console, pods: Iterable[PodLine]) -> None:
    """Print each pod with its node, or with the reason why it has none."""
    rows: list[Cells] = [
        (
            printable(each.pod),
            Text(printable(each.node or each.reason), style="" if each.node else "yellow"),
            "" if each.score is None else f"{each.score:,}",
            printable(each.workload),
        )
        for each in pods
    ]
    columns = [
        text_column("pod"),
        text_column("node or reason"),
        Column("score"),
        text_column("workload"),
    ]
    print_table(console, "Pods", columns, rows)


def print_devices(console: Console, devices: Iterable[ClaimedDevice]) -> None:
    """Print each device that is allocated to a claim, with the pods that use it."""
    rows: list[Cells] = [
        tuple(
            printable(cell)
            for cell in (
                each.claim,
                each.request,
                f"{each.driver} {each.pool} {each.device}",
                ", ".join(each.pods),
            )
        )
        for each in devices
    ]
    columns = [
        text_column("claim"),
        text_column("request"),
        text_column("driver, pool, device"),
        text_column("pods"),
    ]
    print_table(console, "Devices of claims", columns, rows)


def _print_utilization(console: Console, utilization: tuple[ResourceUse, ...]) -> None:
    names = ("allocatable", "before", "after", "%")
    columns = [text_column("resource"), *map(Column, names), Column("", "bar")]
    rows: list[Cells] = []
    for use in utilization:
        if not _exists_in_fleet(use):
            continue
        amounts = (use.allocatable, use.before, use.after)
        shown = [human_amount(use.resource, amount) for amount in amounts]
        drawn = bar(use.after_fraction or 0)
        rows.append([resource_title(use.resource), *shown, percent(use.after_fraction), drawn])
    print_table(console, "Utilization", columns, rows)


def _exists_in_fleet(use: ResourceUse) -> bool:
    """Whether the fleet has a resource at all: nodes list huge pages that they do not have."""
    return bool(use.allocatable or use.before or use.after)


def _print_zones(console: Console, zones: dict[str, tuple[ResourceUse, ...]]) -> None:
    resources = dict.fromkeys(
        use.resource for uses in zones.values() for use in uses if _exists_in_fleet(use)
    )
    shown = list(resources)[:RESOURCES_MAX]
    rows: list[Cells] = []
    for zone, uses in list(zones.items())[:ZONES_MAX]:
        use_of = {use.resource: use for use in uses}
        before_after = [
            f"{percent(use_of[name].before_fraction)} → {percent(use_of[name].after_fraction)}"
            for name in shown
        ]
        rows.append([printable(zone) or "(none)", *before_after])
    columns = [text_column("zone"), *(Column(resource_title(name)) for name in shown)]
    title = "Utilization per zone, before → after"
    print_table(console, title, columns, rows, left_out=_more(len(zones) - len(rows), "zones"))


def _print_reasons(console: Console, reasons: tuple[ReasonSummary, ...]) -> None:
    columns = [
        text_column("reason"),
        Column("pods"),
        Column("nodes per pod"),
        text_column("first pod"),
    ]
    rows: list[Cells] = [
        [
            printable(each.reason),
            f"{each.pods:,}",
            f"{each.nodes / each.pods:,.0f}" if each.nodes else "–",
            printable(each.first),
        ]
        for each in reasons[:REASONS_MAX]
    ]
    more = _more(len(reasons) - REASONS_MAX, "reasons")
    print_table(console, "Why pods are pending", columns, rows, left_out=more)


def _print_refusals(console: Console, refusals: Sequence[RefusedObjects]) -> None:
    rows: list[Cells] = [
        [
            printable(each.first.reason),
            f"{each.count:,}",
            printable(f"{each.first.kind} {each.first.name}"),
        ]
        for each in refusals[:REASONS_MAX]
    ]
    columns = [text_column("reason"), Column("objects"), text_column("first")]
    more = _more(len(refusals) - REASONS_MAX, "reasons")
    print_table(console, "Why objects are not created", columns, rows, left_out=more)


def _print_timings(console: Console, timings_s: dict[str, float], elapsed_s: float) -> None:
    rows: list[Cells] = [
        [phase, human_seconds(spent), bar(spent / elapsed_s if elapsed_s else 0)]
        for phase, spent in timings_s.items()
    ]
    columns = [text_column("phase"), Column("time"), Column("", "bar")]
    print_table(console, "Where the time went", columns, rows)


def _more(count: int, what: str) -> str:
    return f"… and {count:,} more {what}" if count > 0 else ""
