"""Sweep: all combinations of some parameters of a study, each with several seeds.

The first swept parameter is the x axis of plots; the others distinguish the lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final, cast

from roadstead.lab.statistics import Band, band
from roadstead.lab.studies import Metrics, Study, Value
from roadstead.protocol.errors import InputError, RoadsteadError

MAX_RUNS: Final = 100_000
MAX_VALUES: Final = 1000
MAX_SEEDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep to run. axes: parameter → its values; fixed: values that do not vary.

    seeds: one for each repetition of a combination.
    """

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

    def runs(self) -> list[tuple[dict[str, Value], int]]:
        """Parameters and seed of each run, in the order of the results."""
        return [(values, seed) for values in self.points() for seed in self.seeds]

    def name_of(self, values: Mapping[str, Value]) -> str:
        """The swept parameters of a run with their values, for display."""
        return ", ".join(f"{name} {values[name]}" for name, _ in self.axes)


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run: its parameters and its metrics."""

    values: Mapping[str, Value]
    seed: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Point:
    """The runs of one combination: the values of the axes, and a band for each metric."""

    values: Mapping[str, Value]
    bands: Mapping[str, Band]


@dataclass(frozen=True, slots=True)
class LabSweepResult:
    """A sweep and its runs. stopped_by: why it ended early; then complete combinations are kept."""

    sweep: Sweep
    rows: tuple[SweepRun, ...]
    stopped_by: RoadsteadError | KeyboardInterrupt | None = None

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
    parsed_axes = []
    for name, values in axes.items():
        parameter = study.parameter(name, source)
        if not 1 <= len(values) <= MAX_VALUES:
            problem = f"has {len(values)} values (want 1 to {MAX_VALUES})"
            raise InputError(problem, source=source, field=name)
        if name in fixed:
            raise InputError("is both swept and fixed", source=source, field=name)
        parsed = tuple(parameter.parse(value, source) for value in values)
        # After parsing, 1 and 1.0 are equal.
        if len(set(parsed)) < len(parsed):
            raise InputError("has a value twice", source=source, field=name)
        parsed_axes.append((name, parsed))
    constants = {
        name: study.parameter(name, source).parse(each, source) for name, each in fixed.items()
    }
    if not 1 <= len(seeds) <= MAX_SEEDS:
        raise InputError(f"must be 1 to {MAX_SEEDS} seeds", source=source, field="seeds")
    sweep = Sweep(title or study.text, study, tuple(parsed_axes), constants, tuple(seeds))
    if sweep.size > MAX_RUNS:
        raise InputError(f"is {sweep.size:,} runs (at most {MAX_RUNS:,})", source=source)
    if not any(True for _ in sweep.points()):
        raise InputError("no combination of these values can be run", source=source)
    return sweep


def sweep_result(
    sweep: Sweep,
    results: Mapping[int, object],
    stopped_by: RoadsteadError | KeyboardInterrupt | None = None,
) -> LabSweepResult:
    """Return the result of a sweep from the metrics of its runs, by their index in `Sweep.runs`.

    stopped_by: why the sweep ended early; then only combinations with metrics for every seed are
    kept, and it is raised if there is none.
    """
    rows: list[SweepRun] = []
    runs, repeats = sweep.runs(), len(sweep.seeds)
    for start in range(0, len(runs), repeats):
        indices = range(start, start + repeats)
        if all(each in results for each in indices):
            rows += [SweepRun(*runs[each], cast("Metrics", results[each])) for each in indices]
    if stopped_by is not None and not rows:
        raise stopped_by
    return LabSweepResult(sweep, tuple(rows), stopped_by)
