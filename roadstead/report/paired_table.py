"""Paired differences as a table: on a terminal, and in HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from roadstead.lab.paired import HIGHER, LOWER, NO_DIFFERENCE, NO_INTERVAL, Difference
from roadstead.lab.statistics import Band
from roadstead.protocol.errors import printable
from roadstead.report.html_page import text
from roadstead.report.text_table import Cells, Column, print_table, text_column
from roadstead.report.units import counted, signed, significant

NONE: Final = "–"
ROWS_MAX: Final = 60
"""Maximum number of metrics in the table on a terminal: waits by owner may be many."""
HEADS: Final = ("metric", "A", "B", "B - A", "t interval", "bootstrap", "verdict")
GROUPS: Final = {
    LOWER: "B is lower:",
    HIGHER: "B is higher:",
    NO_DIFFERENCE: "No difference shown:",
    NO_INTERVAL: "One pair, so no interval:",
}
"""Verdicts, in the order of the table on the terminal."""


def print_differences(console: Console, a: str, b: str, differences: Sequence[Difference]) -> None:
    """Print the differences by verdict; metrics that are the same in every pair are only named."""
    changed = [each for each in differences if each.is_different]
    more = len(changed) - ROWS_MAX
    left_out = f"… and {more:,} more metrics; --format json has all" if more > 0 else ""
    pairs = max((each.pairs for each in differences), default=0)
    interval = ", 95% intervals of B - A" if pairs > 1 else ""
    title = f"A: {printable(a)}, B: {printable(b)}; {counted(pairs, 'pair')}{interval}"
    heads = ["A", "B", "B - A", *(["interval"] if pairs > 1 else [])]
    rows: list[Cells] = []
    for verdict, group in GROUPS.items():
        found = [each for each in changed[:ROWS_MAX] if each.verdict == verdict]
        if found:
            rows.append([Text(group, style="bold"), *[""] * len(heads)])
            rows += [_cells(each, has_interval=pairs > 1) for each in found]
    console.print()
    console.print(Text(title, style="bold"), soft_wrap=True)
    if rows:
        columns = [text_column("metric"), *map(Column, heads)]
        print_table(console, "", columns, rows, left_out=left_out)
    if same := same_in_every_pair(differences):
        # Without the spaces that rich leaves at the ends of lines.
        wrapped = [line.plain.rstrip() for line in Text(same).wrap(console, console.width)]
        console.print(Text("\n".join(["", *wrapped])), soft_wrap=True)


def _cells(each: Difference, *, has_interval: bool) -> list[str]:
    figures = [*(significant(value, 4) for value in (each.a, each.b)), signed(each.difference)]
    ends = each.interval
    shown = NONE if ends is None else f"{significant(ends[0], 3)} to {significant(ends[1], 3)}"
    return [f"  {printable(each.metric)}", *figures, *([shown] if has_interval else [])]


def same_in_every_pair(differences: Sequence[Difference]) -> str:
    """Return a sentence with the metrics that no pair differs in; "" without any.

    Waits by owner, which may be many, are only counted.
    """
    same = [each.metric for each in differences if not each.is_different]
    if same and len(same) == len(differences):
        return "All metrics are the same in every pair."
    named = [printable(each) for each in same if not is_of_owner(each)]
    if owned := len(same) - len(named):
        named.append(counted(owned, "wait") + " by owner")
    return f"The same in every pair: {', '.join(named)}." if named else ""


def is_of_owner(metric: str) -> bool:
    """Whether a metric is of the pods of one owner: a controller, or an entry of the scenario."""
    return metric.startswith("wait_") and " " in metric


def html_table(differences: Sequence[Difference]) -> Iterator[str]:
    """Yield the table of all metrics, with both intervals."""
    yield '<div class="wide"><table><tr>'
    yield from (f"<th>{text(each)}</th>" for each in HEADS)
    yield "</tr>"
    for each in differences:
        figures = [*(significant(value, 4) for value in (each.a, each.b)), signed(each.difference)]
        figures += [_interval(band) for band in (each.student, each.bootstrap)]
        cells = "".join(f"<td>{text(figure)}</td>" for figure in figures)
        verdict = each.verdict if each.is_different else "the same in every pair"
        word = f"<b>{text(verdict)}</b>" if verdict in (LOWER, HIGHER) else text(verdict)
        name = f'<td class="word">{text(each.metric)}</td>'
        yield f'<tr>{name}{cells}<td class="word">{word}</td></tr>'
    yield "</table></div>"


def _interval(band: Band | None) -> str:
    return NONE if band is None else f"{significant(band.low, 3)} to {significant(band.high, 3)}"
