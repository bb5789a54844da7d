"""Playing the runs of a scenario, with progress, and printing their figures."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from roadstead.cli.options import Form
from roadstead.config.scenario.values import time_text
from roadstead.cycle.batch import Accelerator
from roadstead.kernel.coverage import Coverage
from roadstead.kernel.start import load
from roadstead.protocol.errors import InputError
from roadstead.report.paths import entries
from roadstead.scenario.compile import load_plan
from roadstead.simulator.play import Variant, play
from roadstead.simulator.tables import COLUMNS

if TYPE_CHECKING:
    from roadstead.simulator.engine import Engine
    from roadstead.simulator.scenario import Plan
    from roadstead.simulator.summary import RunSummary

SCENARIO_FILE: Final = "scenario.yaml"
SUMMARY_FILE: Final = "summary.json"
SHOWN_US: Final = 60_000_000
LINES: Final = 10
"""Progress lines of a run if standard error is no terminal."""


def simulate(
    path: Path, output: Path | None, *, seed: int | None, is_replaced: bool, form: Form
) -> None:
    """Play the runs of a scenario one after the other; write tables, print figures."""
    plan = load_plan(path)
    directory = output or Path(f"{path.stem}.run")
    variants = variants_of(plan, seed)
    _prepare(directory, is_replaced=is_replaced)
    shutil.copyfile(path, directory / SCENARIO_FILE)
    for note in plan.notes:
        click.echo(f"note: {note}", err=True)
    accelerator = Accelerator(load(), Coverage())
    summaries = []
    for variant in variants:
        name = run_name(variant)
        with shown(plan, name) as on_step:
            summary = play(
                plan,
                variant,
                directory / name,
                accelerator,
                on_step,
                read_processor_s=time.process_time,
            )
        text = json.dumps(summary.as_json(), indent=2)
        (directory / name / SUMMARY_FILE).write_text(f"{text}\n", encoding="utf-8")
        summaries.append(summary)
    if form == "json":
        runs = [each.as_json() for each in summaries]
        click.echo(json.dumps({"directory": str(directory), "runs": runs}, indent=2))
        return
    click.echo("\n".join(summary_lines(summaries)))
    click.echo(f"\nTables: {directory}/*/{{{','.join(COLUMNS)}}}")


def variants_of(plan: Plan, seed: int | None) -> list[Variant]:
    """Return the runs of a scenario: each configuration with each seed, or with one alone."""
    seeds = plan.seeds if seed is None else (seed,)
    configs = [(each.text, each.name) for each in plan.configs] or [("", "")]
    return [Variant(each, text, name) for text, name in configs for each in seeds]


def run_name(variant: Variant) -> str:
    """Return the name of a run's folder, such as `default-0` or `binpack-3`."""
    return f"{Path(variant.config_source).stem or 'default'}-{variant.seed}"


def _prepare(directory: Path, *, is_replaced: bool) -> None:
    """Make the directory of the results. InputError if it holds something else, or results."""
    if found := entries(directory):
        is_ours = any(each.name == SCENARIO_FILE for each in found)
        if not is_ours:
            raise InputError("holds other files; name a new directory", source=str(directory))
        if not is_replaced:
            rule = "holds the results of a run (--force replaces them)"
            raise InputError(rule, source=str(directory))
        shutil.rmtree(directory)
    directory.mkdir(parents=True, exist_ok=True)


@contextmanager
def shown(plan: Plan, name: str) -> Iterator[Callable[[Engine], None]]:
    """Yield a callback that shows how far a run is: a bar on a terminal, otherwise lines."""
    import sys

    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(name, total=plan.horizon_us)
            yield lambda engine: bar.update(task, completed=engine.now_us)
        return
    step = 0

    def line(engine: Engine) -> None:
        nonlocal step
        if (reached := LINES * engine.now_us // plan.horizon_us) > step:
            step = reached
            pods = f"{engine.lives.created:,} pods"
            now_us = engine.now_us // SHOWN_US * SHOWN_US
            text = f"{name}: {time_text(now_us)} of {time_text(plan.horizon_us)}, {pods}"
            click.echo(text, err=True)

    yield line


def summary_lines(summaries: list[RunSummary]) -> Iterator[str]:
    """Yield a table with a row for each run."""
    heads = (
        "run",
        "pods",
        "bound",
        "pending",
        "running",
        "ended",
        "wait p50",
        "p99",
        "max",
        "CPU s",
    )
    rows = [heads, *(_row(each) for each in summaries)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
    for row in rows:
        first, *others = zip(row, widths, strict=True)
        cells = [f"{first[0]:<{first[1]}}", *(f"{text:>{width}}" for text, width in others)]
        yield "  ".join(cells)


def _row(summary: RunSummary) -> tuple[str, ...]:
    waits = summary.waits.quantiles_us
    return (
        f"{Path(summary.config).stem}-{summary.seed}",
        f"{summary.created:,}",
        f"{summary.bound:,}",
        f"{summary.pending:,}",
        f"{summary.running:,}",
        f"{sum(summary.endings.values()):,}",
        *(f"{waits[name] / 1e6:,.1f} s" for name in ("p50", "p99", "max")),
        f"{summary.processor_s:.1f}",
    )
