"""Printing of a plugin's checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from roadstead.cli.options import OutputFormat
from roadstead.cli.plugin.listing import in_running_order
from roadstead.cli.plugin.outcome import CheckOutcome
from roadstead.cli.plugin.testing import PluginTest
from roadstead.cli.result_forms import print_json
from roadstead.protocol.errors import InputError, cut_short, printable
from roadstead.report.text_table import Cells, Column, print_table, text_column

_STYLES: Mapping[CheckOutcome, str] = {
    CheckOutcome.OK: "green",
    CheckOutcome.WARNING: "yellow",
    CheckOutcome.FAILED: "bold red",
}


def read_args(typed: str | None) -> object:
    """Parse the plugin's arguments. Raises InputError unless they are JSON."""
    if typed is None:
        return None
    try:
        return json.loads(typed)
    except (ValueError, RecursionError) as error:
        raise InputError("is not JSON", field="--args", value=cut_short(typed)) from error


def print_checks(path: str, test: PluginTest, output_format: OutputFormat) -> None:
    """Print the checks as a table with a verdict, or as one JSON document."""
    plugin_class, checks = test.subject.plugin_class, test.checks
    if output_format == "json":
        about = {
            "plugin": plugin_class.name,
            "path": path,
            "points": in_running_order(test.subject.points),
            "fleet": test.fleet,
        }
        print_json(about | {"checks": [asdict(check) for check in checks]})
        return
    points = ", ".join(in_running_order(test.subject.points))
    title = f"{plugin_class.name} ({points}) on {printable(test.fleet)}"
    rows: list[Cells] = [
        [
            each.name,
            Text(each.outcome, _STYLES[each.outcome]),
            f"{each.cases:,}",
            printable(each.text),
        ]
        for each in checks
    ]
    columns = [text_column("check"), text_column("outcome"), Column("cases"), text_column("what")]
    console = Console()
    print_table(console, title, columns, rows)
    console.print(Text(f"\n{_verdict([check.outcome for check in checks])}"))


def _verdict(outcomes: Sequence[CheckOutcome]) -> str:
    failed, warned = (outcomes.count(each) for each in (CheckOutcome.FAILED, CheckOutcome.WARNING))
    if failed:
        return f"{failed} of {len(outcomes)} checks failed"
    if warned:
        return f"No check failed; {warned} warned (--strict: exit status 1)"
    return "All checks passed"
