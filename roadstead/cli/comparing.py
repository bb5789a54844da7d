"""Comparing two configurations of a scenario, or two finished runs or sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from roadstead.api.comparison import (
    Comparison,
    compare_configs,
    compare_runs,
    config_value,
    read_runs,
)
from roadstead.api.scenario_sweep import sweep_of
from roadstead.cli.options import OutputFormat
from roadstead.cli.result_forms import print_json
from roadstead.cli.session import Session
from roadstead.cli.stress_options import JobOptions
from roadstead.cli.sweeping import SweepTarget, run_scenarios
from roadstead.config.scenario.read import load_scenario
from roadstead.config.scenario.vary import CONFIG, axis_of
from roadstead.lab.statistics import Band
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.units import significant


def play_and_compare(
    session: Session,
    path: Path,
    configs: tuple[str | None, str | None],
    seeds: int | None,
    jobs: JobOptions,
    output: Path | None,
    output_format: OutputFormat,
) -> None:
    """Play a scenario with two configurations and print the differences."""
    for flag, given in zip(("--a", "--b"), configs, strict=True):
        if given is None:
            rule = "is missing: name both configurations, or a second run"
            raise InputError(rule, source=flag)
    names = str(configs[0]), str(configs[1])
    a, b = map(config_value, names)
    if a == b:
        raise InputError("is the same configuration as --a", source="--b", value=cut_short(b))
    file = load_scenario(path)
    # A sweep over one axis: the configuration.
    planned = sweep_of(file, [axis_of(file, CONFIG, (a, b))], seeds)
    target = SweepTarget(output, has_tables=False, output_format=output_format)
    rows, end = run_scenarios(session, file, planned, jobs, target)
    found = compare_configs(names, (a, b), rows)
    if found.differences:
        show(found, output_format)
    if end.stopped_by is not None:
        raise end.stopped_by


def compare_finished(
    first: Path, second: Path, given: Mapping[str, object], output_format: OutputFormat
) -> None:
    """Compare two finished runs or sweeps.

    given: by flag, the values of options that have no use with finished runs; None if not given.
    """
    for flag, value in given.items():
        if value is not None:
            raise InputError("has no use with two finished runs", source=flag)
    found = compare_runs((str(first), read_runs(first)), (str(second), read_runs(second)))
    if found.left_out:
        click.echo(f"note: {found.left_out} runs without a partner are left out", err=True)
    show(found, output_format)


def show(found: Comparison, output_format: OutputFormat) -> None:
    """Print the differences, metric by metric."""
    if output_format == "json":
        print_json(found.document())
        return
    from rich.console import Console

    from roadstead.report.text_table import Column, print_table, text_column

    same = [each for each in found.differences if not each.is_different]
    columns = [text_column("metric"), *map(Column, ("A", "B", "B - A", "t interval", "bootstrap"))]
    rows = [
        [
            each.metric,
            *(significant(value, 4) for value in (each.a, each.b, each.difference)),
            # Student's t interval, and that of resampled pairs.
            *(_interval(band) for band in (each.student, each.bootstrap)),
            each.verdict,
        ]
        for each in found.differences
        if each not in same
    ]
    title = f"A: {found.a}, B: {found.b}; {found.pairs} pairs, 95% intervals"
    if rows:
        print_table(Console(), title, [*columns, text_column("verdict")], rows, keys=1)
    else:
        click.echo(title)
    if same:
        click.echo(f"\nThe same in every pair: {', '.join(each.metric for each in same)}.")
    if found.pairs == 1:
        click.echo("\nOne seed: no interval is possible. Use --seeds N for more.")


def _interval(band: Band | None) -> str:
    if band is None:
        return "–"
    return f"{significant(band.low, 3)} to {significant(band.high, 3)}"
