"""Comparing two configurations of a scenario, or two finished runs or sweeps."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

import click

from roadstead.api.run_check import runs_in
from roadstead.api.run_folder import read_summary
from roadstead.api.run_query import RunQuery
from roadstead.cli.options import OutputFormat
from roadstead.cli.result_forms import print_json
from roadstead.cli.session import Session
from roadstead.cli.stress_options import JobOptions
from roadstead.cli.sweeping import JSON_FILE, SweepTarget, run_scenarios, sweep_of
from roadstead.config.files import read_bytes
from roadstead.config.scenario.read import load_scenario
from roadstead.config.scenario.vary import CONFIG
from roadstead.lab.paired import Difference, compare
from roadstead.lab.statistics import Band
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.units import significant
from roadstead.simulator.metrics import RunMetrics

READ_MAX_BYTES: Final = 1 << 30
_PODS: Final = "SELECT owner, created_us, bound_us, ended_us, ending FROM pods"
_SAMPLES: Final = "SELECT zone, metric, resource, value FROM samples"

Runs = dict[Hashable, Mapping[str, float]]


def compare_configs(
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
    # A file of the command line is relative to the working directory.
    a, b = (
        str(Path(str(each)).resolve()) if Path(str(each)).is_file() else str(each)
        for each in configs
    )
    if a == b:
        raise InputError("is the same configuration as --a", source="--b", value=cut_short(b))
    file = load_scenario(path)
    vary = f"{CONFIG}={json.dumps(a)},{json.dumps(b)}"
    planned = sweep_of(file, [vary], seeds)
    rows, end = run_scenarios(
        session, file, planned, jobs, SweepTarget(output, False, output_format)
    )
    found: list[Runs] = [
        {row.seed: row.metrics for row in rows if row.values[CONFIG] == each} for each in (a, b)
    ]
    if differences := compare(*found):
        show(str(configs[0]), str(configs[1]), differences, output_format)
    if end.ended is not None:
        raise end.ended


def compare_runs(
    first: Path, second: Path, given: Mapping[str, object], output_format: OutputFormat
) -> None:
    """Compare two finished runs or sweeps. given: options that have no use with them."""
    for flag, value in given.items():
        if value is not None:
            raise InputError("has no use with two finished runs", source=flag)
    a, b = read_runs(first), read_runs(second)
    differences = compare(a, b)
    if not differences:
        rule = f"has no run with the seed and values of one in {first}"
        raise InputError(rule, source=str(second))
    if left_out := len(a.keys() ^ b.keys()):
        click.echo(f"note: {left_out} runs without a partner are left out", err=True)
    show(str(first), str(second), differences, output_format)


def read_runs(folder: Path) -> Runs:
    """Return the runs of a folder of `simulate` or `sweep`. Raises InputError.

    Their keys are seeds, and what else distinguishes the runs of one folder.
    """
    if (folder / JSON_FILE).is_file():
        return _by_seed(_read_sweep(folder / JSON_FILE))
    runs = runs_in(folder)
    if not runs:
        rule = "holds no run of `roadstead simulate` or `roadstead sweep`"
        raise InputError(rule, source=str(folder))
    return _by_seed(_read_simulated(each) for each in runs)


def _by_seed(runs: Iterable[tuple[str, int, Mapping[str, float]]]) -> Runs:
    """Key runs by seed; also by their variant, if there are several."""
    found = list(runs)
    is_one = len({variant for variant, _, _ in found}) == 1
    return {seed if is_one else (variant, seed): metrics for variant, seed, metrics in found}


def _read_sweep(path: Path) -> list[tuple[str, int, Mapping[str, float]]]:
    content = read_bytes(path, READ_MAX_BYTES)
    try:
        document = json.loads(content)
        return [
            (
                json.dumps(run["values"], sort_keys=True),
                int(run["seed"]),
                {str(name): float(value) for name, value in run["metrics"].items()},
            )
            for run in cast("list[dict[str, Any]]", document["runs"])
        ]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError("is no result of `roadstead sweep`", source=str(path)) from error


def _read_simulated(folder: Path) -> tuple[str, int, Mapping[str, float]]:
    summary = read_summary(folder)
    metrics = RunMetrics(summary.horizon_us)
    query = RunQuery(folder)
    for owner, created_us, bound_us, ended_us, ending in query.ask(_PODS).rows:
        metrics.pod(
            str(owner or ""),
            cast("int", created_us),
            cast("int | None", bound_us),
            cast("int | None", ended_us),
            cast("str | None", ending),
        )
    for zone, metric, resource, value in query.ask(_SAMPLES).rows:
        metrics.sample(str(zone or ""), str(metric), str(resource or ""), cast("float", value))
    return summary.config, summary.seed, metrics.result()


def show(a: str, b: str, differences: Sequence[Difference], output_format: OutputFormat) -> None:
    """Print the differences."""
    if output_format == "json":
        found = [
            {**asdict(each), "difference": each.difference, "verdict": each.verdict}
            for each in differences
        ]
        print_json({"a": a, "b": b, "confidence": 0.95, "metrics": found})
        return
    from rich.console import Console

    from roadstead.report.text_table import Column, print_table, text_column

    same = [each for each in differences if not each.is_different]
    columns = [text_column("metric"), *map(Column, ("A", "B", "B - A", "t interval", "bootstrap"))]
    rows = [
        [
            each.metric,
            *(significant(value, 4) for value in (each.a, each.b, each.difference)),
            *(_interval(band) for band in (each.student, each.bootstrap)),
            each.verdict,
        ]
        for each in differences
        if each not in same
    ]
    pairs = max((each.pairs for each in differences), default=0)
    title = f"A: {a}, B: {b}; {pairs} pairs, 95% intervals"
    if rows:
        print_table(Console(), title, [*columns, text_column("verdict")], rows, keys=1)
    else:
        click.echo(title)
    if same:
        click.echo(f"\nThe same in every pair: {', '.join(each.metric for each in same)}.")
    if pairs == 1:
        click.echo("\nOne seed: no interval is possible. Use --seeds N for more.")


def _interval(band: Band | None) -> str:
    if band is None:
        return "–"
    return f"{significant(band.low, 3)} to {significant(band.high, 3)}"
