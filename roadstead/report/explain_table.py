"""An explanation on a terminal: headline, scores (nodes by plugins), and nodes filtered out.

Nothing is truncated at any width. Names are wrapped. Score columns that do not fit become a
further block of columns, or one line if the plugin scores all nodes equally.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roadstead.cycle.explain import Explanation
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.protocol.errors import printable
from roadstead.report.explain_sections import PendingReport, Section
from roadstead.report.explain_view import (
    HeadlineLine,
    Mark,
    RejectedNodes,
    ScoreColumn,
    headline,
    preemption_candidates,
    ranked,
    refusals,
    score_columns,
)

SKIPPED: Final = "–"
"""Shown for a plugin that was skipped, and so has no scores."""

NODES_SHOWN: Final = 10
NAMES_SHOWN: Final = 3
GAP: Final = 2
"""Spaces between two columns."""

NODE_MIN: Final = 8
"""Minimum number of characters of the node column."""

HEADING_MAX: Final = 10
"""Characters of a plugin's name per heading line: `Toleration` and `Allocation` fit."""

HEADINGS: Final = (sys.maxsize, 24, 16, HEADING_MAX)
"""Maximum numbers of characters per heading line, tried in this order.

Used is the first number that lets all columns fit side by side without wrapping a node name; if
there is none, the last.
"""

FULL_NAMES_WIDTH: Final = 72
FOLDED_NAME: Final = 14
"""On a terminal narrower than FULL_NAMES_WIDTH, names of plugins are broken into such lines."""

STYLES: Final[dict[Mark, str]] = {
    "good": "bold green",
    "wait": "bold yellow",
    "bad": "bold red",
    "": "",
}
_CAMEL_CASE_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z]+")


@dataclass(frozen=True, slots=True)
class ShownLimits:
    """Maximum numbers of nodes with scores, and of names per reason; None for all."""

    nodes: int | None = NODES_SHOWN
    names: int | None = NAMES_SHOWN

    @classmethod
    def of(cls, top: int | None) -> ShownLimits:
        """The limits for a value of `--top`: None for the defaults, 0 for no limit."""
        return cls() if top is None else cls(top or None, top or None)


def print_explanation(
    console: Console, explanation: Explanation, limits: ShownLimits | None = None
) -> None:
    """Print headline, scores of feasible nodes, and which plugins filtered out the others."""
    limits = limits or ShownLimits()
    _print_headline(console, Text(printable(explanation.pod_key), "bold"), headline(explanation))
    order = ranked(explanation)
    if order:
        _print_scores(console, explanation, order, limits)
        _print_best(console, explanation, order[0])
    _print_refusals(console, explanation, limits)
    if explanation.post_filter is not None and explanation.post_filter.candidates:
        _print_candidates(console, explanation.post_filter, limits)


def print_pending(
    console: Console, report: PendingReport, limits: ShownLimits | None = None
) -> None:
    """Print why pods are pending, one section per workload and reason."""
    console.print(Text(printable(report.summary), "bold"))
    if report.basis:
        console.print(Text(report.basis))
    for section in report.sections:
        _print_section(console, section, limits or ShownLimits())


def _print_section(console: Console, section: Section, limits: ShownLimits) -> None:
    title = Text(f"\n{printable(section.title)}", "bold")
    explanation = section.explanation
    lines = [HeadlineLine(section.reason, "bad")] if explanation is None else headline(explanation)
    _print_headline(console, title, lines)
    if section.title != f"Pod {section.pods[0]}":
        console.print(Text(printable(f"Pods: {_first_names(section.pods, limits.names)}"), "dim"))
    # For a gated pod, the answers of filters are not the reason why it is pending.
    if explanation is not None and section.state == "unschedulable":
        _print_refusals(console, explanation, limits)


def _print_headline(console: Console, title: Text, lines: Sequence[HeadlineLine]) -> None:
    """Print whether a pod can be scheduled and where, or why not."""
    texts = (Text(printable(line.text), style=STYLES[line.mark]) for line in lines)
    console.print(Text.assemble(title, ": ", Text("\n").join(texts)))


