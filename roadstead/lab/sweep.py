"""Sweep: all combinations of some parameters of a study, each with several seeds.

The first swept parameter is the x axis of plots; the others distinguish the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

from roadstead.lab.statistics import Band, band
from roadstead.lab.studies import Study, Value
from roadstead.protocol.errors import InputError, RoadsteadError

MAX_RUNS: Final = 100_000
MAX_VALUES: Final = 1000
MAX_SEEDS: Final = 1000

ReportRun = Callable[[int, int, str], None]
"""Called before each run with the finished runs, the number of runs, and the next combination."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """axes: parameter → its values; fixed: values that do not vary; seeds: of the repeats."""

    title: str
    study: Study
    axes: tuple[tuple[str, tuple[Value, ...]], ...]
    fixed: Mapping[str, Value]
    seeds: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of runs, including impossible combinations."""
        return prod(len(values) for _, values in self.axes) * len(self.seeds)

    def points(self) -> Iterator[dict[str, Value]]:
        """Every possible combination, completed with fixed values and defaults."""
        names = [name for name, _ in self.axes]
        for chosen in product(*(values for _, values in self.axes)):
            point = dict(zip(names, chosen, strict=True))
            values = self.study.complete({**self.fixed, **point})
            if self.study.is_possible(values):
                yield values


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run: its parameters and its metrics."""

    values: Mapping[str, Value]
    seed: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Point:
    """The repeats of one combination: the values of the axes, and a band for each metric."""

    values: Mapping[str, Value]
    bands: Mapping[str, Band]


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A sweep and its runs. ended: why it ended early; then complete combinations are kept."""

    sweep: Sweep
    rows: tuple[SweepRun, ...]
    ended: RoadsteadError | KeyboardInterrupt | None = None

    def points(self) -> list[Point]:
        """Bands over the seeds, in the order of the combinations."""
        repeats = len(self.sweep.seeds)
        names = [name for name, _ in self.sweep.axes]
        points = []
        for start in range(0, len(self.rows), repeats):
            rows = self.rows[start : start + repeats]
            metrics = {name: band([row.metrics[name] for row in rows]) for name in rows[0].metrics}
            points.append(Point({name: rows[0].values[name] for name in names}, metrics))
        return points


def make_sweep(
    study: Study,
    axes: Mapping[str, Sequence[object]],
    fixed: Mapping[str, object],
    seeds: Sequence[int],
    *,
    source: str,
    title: str = "",
) -> Sweep:
    """Make a sweep. Raises InputError for an invalid parameter, value or size."""
    read = []
    for name, values in axes.items():
        parameter = study.parameter(name, source)
        if not 1 <= len(values) <= MAX_VALUES:
            rule = f"has {len(values)} values (want 1 to {MAX_VALUES})"
            raise InputError(rule, source=source, field=name)
        if name in fixed:
            raise InputError("is both swept and fixed", source=source, field=name)
        parsed = tuple(parameter.parse(value, source) for value in values)
        if len(set(parsed)) < len(parsed):
            raise InputError("has a value twice", source=source, field=name)
        read.append((name, parsed))
    kept = {name: study.parameter(name, source).parse(each, source) for name, each in fixed.items()}
    if not 1 <= len(seeds) <= MAX_SEEDS:
        raise InputError(f"must be 1 to {MAX_SEEDS} seeds", source=source, field="seeds")
    sweep = Sweep(title or study.text, study, tuple(read), kept, tuple(seeds))
    if sweep.size > MAX_RUNS:
        raise InputError(f"is {sweep.size:,} runs (at most {MAX_RUNS:,})", source=source)
    if not any(True for _ in sweep.points()):
        raise InputError("no combination of these values can be run", source=source)
    return sweep


def run_sweep(sweep: Sweep, report: ReportRun) -> SweepResult:
    """Run all combinations, one after another.

    After a failure or interruption, the result has the finished combinations and the exception; if
    none is finished, the exception is raised.
    """
    rows: list[SweepRun] = []
    try:
        _run_all(sweep, report, rows)
    except (KeyboardInterrupt, RoadsteadError) as ended:
        kept = len(rows) // len(sweep.seeds) * len(sweep.seeds)
        if not kept:
            raise
        return SweepResult(sweep, tuple(rows[:kept]), ended)
    return SweepResult(sweep, tuple(rows))


def _run_all(sweep: Sweep, report: ReportRun, rows: list[SweepRun]) -> None:
    points = list(sweep.points())
    for values in points:
        for seed in sweep.seeds:
            now = ", ".join(f"{name} {values[name]}" for name, _ in sweep.axes)
            report(len(rows), len(points) * len(sweep.seeds), now)
            rows.append(SweepRun(values, seed, sweep.study.run(values, seed)))
