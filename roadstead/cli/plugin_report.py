"""The checks of a plugin as they are printed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from roadstead.cli.options import Form
from roadstead.cli.plugin_list import in_order
from roadstead.cli.plugin_outcome import Outcome
from roadstead.cli.plugin_trial import Trial
from roadstead.cli.result_forms import print_json
from roadstead.protocol.errors import InputError, cut_short, printable

_STYLES: Mapping[Outcome, str] = {
    Outcome.OK: "green",
    Outcome.WARNING: "yellow",
    Outcome.FAILED: "bold red",
}


def read_args(text: str | None) -> object:
    """Arguments as typed. InputError for what is not JSON."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("is not JSON", field="--args", value=cut_short(text)) from error


def print_checks(path: str, trial: Trial, form: Form) -> None:
    """The checks as a table with a verdict, or as one JSON document."""
    kind, checks = trial.subject.kind, trial.checks
    if form == "json":
        about = {
            "plugin": kind.name,
            "path": path,
            "points": in_order(trial.subject.points),
            "fleet": trial.fleet,
        }
        print_json(about | {"checks": [asdict(check) for check in checks]})
        return
    title = f"{kind.name} ({', '.join(in_order(trial.subject.points))}) on {printable(trial.fleet)}"
    grid = Grid(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    grid.add_column("check")
    grid.add_column("outcome")
    grid.add_column("cases", justify="right")
    grid.add_column("what", overflow="fold")
    for check in checks:
        style = _STYLES[check.outcome]
        cases = f"{check.cases:,}"
        grid.add_row(check.name, Text(check.outcome, style), cases, Text(printable(check.text)))
    console = Console()
    console.print(grid)
    console.print(_verdict([check.outcome for check in checks]))


def _verdict(outcomes: Sequence[Outcome]) -> str:
    failed, warned = (outcomes.count(each) for each in (Outcome.FAILED, Outcome.WARNING))
    if failed:
        return f"{failed} of {len(outcomes)} checks failed"
    if warned:
        return f"No check failed; {warned} warned (--strict: exit status 1)"
    return "All checks passed"
