"""`roadstead bench simulate`: how fast scenarios are played, and whether they reach their floors.

A floor is the required performance of a scenario: events per second, or processor time.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from roadstead import __version__
from roadstead.bench.calibration import CALIBRATED_S, Calibration, calibrate
from roadstead.bench.machine import (
    commit_of,
    own_memory_bytes,
    own_peak_bytes,
    reset_peak_memory,
    this_machine,
)
from roadstead.bench.roadstead_workloads import read_openb
from roadstead.cli.result_forms import print_json
from roadstead.cli.simulate_run import shown_runs
from roadstead.cycle.batch import CompiledKernel
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.protocol.errors import InputError
from roadstead.scenario.bench_plans import BENCH_PLANS, BenchPlan, Floor
from roadstead.simulator.play import Variant, play

if TYPE_CHECKING:
    from roadstead.simulator.summary import RunSummary

FORMAT: Final = "roadstead.bench.simulate/1"
SEED: Final = 1
HEADS: Final = ("floor", "value", "calibrated", "reached", "pods", "lost", "CPU", "memory")
"""Headings of the columns after the scenario."""


@dataclass(frozen=True, slots=True)
class ScenarioFigures:
    """The measured figures of a scenario.

    events: arrivals and departures. losses: pods that ended because their node was lost. pending:
    pods at the end. additions_s: duration of a fixed number of additions, which measures the
    machine. calibrated_s: processor time on the machine for which floors are given.
    """

    name: str
    title: str
    floor: Floor
    pods: int
    events: int
    losses: int
    pending: int
    processor_s: float
    calibrated_s: float
    additions_s: float
    peak_bytes: int

    @property
    def events_per_s(self) -> float:
        return self.events / max(self.processor_s, 1e-9)

    @property
    def is_reached(self) -> bool:
        """Whether the floor is reached as measured, without calibration."""
        if self.floor.memory_bytes and self.peak_bytes > self.floor.memory_bytes:
            return False
        if self.floor.figure == "processor_s":
            return self.processor_s <= self.floor.value
        return self.events_per_s >= self.floor.value

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "events_per_s": self.events_per_s, "is_reached": self.is_reached}


def bench_simulate(names: Sequence[str], openb: Path | None, *, slow: bool, as_json: bool) -> None:
    """Play the chosen scenarios and print their figures. Raises InputError."""
    plans = chosen_plans(names, has_openb=openb is not None, slow=slow)
    # One for all scenarios: loading takes long. `DecisionCounts` counts its decisions.
    compiled_kernel = CompiledKernel(load(), DecisionCounts())
    results = [measure(each, openb, compiled_kernel) for each in plans]
    commit = commit_of(Path(__file__).parent)
    if as_json:
        print_json(document(results, commit))
        return
    _print(results, commit)


def chosen_plans(names: Sequence[str], *, has_openb: bool, slow: bool) -> list[BenchPlan]:
    """Return the named scenarios, or all that can be played. Raises InputError."""
    known = {each.name: each for each in BENCH_PLANS}
    for name in names:
        if name not in known:
            problem = f"is not a scenario of the bench ({', '.join(known)})"
            raise InputError(problem, source="command line", field="NAME", value=name)
        if known[name].needs_openb and not has_openb:
            raise InputError("needs --openb PATH", source="command line", field="NAME", value=name)
    if names:
        return [known[name] for name in names]
    plans = [each for each in BENCH_PLANS if slow or not each.is_slow]
    if not has_openb:
        click.echo("note: openb is left out; --openb PATH names its trace", err=True)
    return [each for each in plans if has_openb or not each.needs_openb]


def measure(
    plan: BenchPlan, openb: Path | None, compiled_kernel: CompiledKernel
) -> ScenarioFigures:
    """Play a scenario and measure it; its tables are written, to a temporary folder."""
    trace = read_openb(openb) if plan.needs_openb and openb is not None else None
    scenario = plan.make(trace)
    calibration = calibrate()
    gc.collect()
    reset_peak_memory()
    runs = shown_runs(scenario.horizon_us, runs=1)
    with tempfile.TemporaryDirectory() as folder, runs as on_progress:
        summary = play(
            scenario,
            Variant(SEED),
            Path(folder),
            compiled_kernel,
            lambda engine: on_progress(plan.name, engine),
            read_processor_s=time.process_time,
            read_memory_bytes=own_memory_bytes,
        )
    return figures_of(plan, summary, calibration, own_peak_bytes())


def figures_of(
    plan: BenchPlan, summary: RunSummary, calibration: Calibration, peak_bytes: int
) -> ScenarioFigures:
    """Return the figures of a scenario from its summary."""
    return ScenarioFigures(
        name=plan.name,
        title=plan.title,
        floor=plan.floor,
        pods=summary.created,
        events=summary.created + sum(summary.endings.values()),
        losses=summary.endings["lost"],
        pending=summary.pending,
        processor_s=summary.processor_s,
        calibrated_s=calibration.scaled(summary.processor_s),
        additions_s=calibration.processor_s,
        peak_bytes=peak_bytes,
    )


def document(results: Sequence[ScenarioFigures], commit: str) -> Mapping[str, object]:
    """Return the JSON object of `--json`."""
    return {
        "format": FORMAT,
        "version": __version__,
        "commit": commit,
        "machine": asdict(this_machine()),
        "scenarios": [each.as_json() for each in results],
    }


def _print(results: Sequence[ScenarioFigures], commit: str) -> None:
    from rich.text import Text

    from roadstead.report.text_table import Column, print_table, text_column, wide_console

    console = wide_console()
    additions = ", ".join(f"{each.additions_s:.2f}" for each in results)
    for line in (
        str(this_machine()),
        f"Commit {commit or 'unknown'}",
        f"20 million additions took {additions} s before each scenario; calibrated: as if "
        f"{CALIBRATED_S} s",
    ):
        console.print(Text(line, style="dim"))
    columns = [text_column("scenario"), *map(Column, HEADS)]
    print_table(console, "", columns, [list(_cells(each)) for each in results])


def _cells(each: ScenarioFigures) -> Iterator[str]:
    from roadstead.report.units import human_bytes, human_seconds

    yield each.title
    if each.floor.figure == "processor_s":
        room = f", {human_bytes(each.floor.memory_bytes)}" if each.floor.memory_bytes else ""
        yield f"at most {each.floor.value:,.0f} s{room}"
        yield human_seconds(each.processor_s)
        yield human_seconds(each.calibrated_s)
    else:
        yield f"{each.floor.value:,.0f} events/s"
        yield f"{each.events_per_s:,.0f}"
        yield f"{each.events / max(each.calibrated_s, 1e-9):,.0f}"
    yield "yes" if each.is_reached else "no"
    yield f"{each.pods:,}"
    yield f"{each.losses:,}"
    yield human_seconds(each.processor_s)
    yield human_bytes(each.peak_bytes)
