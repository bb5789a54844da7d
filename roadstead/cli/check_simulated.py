"""Printing what is found in the tables of simulated runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from roadstead.api.run_check import check_folder
from roadstead.cli.errors import FAILED
from roadstead.cli.options import OutputFormat


def check_simulated(runs: Sequence[Path], show: int, output_format: OutputFormat) -> None:
    """Check simulated runs and print what was found; exit status 1 if a rule is violated."""
    checks = [check_folder(run) for run in runs]
    if output_format == "json":
        documents = [
            {
                "run": str(each.run),
                "pods": each.pods,
                "violations": [asdict(violation) for violation in each.violations],
            }
            for each in checks
        ]
        click.echo(json.dumps({"runs": documents}, indent=2))
    else:
        for each in checks:
            shown = each.violations[: show or None]
            for violation in shown:
                click.echo(f"{violation.rule}  {violation.subject}: {violation.text}")
            if len(shown) < len(each.violations):
                left_out = len(each.violations) - len(shown)
                click.echo(f"... and {left_out:,} more (--show 0 for all)")
            count = len(each.violations) or "no"
            click.echo(f"{each.run}: {each.pods:,} pods checked: {count} violations")
    if any(each.violations for each in checks):
        raise click.exceptions.Exit(FAILED)