def _print_scores(
    console: Console, explanation: Explanation, order: Sequence[int], limits: ShownLimits
) -> None:
    shown = order[: limits.nodes]
    columns = score_columns(explanation)
    count = len(order)
    what = f"the best {len(shown):,} of {count:,}" if len(shown) < count else f"{count:,}"
    _print_title(console, f"Weighted scores of {what} nodes")
    for chars in HEADINGS:
        first, *others = _blocks(explanation, columns, shown, console.width, chars)
        if len(first.columns) == len(columns) and first.node_chars == _node_chars(
            explanation, shown
        ):
            break
    console.print(first.table(explanation, shown))
    for block in others:
        console.print()
        console.print(block.table(explanation, shown))
    in_blocks = {each.plugin for block in (first, *others) for each in block.columns}
    if same := [each for each in columns if each.plugin not in in_blocks]:
        scores = ", ".join(f"{each.plugin} {each.weighted[0]:,}" for each in same)
        console.print(Text(printable(f"The same on all {count:,} nodes: {scores}")))
    _print_left_out(console, count - len(shown), "nodes")


@dataclass(frozen=True, slots=True)
class _Block:
    """Score columns that fit next to node and total.

    node_chars: width of the node column. chars: characters per heading line.
    """

    columns: tuple[ScoreColumn, ...]
    node_chars: int
    chars: int

    def table(self, explanation: Explanation, shown: Sequence[int]) -> Table:
        table = _table()
        table.add_column("node", overflow="fold", width=self.node_chars)
        table.add_column("total", overflow="fold", justify="right")
        for column in self.columns:
            heading = Text("\n".join(heading_lines(printable(column.plugin), self.chars)))
            table.add_column(heading, overflow="fold", justify="right")
        best = set(explanation.best)
        for index in shown:
            name = explanation.names[explanation.feasible[index]]
            scores = [Text(f"{each.weighted[index]:,}") for each in self.columns]
            total = Text(f"{int(explanation.total[index]):,}", style="bold")
            style = "bold" if name in best else ""
            table.add_row(Text(printable(name), style=style), total, *scores)
        return table


def _blocks(
    explanation: Explanation,
    columns: Sequence[ScoreColumn],
    shown: Sequence[int],
    width: int,
    chars: int,
) -> Iterator[_Block]:
    """Columns by block. A constant column never begins a block; it is left out instead."""
    node_chars = _node_chars(explanation, shown)
    total_chars = max(len("total"), *(len(f"{int(explanation.total[i]):,}") for i in shown))
    widths = {each.plugin: GAP + _chars(each, shown, chars) for each in columns}
    # Long node names are wrapped, so that at least one score column fits.
    free_chars = width - total_chars - GAP
    node_chars = max(1, min(node_chars, free_chars - max(widths.values(), default=0)))
    free_chars -= node_chars
    block: list[ScoreColumn] = []
    unused = free_chars
    # Constant columns come last: they fill the last block, or are printed as one line.
    for column in columns:
        if widths[column.plugin] > unused:
            if column.is_constant:
                continue
            if block:
                yield _Block(tuple(block), node_chars, chars)
            block, unused = [], free_chars
        block.append(column)
        unused -= widths[column.plugin]
    yield _Block(tuple(block), node_chars, chars)


def _node_chars(explanation: Explanation, shown: Sequence[int]) -> int:
    names = (printable(explanation.names[explanation.feasible[index]]) for index in shown)
    return max(NODE_MIN, *map(cell_len, names))


def _chars(column: ScoreColumn, shown: Sequence[int], chars: int) -> int:
    heading = max(map(cell_len, heading_lines(printable(column.plugin), chars)))
    return max(heading, *(len(f"{column.weighted[index]:,}") for index in shown))


