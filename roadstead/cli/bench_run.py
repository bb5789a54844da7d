"""Running benchmarks and printing their results.

The script of a workload has its objects and the steps of a run. An interval is a part of a run that
is measured.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from roadstead import __version__
from roadstead.api.plan import ConfigText
from roadstead.bench.catalog import CatalogEntry, built_in, choose, of_file
from roadstead.bench.machine import commit_of, reset_peak_memory, this_machine
from roadstead.bench.metrics import BenchMetrics, WorkloadResult, metrics_of, workload_result
from roadstead.bench.result import Json, compare, headline, read_result, result_document
from roadstead.bench.script import Script
from roadstead.bench.speedscope import Samples, speedscope_document
from roadstead.cli import plan as plans
from roadstead.cli.concurrency_options import ConcurrencyOptions
from roadstead.cli.options import RunOptions
from roadstead.cli.progress import shown_progress
from roadstead.cli.result_forms import print_json
from roadstead.cli.schedule_run import write_text
from roadstead.cli.session import Session
from roadstead.config.settings import Settings
from roadstead.run import RunPlan


@dataclass(frozen=True, slots=True)
class BenchSelection:
    """The workloads to run, and how.

    names: of the workloads; empty for all that upstream measures, or all of `file`. file: workloads
    in place of the included ones. openb: the trace of workload openb. runs: of each workload.
    profiles: whether the processes are sampled for a profile.
    """

    names: tuple[str, ...]
    file: Path | None
    openb: Path | None
    runs: int
    timeout_s: float
    profiles: bool

    def known(self, seed: int = 0) -> list[CatalogEntry]:
        """Return the workloads that can be selected."""
        return of_file(self.file) if self.file is not None else built_in(seed, self.openb)

    def entries(self, seed: int) -> list[CatalogEntry]:
        """The selected workloads, in order. Raises InputError for a name that matches nothing."""
        known = self.known(seed)
        if self.names:
            return choose(known, self.names)
        return [each for each in known if each.is_measured] or known


@dataclass(slots=True)
class BenchResults:
    """The results of all workloads, one for each interval that a workload measures.

    samples: of the profile, by "workload: process".
    """

    outcomes: list[WorkloadResult] = field(default_factory=list)
    samples: dict[str, list[Samples]] = field(default_factory=dict)


def print_list(selection: BenchSelection) -> None:
    """Print every workload, with a mark for the default one of each case."""
    for each in selection.known():
        mark = "*" if each.is_default else " "
        click.echo(f"{mark} {each.name}")
    click.echo("\n* the workload that the name before the slash selects", err=True)


def read_older(path: Path | None) -> Json | None:
    """Read the result to compare with. Called before any run, so a wrong file is reported early."""
    return None if path is None else read_result(path)


def settings_of(options: RunOptions, concurrency: ConcurrencyOptions) -> Settings:
    """The settings of all runs. Raises InputError."""
    plans.refuse_auto_workers(concurrency)
    return plans.read_settings(options, None, concurrency.overrides())


def run_all(
    session: Session, selection: BenchSelection, options: RunOptions, settings: Settings
) -> BenchResults:
    """Run every workload as often as requested. Raises InputError or RoadsteadError."""
    config = plans.read_config(options)
    results = BenchResults()
    entries = selection.entries(settings.seed)
    session.launcher().prepare(settings, plans.log_dir(options))
    for entry in entries:
        script = entry.make()
        for note in script.notes:
            click.echo(f"{script.name}: {note}", err=True)
        chosen = _config_of(script, config)
        run_plan = plans.make_plan(options, settings, chosen, script.cluster)
        runs = [_run(session, script, run_plan, selection, results) for _ in range(selection.runs)]
        # An interval is measured once in each run.
        results.outcomes += [workload_result(interval) for interval in zip(*runs, strict=True)]
    return results


def _config_of(script: Script, of_flags: ConfigText) -> ConfigText:
    """The configuration of the command line, or else that of the workload."""
    if of_flags.text or not script.config_text:
        return of_flags
    return replace(of_flags, text=script.config_text, source=script.config_source)


def _run(
    session: Session,
    script: Script,
    run_plan: RunPlan,
    selection: BenchSelection,
    results: BenchResults,
) -> list[BenchMetrics]:
    # Objects of earlier runs must count neither as garbage nor as memory of this one.
    gc.collect()
    reset_peak_memory()
    with shown_progress() as progress:
        benched = session.launcher().bench(
            script, run_plan, progress, timeout_s=selection.timeout_s, profiles=selection.profiles
        )
    for process, samples in benched.samples.items():
        results.samples.setdefault(f"{script.name}: {process}", []).extend(samples)
    metrics = [metrics_of(measured) for measured in benched.measured]
    for each in metrics:
        click.echo(headline(each), err=True)
    return metrics


def write_profile(path: Path | None, results: BenchResults) -> None:
    """Write the profile, if any, in speedscope's format. Raises InputError if that fails."""
    if path is None:
        return
    document = speedscope_document("roadstead bench", results.samples, __version__)
    write_text(path, json.dumps(document))
    shown = "https://www.speedscope.app shows it"
    click.echo(f"Written to {path} ({shown})", err=True)


def report_runs(
    session: Session,
    results: BenchResults,
    settings: Settings,
    older: Json | None,
    *,
    as_json: bool,
) -> None:
    """Print tables, or JSON on standard output; then a comparison (on standard error with JSON)."""
    document = result_document(
        results.outcomes,
        machine=this_machine(),
        commit=commit_of(Path(__file__).parent),
        version=__version__,
        command=("roadstead", *session.args),
        settings=settings.model_dump(mode="json"),
    )
    if as_json:
        print_json(document)
    _print(results.outcomes, document, older, as_json=as_json)


def _print(
    outcomes: Sequence[WorkloadResult], document: Json, older: Json | None, *, as_json: bool
) -> None:
    from roadstead.cli.bench_table import print_bench, print_comparison
    from roadstead.report.text_table import wide_console

    if not as_json:
        print_bench(wide_console(), outcomes, this_machine(), str(document["commit"]))
    if older is not None:
        print_comparison(wide_console(stderr=as_json), compare(older, document))
