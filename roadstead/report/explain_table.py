"""An explanation on a terminal: the best nodes with their scores, the others with their reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roadstead.cycle.explain import Explanation
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.protocol.errors import printable
from roadstead.protocol.status import Code, Status

SKIPPED = "–"


def print_explanation(console: Console, explanation: Explanation, top: int = 0) -> None:
    """Headline, scores of feasible nodes (best first), and who refused the others and why.

    top: so many nodes of each kind; 0 for all.
    """
    console.print(_headline(explanation))
    if len(explanation.total):
        console.print(_scores(explanation, top))
    refused = [
        (name, status)
        for name, status in zip(explanation.names, explanation.statuses, strict=False)
        if status is not None
    ]
    if refused:
        console.print(_reasons(status for _, status in refused))
        console.print(_refused(refused, top))
    if explanation.post_filter is not None and explanation.post_filter.candidates:
        console.print(_candidates(explanation.post_filter, top))


def _headline(explanation: Explanation) -> Text:
    text = Text.assemble((printable(explanation.pod_key), "bold"), ": ")
    nodes, feasible = len(explanation.names), len(explanation.feasible)
    if explanation.cycle_error:
        text.append(f"scheduling it fails: {printable(explanation.cycle_error)}", style="bold red")
    elif feasible:
        text.append(f"{feasible:,} of {nodes:,} nodes can take it", style="bold green")
        text.append(f"\n{_best(explanation)}")
    else:
        text.append("no node can take it", style="bold yellow")
        text.append(f"\n{printable(explanation.message)}")
        text.append(_preemption(explanation.post_filter))
    if explanation.is_terminating:
        text.append("\nIt is being deleted: the scheduler skips it")
    if not explanation.pre_enqueue.is_success:
        text.append(f"\nIt does not enter the queue: {_said(explanation.pre_enqueue)}")
    if explanation.unsupported:
        text.append(f"\nWhether preemption would help is not known: {explanation.unsupported}")
    return text


def _best(explanation: Explanation) -> str:
    best = explanation.best
    if explanation.nominated:
        return f"{best[0]} is taken: it is nominated, and other nodes are not compared"
    if explanation.score_error:
        return f"{best[0]} is taken: it is the only one, so that nothing needs to be scored"
    if len(best) == 1:
        return f"{best[0]} is the best"
    return f"{len(best):,} are equally good: one of them is taken, {best[0]} if it is the first"


def _table(title: str, *columns: str, right: Sequence[str] = ()) -> Table:
    table = Table(
        title=f"\n{title}", title_justify="left", title_style="bold", box=None, pad_edge=False
    )
    for column in columns:
        if column in right:
            table.add_column(column, justify="right", no_wrap=True)
        else:
            table.add_column(column, overflow="fold")
    return table


def _scores(explanation: Explanation, top: int) -> Table:
    numbers = ("raw", "normalized", "weight", "weighted")
    table = _table("Scores, best node first", "node", "plugin", *numbers, right=numbers)
    order = np.argsort(-explanation.total, kind="stable").tolist()
    shown = order[:top] if top else order
    for place in shown:
        name = explanation.names[explanation.feasible[place]]
        total = f"{int(explanation.total[place]):,}"
        table.add_row(Text(name, style="bold"), "total", "", "", "", Text(total, style="bold"))
        for line in explanation.scores:
            if line.raw is None or line.normalized is None:
                table.add_row("", line.plugin, SKIPPED, SKIPPED, f"{line.weight}", SKIPPED)
                continue
            raw, normalized = int(line.raw[place]), int(line.normalized[place])
            cells = (f"{raw:,}", f"{normalized:,}", f"{line.weight}")
            table.add_row("", line.plugin, *cells, f"{line.weight * normalized:,}")
    _say_left_out(table, len(order) - len(shown))
    return table


def _reasons(statuses: Iterable[Status]) -> Table:
    table = _table("Why nodes refuse it", "plugin", "reason", "nodes", right=("nodes",))
    counts = Counter(
        (status.plugin, reason) for status in statuses for reason in status.reasons or ("",)
    )
    for (plugin, reason), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(plugin or SKIPPED, Text(printable(reason)), f"{count:,}")
    return table


def _refused(refused: Sequence[tuple[str, Status]], top: int) -> Table:
    table = _table("Nodes that refuse it", "node", "plugin", "preemption", "reasons")
    shown = refused[:top] if top else refused
    for name, status in shown:
        reasons = Text(printable(", ".join(status.reasons)))
        helps = "may help" if status.code is Code.UNSCHEDULABLE else "cannot help"
        table.add_row(Text(name), status.plugin or SKIPPED, helps, reasons)
    _say_left_out(table, len(refused) - len(shown))
    return table


def _preemption(result: PostFilterResult | None) -> str:
    if result is None or result.chosen is None:
        return ""
    pods = len(result.chosen.victims)
    equals = len(result.acceptable)
    who = "1 pod goes" if pods == 1 else f"{pods:,} pods go"
    among = f", one of {equals:,} equally good nodes" if equals > 1 else ""
    return f"\nPreemption would make room on {result.nominated_node}: {who}{among}"


def _candidates(result: PostFilterResult, top: int) -> Table:
    title = "Preemption: nodes on which it would fit, and whom it would cost"
    if not result.exhaustive:
        title += " (some of the nodes were tried)"
    table = _table(title, "node", "budgets missed", "victims", right=("budgets missed",))
    good = set(result.acceptable)
    order = sorted(result.candidates, key=lambda each: (each.node_name not in good, each.node_name))
    shown = order[:top] if top else order
    for each in shown:
        style = "bold" if each.node_name in good else ""
        victims = ", ".join(f"{victim.key} ({victim.priority:,})" for victim in each.victims)
        table.add_row(
            Text(each.node_name, style=style), f"{each.violations:,}", Text(printable(victims))
        )
    _say_left_out(table, len(order) - len(shown))
    return table


def _said(status: Status) -> str:
    return f"{status.plugin}: {', '.join(status.reasons)}"


def _say_left_out(table: Table, count: int) -> None:
    if count > 0:
        table.add_row(f"… and {count:,} more")