def heading_lines(name: str, chars: int = HEADING_MAX) -> list[str]:
    """Split a plugin's name between words into lines of `chars` letters: `Node`, `Resources`."""
    lines: list[str] = []
    for word in _CAMEL_CASE_WORDS.findall(name):
        if lines and len(lines[-1]) + len(word) <= chars:
            lines[-1] += word
        else:
            lines += [word[at : at + chars] for at in range(0, len(word), chars)]
    return lines or [name]


def _print_best(console: Console, explanation: Explanation, index: int) -> None:
    """Print the raw, normalized and weighted scores that add up to the first node's total."""
    name = explanation.names[explanation.feasible[index]]
    _print_title(console, f"Scores of {printable(name)}")
    table = _table()
    table.add_column("plugin", overflow="fold")
    chars = FOLDED_NAME if console.width < FULL_NAMES_WIDTH else sys.maxsize
    for heading in ("raw", "normalized", "weight", "weighted"):
        table.add_column(heading, justify="right", overflow="fold")
    for line in explanation.scores:
        cells = [SKIPPED, SKIPPED, f"{line.weight:,}", SKIPPED]
        if line.raw is not None and line.normalized is not None:
            raw, normalized = int(line.raw[index]), int(line.normalized[index])
            weighted = f"{line.weight * normalized:,}"
            cells = [f"{raw:,}", f"{normalized:,}", f"{line.weight:,}", weighted]
        plugin = "\n".join(heading_lines(printable(line.plugin), chars))
        table.add_row(Text(plugin), *map(Text, cells))
    total = f"{int(explanation.total[index]):,}"
    table.add_row(Text("total", style="bold"), "", "", "", Text(total, style="bold"))
    console.print(table)


def _print_refusals(console: Console, explanation: Explanation, limits: ShownLimits) -> None:
    """Print filtered nodes by plugin and reason: counts and first names."""
    found = refusals(explanation)
    if not found:
        return
    nodes = sum(len(each.nodes) for each in found)
    _print_title(console, f"Filtered out: {nodes:,} of {len(explanation.names):,} nodes")
    table = _table()
    table.add_column("nodes", justify="right", overflow="fold")
    table.add_column("plugin and reason", overflow="fold")
    shown = found[: None if limits.nodes is None else max(limits.nodes, NODES_SHOWN)]
    for each in shown:
        reason = Text(f"{printable(each.text)}\n")
        names = _names(each, limits.names, len(explanation.names))
        reason.append(printable(names), style="dim")
        table.add_row(Text(f"{len(each.nodes):,}"), reason)
    console.print(table)
    _print_left_out(console, len(found) - len(shown), "reasons")


def _names(refusal: RejectedNodes, limit: int | None, nodes: int) -> str:
    if limit is not None and limit < len(refusal.nodes) == nodes:
        return "every node"
    return _first_names(refusal.nodes, limit)


def _first_names(names: Sequence[str], limit: int | None) -> str:
    shown = names[:limit]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _print_candidates(console: Console, result: PostFilterResult, limits: ShownLimits) -> None:
    title = "Preemption: nodes where the pod would fit, and the pods to evict"
    if not result.exhaustive:
        title += " (some of the nodes were tried)"
    _print_title(console, title)
    table = _table()
    table.add_column("node", overflow="fold")
    table.add_column("budgets violated", justify="right", overflow="fold")
    table.add_column("victims", overflow="fold")
    # The acceptable candidates are equally good; preemption chooses one of them.
    found, good = preemption_candidates(result), set(result.acceptable)
    shown = found[: limits.nodes]
    for each in shown:
        style = "bold" if each.node_name in good else ""
        victims = ", ".join(f"{victim.key} ({victim.priority:,})" for victim in each.victims)
        name = Text(printable(each.node_name), style=style)
        table.add_row(name, Text(f"{each.violations:,}"), Text(printable(victims)))
    console.print(table)
    _print_left_out(console, len(found) - len(shown), "nodes")


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))


def _print_title(console: Console, title: str) -> None:
    console.print(Text(f"\n{title}", style="bold"))


def _print_left_out(console: Console, count: int, what: str) -> None:
    if count > 0:
        console.print(Text(f"… and {count:,} more {what}; --top 0 shows all"))
