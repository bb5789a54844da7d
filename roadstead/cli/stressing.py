"""Carrying out a sweep and printing its result."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click

from roadstead.cli.notes import echo_note
from roadstead.cli.options import SourceOptions
from roadstead.cli.result_forms import print_json
from roadstead.cli.scheduling import ResultTarget
from roadstead.cli.session import Session
from roadstead.cli.stress_plan import (
    PRODUCT,
    Asked,
    of_file,
    of_preset,
    pair,
    study_of,
    sweep_of,
    with_flags,
)
from roadstead.lab.recommend import COMPARED_METRICS, Recommendation, recommend
from roadstead.lab.sweep import Sweep, SweepResult, run_sweep
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.result import installed_versions
from roadstead.report.units import significant

if TYPE_CHECKING:
    from roadstead.cli.stress_options import SweepOptions
    from roadstead.lab.statistics import Band
    from roadstead.lab.studies import Study
    from roadstead.report.result import InputDigest
    from roadstead.report.stress_output import Origin

SHOWN_FIGURES = 4
NOTES = {
    "virtual": "Virtual time counts messages and simulated decisions, not computing: "
    "for throughput, use the engine ray.",
    "inline": "Inline, all actors share one core: for throughput, use the engine ray.",
}
"""Notes on the basis of a recommendation, by engine."""

MINUTE_S = 60.0
LINES = 20
"""Maximum number of progress lines of a sweep, if standard error is no terminal."""


def stress(
    session: Session, options: SweepOptions, source: SourceOptions, report: ResultTarget
) -> None:
    """Run a sweep, write the output directory, print the result."""
    from roadstead.report.stress_output import check_stress_directory, write_stress

    if report.output is not None:
        check_stress_directory(report.output)
    asked = asked_of(options)
    product = _product(session, asked, source, report.output)
    sweep = sweep_of(asked, study_of(asked, product))
    busy = busy_note(asked.engine, os.getloadavg()[0], os.cpu_count() or 1)
    swept = run_sweep(sweep, ProgressLine())
    idle = idle_note(swept)
    advice = advise(swept, asked.engine, busy, idle)
    if report.output is not None:
        command = shlex.join(("roadstead", *session.args))
        origin = _origin(asked.engine, sweep.study)
        write_stress(report.output, swept, command, installed_versions(), advice, origin)
    show(swept, advice, report)
    if idle and advice is None:
        echo_note(f"note: {idle}")
    if swept.ended is not None:
        click.echo(f"Incomplete sweep: {len(swept.rows)} of at most {sweep.size} runs", err=True)
        raise swept.ended


def asked_of(options: SweepOptions) -> Asked:
    """The sweep that the options define. Raises InputError if they contradict each other."""
    if options.preset is not None and options.file is not None:
        raise click.UsageError("--preset and --file exclude each other")
    if options.preset is not None:
        asked = of_preset(options.preset)
    elif options.file is not None:
        asked = of_file(options.file)
    else:
        asked = Asked()
    if options.study is not None and options.study != asked.study:
        asked = replace(asked, study=options.study, vary={}, set={}, engine="", title="")
    asked = replace(
        asked,
        engine=_engine(options.engine or asked.engine, asked),
        seeds=options.seeds or asked.seeds,
        first_seed=options.first_seed or asked.first_seed,
    )
    return with_flags(asked, [pair(each) for each in options.vary], options.flags())


def _engine(named: str, asked: Asked) -> str:
    engine = named or ("inline" if asked.study == PRODUCT else "model")
    if (engine == "model") == (asked.study == PRODUCT):
        wanted = "virtual, inline or ray" if asked.study == PRODUCT else "model"
        raise InputError(
            f"must be {wanted} for the study {asked.study}",
            source=asked.source,
            field="engine",
            value=cut_short(engine),
        )
    return engine


def _product(
    session: Session, asked: Asked, source: SourceOptions, output: Path | None
) -> Study | None:
    if asked.study != PRODUCT:
        return None
    from roadstead.cli.stress_product import product_study

    return product_study(session, asked, source, output)


def busy_note(engine: str, load: float, cores: int) -> str:
    """A note if the machine was busy before runs in real time; "" otherwise."""
    if engine not in ("inline", "ray") or load < cores:
        return ""
    return (
        f"The machine was busy before the sweep began (load {load:.1f} on {cores} cores): "
        "its throughput is not reliable."
    )


def idle_note(swept: SweepResult) -> str:
    """A note if one batch contains all pods, so that a single scheduler leases them; "" otherwise.

    Such a run has no conflicts, whatever else is swept.
    """
    for row in swept.rows:
        if swept.sweep.study.name != PRODUCT or float(row.values["schedulers"]) < 2:
            continue
        pods, batch = row.metrics["placed"] + row.metrics["pending"], float(row.values["batch"])
        if pods <= batch:
            return (
                f"A batch of {batch:,.0f} holds all {pods:,.0f} pods: one scheduler leases them "
                "all, so that no conflict is possible. Use a smaller --batch."
            )
    return ""


def _origin(engine: str, study: Study) -> Origin:
    """The origin of a sweep, recorded so that it can be repeated."""
    from roadstead.bench.machine import commit_of, this_machine
    from roadstead.report.stress_output import Origin

    inputs: tuple[InputDigest, ...] = getattr(study.run, "digests", ())
    return Origin(engine, inputs, asdict(this_machine()), commit_of(Path(__file__).parent))


def advise(swept: SweepResult, engine: str, *more: str) -> Recommendation | None:
    """Recommend a combination, if the product was swept over more than one.

    more: notes on its basis, "" for none.
    """
    points = swept.points()
    if len(points) < 2 or any(name not in points[0].bands for name in COMPARED_METRICS):
        return None
    if any(name == "recheck" for name, _ in swept.sweep.axes):
        return None
    advice = recommend(points)
    notes = [each for each in (NOTES.get(engine, ""), *more) if each]
    return replace(advice, reasons=(*advice.reasons, *notes))


def show(swept: SweepResult, advice: Recommendation | None, report: ResultTarget) -> None:
    """Print the result on standard output, and the output directory on standard error."""
    from roadstead.report.stress_output import points_document

    if report.form == "json":
        print_json(points_document(swept, advice))
    else:
        _print_table(swept, advice)
    if report.output is not None:
        click.echo(f"\nWritten to {report.output}", err=True)


def _print_table(swept: SweepResult, advice: Recommendation | None) -> None:
    from rich.console import Console
    from rich.text import Text

    from roadstead.report.stress_plots import plain
    from roadstead.report.text_table import Column, indented, print_table, text

    names = [name for name, _ in swept.sweep.axes]
    points = swept.points()
    shown = [name for name in swept.sweep.study.metrics if name in points[0].bands]
    shown = shown[:SHOWN_FIGURES]
    columns = [*(text(plain(name)) for name in names), *(Column(plain(name)) for name in shown)]
    rows = [
        [
            *(str(point.values[name]) for name in names),
            *(_cell(point.bands[name]) for name in shown),
        ]
        for point in points
    ]
    console = Console()
    print_table(console, swept.sweep.title, columns, rows, keys=max(1, len(names)))
    console.print(Text("\n").join(indented(console, Text(_legend(swept.sweep)))))
    if advice is not None:
        console.print(Text(f"\n{advice.headline}", style="bold"))
        for reason in advice.reasons:
            console.print(Text("\n").join(indented(console, Text(reason))))


def _legend(sweep: Sweep) -> str:
    """A legend of a table: seeds, meaning of ±, and the parameters set for all runs."""
    first, *others = sweep.seeds
    means = (
        f"Means over seeds {first} to {others[-1]}; ±: half of the 95% interval."
        if others
        else f"One seed ({first}): no intervals."
    )
    fixed = ", ".join(f"{name} {value}" for name, value in sweep.fixed.items())
    return f"{means} Set: {fixed}." if fixed else means


def _cell(band: Band) -> str:
    half = (band.high - band.low) / 2
    mean = significant(band.mean, 3)
    return f"{mean} ±{significant(half, 1)}" if half else mean


class ProgressLine:
    """Progress on standard error: one changing line on a terminal, otherwise some lines."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._began_s = clock, clock()
        self._step = -1
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, done: int, total: int, now: str) -> None:
        text = f"run {done + 1} of {total}{self._left(done, total)}: {now}"
        if self._is_terminal:
            # A wrapped line would leave its first part behind at each change.
            shown = text[: max(1, shutil.get_terminal_size().columns - 1)]
            click.echo(f"\r\033[K{shown}", nl=done + 1 == total, err=True)
        elif done * LINES // total > self._step:
            self._step = done * LINES // total
            click.echo(text, err=True)

    def _left(self, done: int, total: int) -> str:
        """The estimated remaining time; "" before the first run has ended, or below a minute."""
        if not done:
            return ""
        left_s = (self._clock() - self._began_s) * (total - done) / done
        return f", about {left_s / MINUTE_S:.0f} min left" if left_s >= MINUTE_S else ""
