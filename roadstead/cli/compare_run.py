"""Comparing two configurations or plugins on a scenario, or two finished runs or sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from roadstead.api.compared_sides import Side, sides_of
from roadstead.api.comparison_files import write_comparison
from roadstead.api.paired_runs import Comparison, compare_finished, read_group
from roadstead.api.scenario_sweep import check_new_folder
from roadstead.cli.result_forms import print_json
from roadstead.cli.session import Session
from roadstead.cli.stress_options import JobOptions
from roadstead.cli.sweep_run import SweepTarget, echo_written, run_scenarios
from roadstead.config.scenario.read import load_scenario
from roadstead.protocol.errors import InputError

SideOptions = tuple[str | None, tuple[str, ...]]
"""Options of one side: configuration, None if it is not given, and plugins."""


def play_and_compare(
    session: Session,
    path: Path,
    sides: tuple[SideOptions, SideOptions],
    plugins: Sequence[str],
    seeds: int | None,
    jobs: JobOptions,
    target: SweepTarget,
) -> None:
    """Play a scenario with two configurations or plugins, and print the differences."""
    if path.is_dir():
        raise InputError("is a folder of runs: name a second one", source=str(path))
    file = load_scenario(path)
    a, b = (Side(*each) for each in sides)
    compared = sides_of(file, a, b, seeds, _flag)
    prepared, rows, end = run_scenarios(session, file, compared.planned, plugins, jobs, target)
    comparison, groups = compared.compare(prepared, rows)
    if comparison.differences:
        if target.output is not None:
            write_comparison(target.output, comparison, groups)
        show(comparison, target, "Use --seeds N for more.")
    if end.stopped_by is not None:
        raise end.stopped_by


def _flag(name: str) -> Mapping[str, str]:
    return {"source": f"--{name}"}


def compare_folders(
    first: Path, second: Path, unused: Mapping[str, object], target: SweepTarget
) -> None:
    """Compare two finished runs or sweeps.

    unused: by flag, the values of options that have no use with finished runs; None if not given.
    """
    for flag, value in unused.items():
        if value is not None:
            raise InputError("has no use with two finished runs", source=flag)
    if target.output is not None:
        check_new_folder(target.output)
    groups = read_group(first), read_group(second)
    comparison = compare_finished(*groups)
    if comparison.left_out:
        click.echo(f"note: {comparison.left_out} runs without a partner are left out", err=True)
    if target.output is not None:
        write_comparison(target.output, comparison, groups)
    show(comparison, target, "Play the runs with more seeds.")


def show(comparison: Comparison, target: SweepTarget, remedy: str) -> None:
    """Print the differences, metric by metric, and the folder on standard error.

    remedy: what to do if there is one pair only.
    """
    if target.output_format == "json":
        print_json(comparison.document())
    else:
        from roadstead.report.paired_table import print_differences
        from roadstead.report.text_table import wide_console

        print_differences(wide_console(), comparison.a, comparison.b, comparison.differences)
        if comparison.pairs == 1:
            click.echo(f"\nOne seed: no interval is possible. {remedy}")
    if target.output is not None:
        echo_written(target.output)
