"""Playing the runs of a scenario, with progress, and printing their figures."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

import click

from roadstead.api.plugin_failures import simulated_failure_notes
from roadstead.api.run_folder import COMPARISON_FILE, RECORD_FILE, REPORT_FILE
from roadstead.api.simulated_report import HEADS, summary_row, wait_text, write_report
from roadstead.api.simulation_steps import (
    Simulation,
    play_all,
    prepare_folder,
    prepare_simulation,
    recorded_simulation,
)
from roadstead.cli.notes import echo_note
from roadstead.cli.options import OutputFormat
from roadstead.config.scenario.read import load_scenario
from roadstead.config.scenario.values import time_text
from roadstead.interruption import Interrupted
from roadstead.protocol.errors import InputError
from roadstead.simulator.tables import COLUMNS

if TYPE_CHECKING:
    from rich.console import Console

    from roadstead.api.paired_runs import Comparison
    from roadstead.simulator.engine import Engine
    from roadstead.simulator.play import Variant
    from roadstead.simulator.summary import RunSummary, Waits

TIME_STEP_US: Final = 60_000_000
"""Simulated times are shown in whole minutes."""

STEPS: Final = 10
"""Equal steps of a run, if standard error is no terminal: a line is printed after each."""

SILENT_MAX_S: Final = 15.0
"""Real time after which a line is printed in the middle of a step, too."""

FAILURES_SHOWN: Final = 10
"""Maximum number of messages of failed plugins."""

PAIRS_SHOWN: Final = 6
"""Maximum number of pairs of configurations that are printed: all pairs of four configurations."""

OWNERS_MAX: Final = 50
"""Maximum number of rows of the table of waits by owner."""


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """The options of the command. seed: None for all seeds of the scenario."""

    output: Path | None
    seed: int | None
    may_replace: bool
    is_resumed: bool
    is_wide: bool
    output_format: OutputFormat


def simulate(path: Path, plugins: Sequence[str], options: SimulateOptions) -> None:
    """Play the runs of a scenario one after the other; write tables, print figures."""
    simulation, folder, variants = _prepared(path, plugins, options)
    replaces, resumes = options.may_replace, options.is_resumed
    prepare_folder(simulation, folder, variants, may_replace=replaces, is_resumed=resumes)
    for note in simulation.plan.notes:
        echo_note(f"note: {note}")
    try:
        with shown_runs(simulation.plan.horizon_us, len(variants)) as on_progress:
            played = play_all(simulation, folder, variants, on_progress, on_note=echo_note)
            summaries = list(played)
        compared = write_report(folder, [*variants], summaries)
    except Interrupted as interrupted:
        interrupted.kept = (
            f"Finished runs and whole parts of tables are in {folder}; the same command with "
            "--resume continues."
        )
        raise
    # A failing plugin does not end a simulation: its pods wait, and only the tables would show
    # why.
    if simulation.chosen.types:
        failures = simulated_failure_notes(folder / name for name in variants)
        for text in islice(failures, FAILURES_SHOWN):
            echo_note(f"note: {text}")
    by_name = dict(zip(variants, summaries, strict=True))
    if options.output_format == "json":
        runs = [{"run": name, **each.as_json()} for name, each in by_name.items()]
        document: dict[str, object] = {"directory": str(folder), "runs": runs}
        if compared:
            document["comparisons"] = [each.document() for each in compared]
        click.echo(json.dumps(document, indent=2))
        return
    from roadstead.report.text_table import wide_console

    console = wide_console()
    print_summaries(console, by_name)
    if options.is_wide:
        print_waits(console, by_name)
    print_comparisons(console, compared)
    click.echo(f"\nTables: {folder}/*/{{{','.join(COLUMNS)}}}", err=True)
    click.echo(f"Report: {folder}/{REPORT_FILE}", err=True)


def _prepared(
    path: Path, plugins: Sequence[str], options: SimulateOptions
) -> tuple[Simulation, Path, dict[str, Variant]]:
    """Return the simulation, the folder of its runs, and the runs to play. Raises InputError."""
    # The folder records the scenario and seeds that it was played with; others would mix two runs
    # in one folder.
    if options.is_resumed and path.is_dir():
        if options.output is not None or options.seed is not None:
            problem = "exclude a folder of runs as SCENARIO"
            raise InputError(problem, source="command line", field="--output and --seed")
        simulation = recorded_simulation(path, plugins)
        return simulation, path, simulation.recorded_variants(path)
    if (path / RECORD_FILE).is_file():
        problem = "is a folder of runs: name its scenario, or continue its runs with --resume"
        raise InputError(problem, source=str(path))
    simulation = prepare_simulation(load_scenario(path), plugins)
    folder = options.output or Path(f"{path.stem}.run")
    return simulation, folder, simulation.variants(options.seed)


@contextmanager
def shown_runs(
    horizon_us: int, runs: int, clock_s: Callable[[], float] = monotonic
) -> Iterator[Callable[[str, Engine], None]]:
    """Yield a callback that shows how far each run is: a bar on a terminal, otherwise lines.

    runs: their number. clock_s: returns the real time.
    """
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[at]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            tasks: dict[str, TaskID] = {}

            def show(name: str, engine: Engine) -> None:
                if name not in tasks:
                    description = f"{name} ({len(tasks) + 1} of {runs})"
                    tasks[name] = bars.add_task(description, total=horizon_us, at="")
                bars.update(tasks[name], completed=engine.now_us, at=_reached(engine, horizon_us))

            yield show
        return
    # Name of a run → number of its steps for which a line was printed.
    steps: dict[str, int] = {}
    printed_s = clock_s()

    def print_line(name: str, engine: Engine) -> None:
        nonlocal printed_s
        step = STEPS * engine.now_us // horizon_us
        if step > steps.get(name, 0) or clock_s() - printed_s >= SILENT_MAX_S:
            steps[name], printed_s = step, clock_s()
            click.echo(f"{name}: {_reached(engine, horizon_us)}", err=True)

    yield print_line


def _reached(engine: Engine, horizon_us: int) -> str:
    """Return how far a run is: the simulated time, and the number of created pods."""
    now_us = engine.now_us // TIME_STEP_US * TIME_STEP_US
    return f"{time_text(now_us)} of {time_text(horizon_us)}, {engine.simulated_pods.created:,} pods"


def print_summaries(console: Console, summaries: Mapping[str, RunSummary]) -> None:
    """Print a table with a row for each run."""
    from roadstead.protocol.errors import printable
    from roadstead.report.text_table import Column, print_table, text_column

    rows = [
        (*map(printable, summary_row(name, each)), f"{each.processor_s:.1f}")
        for name, each in summaries.items()
    ]
    columns = [text_column("run"), *map(Column, HEADS[1:]), Column("CPU s")]
    print_table(console, "Pods at the horizon, and waits from creation to bind", columns, rows)


def print_comparisons(console: Console, compared: Sequence[Comparison]) -> None:
    """Print the paired differences of each two configurations."""
    from roadstead.report.paired_table import print_differences

    for each in compared[:PAIRS_SHOWN]:
        print_differences(console, each.a, each.b, each.differences)
    if len(compared) > PAIRS_SHOWN:
        more = len(compared) - PAIRS_SHOWN
        click.echo(f"\n… and {more} more pairs of configurations; {COMPARISON_FILE} has all")
    if compared and compared[0].pairs == 1:
        click.echo("\nOne seed: no interval is possible. More seeds in the scenario give one.")


def print_waits(console: Console, summaries: Mapping[str, RunSummary]) -> None:
    """Print the waits of each run by owner, the longest p99 first."""
    from roadstead.protocol.errors import printable
    from roadstead.report.text_table import Column, print_table, text_column

    # Headings of the quantiles of waits (p50, …); those before them are the run and its counts.
    quantiles = HEADS[6:]
    columns = [text_column("owner"), Column("bound"), *map(Column, quantiles)]
    for name, summary in summaries.items():
        owners = sorted(summary.waits_of.items(), key=_longest_first)
        rows = [
            (
                printable(owner) or "(none)",
                f"{waits.pods:,}",
                *(wait_text(waits.quantiles_us[each]) for each in quantiles),
            )
            for owner, waits in owners[:OWNERS_MAX]
        ]
        more = len(owners) - OWNERS_MAX
        left_out = f"… and {more:,} more owners; --format json has all" if more > 0 else ""
        title = f"Waits from creation to bind, {printable(name)}"
        print_table(console, title, columns, rows, left_out=left_out)


def _longest_first(owner_waits: tuple[str, Waits]) -> tuple[int, str]:
    owner, waits = owner_waits
    return -waits.quantiles_us["p99"], owner
