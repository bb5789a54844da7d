"""Carrying out a sweep and printing its result.

A point of the result is one combination of values, with the mean of each metric over its runs and
its confidence interval (band).
"""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from roadstead.cli.notes import echo_note
from roadstead.cli.options import SourceOptions
from roadstead.cli.result_forms import print_json
from roadstead.cli.schedule_run import ResultTarget
from roadstead.cli.session import Session
from roadstead.cli.stress_options import JobOptions
from roadstead.cli.stress_plan import (
    PRODUCT,
    SweepDefinition,
    file_definition,
    preset_definition,
    split_pair,
    study_of,
    sweep_of,
    with_flags,
)
from roadstead.cli.stress_product import product_study
from roadstead.cli.stress_runs import check_jobs, report_kept_results, run_all
from roadstead.lab.recommend import COMPARED_METRICS, Recommendation, recommend
from roadstead.lab.sweep import LabSweepResult, Sweep, sweep_result
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.result import installed_versions
from roadstead.report.units import significant

if TYPE_CHECKING:
    from roadstead.cli.stress_options import SweepOptions
    from roadstead.inputs.loaded import Loaded
    from roadstead.lab.statistics import Band
    from roadstead.report.stress_output import Origin

METRICS_SHOWN = 4
"""Maximum number of metrics in the table on the terminal."""

NOTES = {
    "virtual": "Virtual time counts messages and simulated decisions, not computing: "
    "for throughput, use the engine ray.",
    "inline": "Inline, all actors share one core: for throughput, use the engine ray.",
}
"""Notes on the basis of a recommendation, by engine."""


def stress(
    session: Session,
    options: SweepOptions,
    source: SourceOptions,
    target: ResultTarget,
    jobs: JobOptions,
) -> None:
    """Run a sweep, write the output directory, print the result."""
    from roadstead.report.stress_output import check_stress_directory, write_stress

    definition = definition_of(options)
    check_jobs(definition.engine, jobs, target.output)
    if target.output is not None:
        check_stress_directory(target.output, is_resumed=jobs.resume)
    loaded = _loaded(definition, source)
    product = product_study(definition, loaded) if definition.study == PRODUCT else None
    sweep = sweep_of(definition, study_of(definition, product))
    # The load is read before the sweep, which is a load itself.
    busy = busy_note(definition.engine, os.getloadavg()[0], os.cpu_count() or 1)
    end = run_all(session, definition, sweep, loaded, target.output, jobs)
    report_kept_results(end, target.output)
    result = sweep_result(sweep, end.results, end.stopped_by)
    idle = idle_note(result)
    advice = advise(result, definition.engine, busy, idle)
    if target.output is not None:
        command = shlex.join(("roadstead", *session.args))
        origin = _origin(definition.engine, loaded)
        write_stress(target.output, result, command, installed_versions(), advice, origin)
    show(result, advice, target)
    if idle and advice is None:
        echo_note(f"note: {idle}")
    if result.stopped_by is not None:
        click.echo(f"Incomplete sweep: {len(result.rows)} of at most {sweep.size} runs", err=True)
        raise result.stopped_by


def definition_of(options: SweepOptions) -> SweepDefinition:
    """Return the sweep that the options define.

    Raises InputError for unknown names, UsageError for options that exclude each other.
    """
    if options.preset is not None and options.file is not None:
        raise click.UsageError("--preset and --file exclude each other")
    if options.preset is not None:
        definition = preset_definition(options.preset)
    elif options.file is not None:
        definition = file_definition(options.file)
    else:
        definition = SweepDefinition()
    # Parameters, engine and title of the file or preset are those of its own study.
    if options.study is not None and options.study != definition.study:
        definition = replace(definition, study=options.study, vary={}, set={}, engine="", title="")
    definition = replace(
        definition,
        engine=_engine(options.engine or definition.engine, definition),
        seeds=options.seeds or definition.seeds,
        first_seed=options.first_seed or definition.first_seed,
    )
    return with_flags(definition, [split_pair(each) for each in options.vary], options.flags())


def _engine(chosen: str, definition: SweepDefinition) -> str:
    """Return the chosen engine, or the default one.

    Raises InputError if the study cannot run on the chosen engine.
    """
    engine = chosen or ("inline" if definition.study == PRODUCT else "model")
    if (engine == "model") == (definition.study == PRODUCT):
        wanted = "virtual, inline or ray" if definition.study == PRODUCT else "model"
        raise InputError(
            f"must be {wanted} for the study {definition.study}",
            source=definition.source,
            field="engine",
            value=cut_short(engine),
        )
    return engine


