"""What an import did, as text and as JSON."""

from __future__ import annotations

import io
import json

from rich.console import Console

from roadstead.report.text_table import Column, print_table, text
from roadstead.traces.importing import ImportResult


def import_text(result: ImportResult, width: int = 80) -> str:
    """Return counts, the reasons of rows that were left out, and notes."""
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(
        f"{result.source}: {result.pods:,} pods of {result.classes:,} classes, "
        f"{result.nodes:,} nodes, from {result.rows:,} rows",
        soft_wrap=True,
    )
    if result.left_out:
        console.print("\nLeft out:")
        reasons = sorted(result.left_out.items(), key=lambda item: -item[1].count)
        print_table(
            console,
            (Column("rows"), text("reason"), text("first")),
            [(f"{found.count:,}", reason, found.first) for reason, found in reasons],
        )
    for note in result.notes:
        console.print(f"\nNote: {note}", soft_wrap=True)
    console.print(f"\ncontent sha256  {result.digest}", soft_wrap=True)
    return str(console.file.getvalue()).rstrip("\n")  # type: ignore[attr-defined]


def import_json(result: ImportResult) -> str:
    """Return the same as JSON."""
    left_out = [
        {"reason": reason, "rows": found.count, "first": found.first}
        for reason, found in result.left_out.items()
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
