"""The result of an import, as text and as JSON."""

from __future__ import annotations

import json

from rich.console import Console

from roadstead.report.text_table import Column, print_table, text_column
from roadstead.traces.importing import ImportResult

REASON_COLUMNS = (text_column("reason"), Column("rows"), text_column("first"))


def print_import(console: Console, result: ImportResult) -> None:
    """Print counts, the reasons of rows that were left out, and notes."""
    console.print(
        f"{result.source}: {result.pods:,} pods of {result.classes:,} classes, "
        f"{result.nodes:,} nodes, from {result.rows:,} rows",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    if result.left_out:
        reasons = sorted(result.left_out.items(), key=lambda item: (-item[1].count, item[0]))
        rows = [
            (reason, f"{rows_of_reason.count:,}", rows_of_reason.first)
            for reason, rows_of_reason in reasons
        ]
        print_table(console, "Left out", REASON_COLUMNS, rows)
    for note in result.notes:
        console.print(f"\nNote: {note}", markup=False, highlight=False, soft_wrap=True)
    if not result.pods:
        console.print("\nNote: the trace has no pods.", markup=False, highlight=False)
    console.print(
        f"\ncontent sha256\n  {result.digest}", markup=False, highlight=False, soft_wrap=True
    )


def import_json(result: ImportResult) -> str:
    """Return the result as JSON."""
    left_out = [
        {"reason": reason, "rows": rows_of_reason.count, "first": rows_of_reason.first}
        for reason, rows_of_reason in result.left_out.items()
    ]
    document = {
        "source": result.source,
        "rows": result.rows,
        "nodes": result.nodes,
        "pods": result.pods,
        "classes": result.classes,
        "leftOut": left_out,
        "notes": list(result.notes),
        "sha256": result.digest,
    }
    return json.dumps(document, indent=2)
