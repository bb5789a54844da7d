"""What several schedulers did, on a terminal."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from roadstead.report.concurrency import Concurrency
from roadstead.report.units import human_bytes, percent


def headline(concurrency: Concurrency) -> Text:
    """Mode, conflicts and their causes, in a line or two."""
    count = len(concurrency.schedulers)
    text = Text(f"\n{count} scheduler{'s' if count > 1 else ''}, {concurrency.mode}: ")
    text.append(f"{percent(concurrency.conflict_fraction)} of {concurrency.asked:,} binds lost")
    if concurrency.refused:
        causes = ", ".join(f"{cause} {n:,}" for cause, n in concurrency.refused.items())
        text.append(f" ({causes})")
    text.append(f"; {concurrency.retries:,} retries")
    if concurrency.memory_bytes:
        text.append(f"; up to {human_bytes(concurrency.memory_bytes)} of memory for each process")
    return text


def fill(table: Table, concurrency: Concurrency, shown: int) -> None:
    """A line for each of the first schedulers; `table` has a column for each cell."""
    for each in concurrency.schedulers[:shown]:
        table.add_row(
            Text(f"{each.name} {each.profile}".rstrip()),
            percent(each.busyness),
            f"{each.decided:,}",
            f"{each.bound:,}",
            f"{each.conflicts:,}",
            f"{each.retries:,}",
            f"{each.passed_on:,}",
        )
