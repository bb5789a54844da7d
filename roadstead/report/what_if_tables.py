"""The answers to what-if questions on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.text import Text

from roadstead.protocol.errors import printable
from roadstead.report.drain_result import DrainedPod, DrainResult
from roadstead.report.fit_result import FitResult
from roadstead.report.grow_result import GrowResult, ShrinkResult
from roadstead.report.text_table import Cells, Column, bar, print_table, text_column
from roadstead.report.units import counted, percent, resource_title

ROWS_MAX: Final = 20
"""Maximum number of rows of a table; more are counted in a line below it."""

NAMES_MAX: Final = 8


def print_fit(console: Console, result: FitResult) -> None:
    """Print how many replicas fit, where, what stops the next one, and what would admit it."""
    more = "at least " if result.is_limited else ""
    # With `is_total`, pods of the input are among the replicas.
    replica = "replica" if result.is_total else "more replica"
    fitting = f"{counted(result.replicas, replica)} fit{'s' * (result.replicas == 1)}"
    if result.replicas:
        line = Text(f"{more}{fitting}", style="bold green")
        nodes = f" on {len(result.nodes):,} of {counted(result.node_count, 'node')}"
    else:
        line = Text(f"No {replica} fits", style="bold yellow")
        nodes = f" on any of {counted(result.node_count, 'node')}"
    line.append(nodes, style="not bold")
    line.append(f" ({printable(result.source)})", style="not bold")
    console.print(line, highlight=False)
    of_input = f"Pods of the input, placed first: {result.placed:,}"
    if result.pending:
        of_input += f"; {result.pending:,} {_stay(result.pending)} pending"
    console.print(Text(of_input))
    # A spec is an argument of the command: web=3 db=1 counts sets of three web and one db.
    if len(result.specs) > 1:
        rows: list[Cells] = [
            [printable(each.name), printable(each.pod), f"{each.ratio:,}", f"{each.replicas:,}"]
            for each in result.specs
        ]
        columns = [
            *(text_column("replicas of"), text_column("copies of pod")),
            *(Column("in a set"), Column("replicas")),
        ]
        print_table(console, f"Replicas, in {counted(result.rounds, 'set')}", columns, rows)
    if result.nodes:
        _print_counts(console, "By shape of node", "shape", result.shapes, result.replicas)
        if len(result.zones) > 1:
            _print_counts(console, "By zone", "zone", result.zones, result.replicas)
        _print_fit_nodes(console, result)
    _print_next(console, result)


def _print_counts(
    console: Console, title: str, what: str, counts: Mapping[str, int], total: int
) -> None:
    rows: list[Cells] = [
        [printable(name) or "(none)", f"{count:,}", bar(count / total)]
        for name, count in list(counts.items())[:ROWS_MAX]
    ]
    columns = [text_column(what), Column("replicas"), Column("", "bar")]
    print_table(console, title, columns, rows, left_out=_more(len(counts), what + "s"))


def _print_fit_nodes(console: Console, result: FitResult) -> None:
    rows: list[Cells] = [
        [printable(each.node), printable(each.zone), f"{each.replicas:,}"]
        for each in result.nodes[:ROWS_MAX]
    ]
    columns = [text_column("node"), text_column("zone"), Column("replicas")]
    left_out = _more(len(result.nodes), "nodes; --format json has all")
    print_table(console, "By node", columns, rows, left_out=left_out)


def _print_next(console: Console, result: FitResult) -> None:
    stop = result.next
    if stop is None:
        console.print(Text("\nThe count stopped at its limit: --max counts further."))
        return
    name = f" of {printable(stop.spec)}" if len(result.specs) > 1 else ""
    console.print(Text(f"\nThe next replica{name} does not fit", style="bold"))
    console.print(Text(printable(stop.message)))
    if stop.preempts:
        names = ", ".join(f"{each.pod} ({each.node})" for each in stop.preempts[:NAMES_MAX])
        console.print(Text(f"  {printable(names)}"))
    if result.changes:
        rows: list[Cells] = [
            [printable(each.text), printable(each.node), printable(", ".join(each.evicts))]
            for each in result.changes
        ]
        columns = [text_column("change"), text_column("then placed on"), text_column("evicts")]
        has_victims = any(each.evicts for each in result.changes)
        if not has_victims:
            columns, rows = columns[:2], [row[:2] for row in rows]
        title = f"Smallest changes that admit it, of {result.tried:,} tried"
        print_table(console, title, columns, rows)
    elif result.tried:
        console.print(Text(f"\nNo change of the pod admits it, of {result.tried:,} tried."))


def print_grow(console: Console, result: GrowResult) -> None:
    """Print the nodes to add, and the pods that they do not help."""
    console.print(_grow_headline(result), highlight=False)
    if result.count:
        rows: list[Cells] = []
        for each in result.shapes:
            if not each.count:
                continue
            used = ", ".join(
                f"{resource_title(name)} {percent(share)}" for name, share in each.used if share
            )
            price = each.price_per_hour
            cost = "–" if price is None else f"{price * each.count:,.2f}"
            rows.append(
                [printable(each.shape), f"{each.count:,}", cost, f"{each.pods:,}", printable(used)]
            )
        columns = [
            text_column("shape"),
            Column("nodes"),
            Column("price per hour"),
            Column("pods on them"),
            text_column("share requested"),
        ]
        print_table(console, "Nodes to add", columns, rows)
    if result.pending:
        title = "Pods that none of these nodes helps"
        _print_reasons(console, title, [(each.message, each.pod) for each in result.pending])
    proof = f"\nProven by a run in which {result.pods - len(result.pending):,} of "
    proof += f"{counted(result.pods, 'pod')} were placed and none was preempted; "
    proof += f"{counted(result.runs, 'run')} in all."
    if result.count and result.is_minimal:
        proof += " With one node less of any shape, a pod is left without a node."
    elif result.count:
        proof += " The search ended at its limit: fewer nodes may do (--max-runs)."
    console.print(Text(proof))


def _grow_headline(result: GrowResult) -> Text:
    if not result.missing_before:
        return Text("No node is needed: every pod is placed", style="bold green")
    if not result.count:
        missing = result.missing_before
        stay = f"{counted(missing, 'pod')} {_stay(missing)} pending"
        them = "it" if missing == 1 else "them"
        line = Text(stay, style="bold yellow")
        return line.append(f": no node of the catalogue helps {them}", style="not bold")
    line = Text(counted(result.count, "more node"), style="bold green")
    if result.price_per_hour is not None:
        line.append(f", {result.price_per_hour:,.2f} per hour,", style="not bold")
    helped = result.missing_before - len(result.pending)
    verb = "places" if result.count == 1 else "place"
    line.append(f" {verb} {helped:,} of {counted(result.missing_before, 'pod')}", style="not bold")
    line.append(f" without a node ({printable(result.source)})", style="not bold")
    return line


def print_shrink(console: Console, result: ShrinkResult) -> None:
    """Print the nodes that can go, and how the disruption budgets limit that."""
    nodes = counted(result.node_count, "node")
    line = Text(f"{len(result.nodes):,} of {nodes} can go", style="bold green")
    if not result.nodes:
        line = Text(f"None of {counted(result.candidates, 'node')} can go", style="bold yellow")
    line.append(f" ({printable(result.source)})", style="not bold")
    console.print(line, highlight=False)
    # These pods fit on no node even if none is removed, so they forbid no removal.
    if result.pending_before:
        console.print(
            Text(f"Pods of the input that are pending in any case: {result.pending_before:,}")
        )
    if result.nodes:
        rows: list[Cells] = [
            [
                printable(each.node),
                printable(each.zone),
                printable(each.shape),
                f"{each.pods:,}",
                f"{each.daemons:,}",
            ]
            for each in result.nodes[:ROWS_MAX]
        ]
        columns = [
            text_column("node"),
            text_column("zone"),
            text_column("shape"),
            Column("pods that move"),
            Column("that end with it"),
        ]
        left_out = _more(len(result.nodes), "nodes; --format json has all")
        print_table(console, "Nodes that can go", columns, rows, left_out=left_out)
    if result.budgets:
        rows = [
            [printable(each.budget), f"{each.allowed:,}", f"{each.pods:,}", f"{each.refused:,}"]
            for each in result.budgets[:ROWS_MAX]
        ]
        columns = [
            text_column("budget"),
            Column("allows"),
            Column("moves"),
            Column("refuses if all move at once"),
        ]
        left_out = _more(len(result.budgets), "budgets")
        print_table(console, "Disruption budgets", columns, rows, left_out=left_out)
    console.print(Text(_shrink_proof(result)))


def _shrink_proof(result: ShrinkResult) -> str:
    trials = counted(result.runs, "trial")
    if not result.nodes:
        proof = f"\nNo node was emptied in {trials}."
    else:
        proof = f"\nProven by a run in which {counted(result.moved, 'pod')} moved, each to another "
        proof += f"node, and none was preempted; {trials} in all."
    if result.bare:
        proof += f" Without a controller, to be created again: {result.bare:,}."
    if not result.is_complete:
        proof += " The search ended at its limit: more nodes may go (--max-runs)."
    return proof


def print_drain(console: Console, result: DrainResult) -> None:
    """Print where the pods go, what stays pending or blocked, and what the budgets allow."""
    counts = result.counts
    nodes = ", ".join(result.nodes[:NAMES_MAX]) + (", …" if len(result.nodes) > NAMES_MAX else "")
    line = Text("Drained", style="bold green")
    if not result.is_complete:
        line = Text("Cannot be drained completely", style="bold yellow")
    line.append(f": {printable(nodes)} ({printable(result.source)})", style="not bold")
    console.print(line, highlight=False)
    words = {"moved": "placed elsewhere", "pending": "pending", "blocked": "blocked by a budget"}
    words |= {"refused": "refused by kubectl drain", "leaves": "ending with the node"}
    parts = [f"{counts[name]:,} {words[name]}" for name in counts if counts[name]]
    shown = ", ".join(parts) or "none must move"
    console.print(Text(f"Of {counted(len(result.pods), 'pod')}: {shown}"))
    if result.pending_before:
        console.print(
            Text(f"Pods of the input that were pending before: {result.pending_before:,}")
        )
    _print_moves(console, result)
    for outcome, title in (
        ("pending", "Pods that stay pending"),
        ("blocked", "Evictions that are blocked"),
        ("refused", "Pods at which kubectl drain stops"),
        ("leaves", "Pods that end with the node"),
    ):
        pairs = [(each.reason, each.pod) for each in result.pods if each.outcome == outcome]
        if pairs:
            _print_reasons(console, title, pairs)
    if result.preempted:
        rows: list[Cells] = [
            [printable(each.pod), printable(each.node), printable(each.preemptor)]
            for each in result.preempted[:ROWS_MAX]
        ]
        columns = [text_column("pod"), text_column("node"), text_column("for")]
        left_out = _more(len(result.preempted), "pods")
        print_table(console, "Pods that are preempted", columns, rows, left_out=left_out)
    _print_budgets(console, result)


def _print_moves(console: Console, result: DrainResult) -> None:
    """Print the pods that move, grouped by workload and target, in order of their first pods."""
    moved = [each for each in result.pods if each.outcome == "moved"]
    if not moved:
        return
    grouped: dict[tuple[str, str, str, int], list[DrainedPod]] = {}
    for each in moved:
        key = (each.workload or f"Pod {each.pod}", each.node, each.to, each.round)
        grouped.setdefault(key, []).append(each)
    rows: list[Cells] = [
        [printable(name), printable(node), printable(to), f"{round_number:,}", f"{len(pods):,}"]
        for (name, node, to, round_number), pods in list(grouped.items())[:ROWS_MAX]
    ]
    columns = [
        text_column("workload"),
        text_column("from"),
        text_column("to"),
        Column("eviction round"),
        Column("pods"),
    ]
    left_out = _more(len(grouped), "rows; --format json has every pod")
    print_table(console, "Where the pods go", columns, rows, left_out=left_out)
    bare = sum(1 for each in moved if each.is_bare)
    if bare:
        console.print(Text(f"Without a controller, to be created again: {bare:,}"))


def _print_budgets(console: Console, result: DrainResult) -> None:
    if not result.budgets:
        return
    rows: list[Cells] = [
        [
            printable(each.budget),
            f"{each.allowed:,}",
            f"{each.pods:,}",
            f"{each.evicted:,}",
            f"{each.rounds:,}",
            Text(f"{each.blocked:,}", style="bold yellow" if each.blocked else ""),
        ]
        for each in result.budgets[:ROWS_MAX]
    ]
    names = ("allows", "pods", "evicted", "in rounds", "blocked")
    columns = [text_column("budget"), *map(Column, names)]
    left_out = _more(len(result.budgets), "budgets")
    print_table(console, "Disruption budgets", columns, rows, left_out=left_out)


def _print_reasons(console: Console, title: str, pairs: Sequence[tuple[str, str]]) -> None:
    """Print reasons with the number of pods and the first of them. pairs: (reason, pod)."""
    ordered = sorted(pairs, key=lambda pair: pair[0])
    groups = [
        (reason, [pod for _, pod in same]) for reason, same in groupby(ordered, key=lambda p: p[0])
    ]
    groups.sort(key=lambda group: -len(group[1]))
    rows: list[Cells] = [
        [printable(reason), f"{len(pods):,}", printable(pods[0])]
        for reason, pods in groups[:ROWS_MAX]
    ]
    columns = [text_column("reason"), Column("pods"), text_column("first pod")]
    print_table(console, title, columns, rows, left_out=_more(len(groups), "reasons"))


def _stay(count: int) -> str:
    return "stays" if count == 1 else "stay"


def _more(total: int, what: str) -> str:
    return f"… and {total - ROWS_MAX:,} more {what}" if total > ROWS_MAX else ""
