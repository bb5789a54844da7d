"""Sweep of a scenario: combinations of values, each played with each seed, and its results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from statistics import median
from typing import Final

from roadstead.protocol.errors import InputError

MAX_RUNS: Final = 100_000
RUNS_FOLDER: Final = "runs"
"""Folder with the tables of runs, in that of the sweep."""

Values = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ScenarioSweep:
    """A sweep to run. axes: key of the scenario → values. seeds: of each combination.

    is_zipped: the values at one index of all axes are a combination, in place of all products.
    """

    scenario: str
    axes: tuple[tuple[str, tuple[object, ...]], ...]
    seeds: tuple[int, ...]
    is_zipped: bool = False

    @property
    def size(self) -> int:
        """The number of runs."""
        counts = [len(values) for _, values in self.axes]
        return (min(counts) if self.is_zipped else prod(counts)) * len(self.seeds)

    def check(self) -> None:
        """Raise InputError if there are too many runs."""
        if self.size > MAX_RUNS:
            raise InputError(f"is {self.size:,} runs (at most {MAX_RUNS:,})", source="sweep")

    def combinations(self) -> Iterator[dict[str, object]]:
        """Yield every combination, the values of the last key changing first."""
        names = [name for name, _ in self.axes]
        axes = [values for _, values in self.axes]
        for chosen in zip(*axes, strict=True) if self.is_zipped else product(*axes):
            yield dict(zip(names, chosen, strict=True))

    def runs(self) -> list[tuple[dict[str, object], int]]:
        """Return values and seed of each run, in the order of the results."""
        return [(values, seed) for values in self.combinations() for seed in self.seeds]


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One run that ended. tables: folder of its tables, relative to the sweep's; "" without."""

    values: Values
    seed: int
    metrics: Mapping[str, float]
    tables: str = ""


@dataclass(frozen=True, slots=True)
class MetricSpread:
    """A metric of one combination over its seeds."""

    median: float
    low: float
    high: float


def tables_of(index: int) -> str:
    """Return the folder of the tables of a run, by its index in `runs`."""
    return f"{RUNS_FOLDER}/{index + 1:03}"


def rows_of(
    sweep: ScenarioSweep, results: Mapping[int, object], *, has_tables: bool = False
) -> list[SweepRow]:
    """Return the runs that ended, in the order of the sweep. results: by index in `runs`."""
    rows = []
    for index, (values, seed) in enumerate(sweep.runs()):
        metrics = results.get(index)
        if isinstance(metrics, dict):
            rows.append(SweepRow(values, seed, metrics, tables_of(index) if has_tables else ""))
    return rows


def name_of(values: Values) -> str:
    """Return a combination in words; "" for the scenario as it is."""
    return ", ".join(f"{key} {value_text(value)}" for key, value in values.items())


def value_text(value: object) -> str:
    """Return a value in words."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def spreads(rows: Sequence[SweepRow]) -> list[tuple[Values, int, dict[str, MetricSpread]]]:
    """Return combination, number of its runs, and metrics over them, in the order of the rows."""
    groups: dict[str, list[SweepRow]] = {}
    for row in rows:
        groups.setdefault(json.dumps(row.values, sort_keys=True), []).append(row)
    found = []
    for group in groups.values():
        names = dict.fromkeys(name for row in group for name in row.metrics)
        metrics = {}
        for name in names:
            values = [row.metrics[name] for row in group if name in row.metrics]
            metrics[name] = MetricSpread(median(values), min(values), max(values))
        found.append((group[0].values, len(group), metrics))
    return found