def _loaded(definition: SweepDefinition, source: SourceOptions) -> Loaded | None:
    """Read the user's input; None for a model, and for a sweep over a generated scenario."""
    if definition.study != PRODUCT or (source.trace is None and not source.cluster):
        return None
    from roadstead.cli.sources import load

    return load(source, with_digests=True)


def busy_note(engine: str, load: float, cores: int) -> str:
    """Return a note if the machine was busy before runs in real time; "" otherwise."""
    if engine not in ("inline", "ray") or load < cores:
        return ""
    return (
        f"The machine was busy before the sweep began (load {load:.1f} on {cores} cores): "
        "its throughput is not reliable."
    )


def idle_note(result: LabSweepResult) -> str:
    """Return a note if one batch contains all pods of a run; "" otherwise.

    One scheduler then leases all pods, so the others cannot conflict with it.
    """
    for row in result.rows:
        if result.sweep.study.name != PRODUCT or float(row.values["schedulers"]) < 2:
            continue
        pods, batch = row.metrics["placed"] + row.metrics["pending"], float(row.values["batch"])
        if pods <= batch:
            return (
                f"A batch of {batch:,.0f} holds all {pods:,.0f} pods: one scheduler leases them "
                "all, so that no conflict is possible. Use a smaller --batch."
            )
    return ""


def _origin(engine: str, loaded: Loaded | None) -> Origin:
    """Return the origin of a sweep, recorded so that it can be repeated."""
    from roadstead.bench.machine import commit_of, this_machine
    from roadstead.report.stress_output import Origin

    # A scenario has no input: its seed generates it.
    inputs = () if loaded is None else loaded.digests
    return Origin(engine, inputs, asdict(this_machine()), commit_of(Path(__file__).parent))


def advise(result: LabSweepResult, engine: str, *more_notes: str) -> Recommendation | None:
    """Recommend a combination, if Roadstead itself was swept over more than one.

    more_notes: on the basis of the recommendation; "" for none.
    """
    points = result.points()
    # A recommendation compares placed pods, throughput, score regret and conflicts.
    if len(points) < 2 or any(name not in points[0].bands for name in COMPARED_METRICS):
        return None
    # `recheck` sets which checks the binder makes; a binder that omits some is only for the lab.
    if any(name == "recheck" for name, _ in result.sweep.axes):
        return None
    advice = recommend(points)
    notes = [each for each in (NOTES.get(engine, ""), *more_notes) if each]
    return replace(advice, reasons=(*advice.reasons, *notes))


def show(result: LabSweepResult, advice: Recommendation | None, target: ResultTarget) -> None:
    """Print the result on standard output, and the output directory on standard error."""
    from roadstead.report.stress_output import points_document

    if target.output_format == "json":
        print_json(points_document(result, advice))
    else:
        _print_table(result, advice)
    if target.output is not None:
        click.echo(f"\nWritten to {target.output}", err=True)


def _print_table(result: LabSweepResult, advice: Recommendation | None) -> None:
    from rich.console import Console
    from rich.text import Text

    from roadstead.report.stress_plots import readable_name
    from roadstead.report.text_table import Column, indented, print_table, text_column

    names = [name for name, _ in result.sweep.axes]
    points = result.points()
    shown = [name for name in result.sweep.study.metrics if name in points[0].bands]
    shown = shown[:METRICS_SHOWN]
    columns = [
        *(text_column(readable_name(name)) for name in names),
        *(Column(readable_name(name)) for name in shown),
    ]
    rows = [
        [
            *(str(point.values[name]) for name in names),
            *(_cell(point.bands[name]) for name in shown),
        ]
        for point in points
    ]
    console = Console()
    print_table(console, result.sweep.title, columns, rows, keys=max(1, len(names)))
    console.print(Text("\n").join(indented(console, Text(_legend(result.sweep)))))
    if advice is not None:
        console.print(Text(f"\n{advice.headline}", style="bold"))
        for reason in advice.reasons:
            console.print(Text("\n").join(indented(console, Text(reason))))


def _legend(sweep: Sweep) -> str:
    """Return the legend of a table: seeds, meaning of ±, parameters that are equal in all runs."""
    first, *more = sweep.seeds
    means = (
        f"Means over seeds {first} to {more[-1]}; ±: half of the 95% interval."
        if more
        else f"One seed ({first}): no intervals."
    )
    fixed = ", ".join(f"{name} {value}" for name, value in sweep.fixed.items())
    return f"{means} Set: {fixed}." if fixed else means


def _cell(band: Band) -> str:
    half = (band.high - band.low) / 2
    mean = significant(band.mean, 3)
    return f"{mean} ±{significant(half, 1)}" if half else mean
