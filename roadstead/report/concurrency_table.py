"""Figures of concurrent schedulers on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from roadstead.protocol.errors import printable
from roadstead.report.concurrency import Concurrency
from roadstead.report.text_table import Cells, Column, print_table, text_column
from roadstead.report.units import human_bytes, percent

SCHEDULERS_MAX = 16


def headline(concurrency: Concurrency) -> Text:
    """One or two lines with mode, conflicts and their causes."""
    count = len(concurrency.schedulers)
    line = Text(f"\n{count} scheduler{'s' if count > 1 else ''}, {concurrency.mode}: ")
    line.append(
        f"{percent(concurrency.conflict_fraction)} of {concurrency.asked:,} binds in conflict"
    )
    if concurrency.refused:
        causes = ", ".join(f"{cause} {n:,}" for cause, n in concurrency.refused.items())
        line.append(f" ({causes})")
    line.append(f"; {concurrency.retries:,} retries")
    if concurrency.memory_bytes:
        line.append(f"; at most {human_bytes(concurrency.memory_bytes)} of memory per process")
    return line


def print_schedulers(console: Console, concurrency: Concurrency) -> None:
    """Print a row for each of the first schedulers."""
    figures = ("busy", "decided", "bound", "conflicts", "retries", "passed on")
    rows: list[Cells] = [
        [
            printable(f"{each.name} {each.profile}".rstrip()),
            percent(each.busyness),
            f"{each.decided:,}",
            f"{each.bound:,}",
            f"{each.conflicts:,}",
            f"{each.retries:,}",
            f"{each.passed_on:,}",
        ]
        for each in concurrency.schedulers[:SCHEDULERS_MAX]
    ]
    more = len(concurrency.schedulers) - SCHEDULERS_MAX
    left_out = f"… and {more:,} more schedulers" if more > 0 else ""
    columns = [text_column("scheduler"), *map(Column, figures)]
    print_table(console, "Schedulers", columns, rows, left_out=left_out)
