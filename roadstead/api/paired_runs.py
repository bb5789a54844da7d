"""Paired differences of runs that were played with the same seeds, and their result."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from roadstead.api.frames import as_frame
from roadstead.api.run_check import runs_in
from roadstead.api.run_folder import read_summary
from roadstead.api.run_query import FAILED_ATTEMPTS, RunQuery
from roadstead.api.scenario_sweep import JSON_FILE
from roadstead.config.files import read_bytes
from roadstead.lab.paired import HIGHER, LOWER, Difference
from roadstead.lab.paired import compare as paired_differences
from roadstead.lab.scenario_sweep import RUNS_FOLDER, SweepRow
from roadstead.lab.statistics import Band
from roadstead.protocol.errors import InputError
from roadstead.report.arrow import FLOAT64, INT64, STRING, column, make_table
from roadstead.simulator.metrics import RunMetrics

if TYPE_CHECKING:
    import pandas as pd
    from arro3.core import Table

READ_MAX_BYTES: Final = 1 << 30
"""Maximum size of the result of a sweep that is read."""

_PODS: Final = "SELECT owner, created_us, bound_us, ended_us, ending FROM pods"
_SAMPLES: Final = "SELECT zone, metric, resource, value FROM samples"


@dataclass(frozen=True, slots=True)
class PlayedRun:
    """A run that ended.

    variant: in a sweep, the combination of values, as JSON; else the name of the configuration.
    folder: of its tables, None if they were not kept.
    """

    variant: str
    seed: int
    metrics: Mapping[str, float]
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class RunGroup:
    """One of the two sides of a comparison: runs by key. name: for display.

    The keys of the two runs of a pair are equal: the seed, with the variant before it where there
    are several.
    """

    name: str
    runs: Mapping[Hashable, PlayedRun]

    @classmethod
    def of(cls, name: str, runs: Iterable[PlayedRun]) -> RunGroup:
        """Key runs by seed; also by their variant, if there are several."""
        listed = list(runs)
        has_one_variant = len({each.variant for each in listed}) == 1
        return cls(
            name,
            {each.seed if has_one_variant else (each.variant, each.seed): each for each in listed},
        )


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Comparison:
    """The result of `compare`.

    a, b: names of what was compared. differences: one for each metric. left_out: number of runs
    without a partner of the same seed. inputs: SHA-256 of the files that were played, by name.
    """

    a: str
    b: str
    differences: tuple[Difference, ...]
    left_out: int = 0
    inputs: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        differing = sum(each.verdict in (LOWER, HIGHER) for each in self.differences)
        return (
            f"<Comparison of {self.a} and {self.b}: {self.pairs} pairs, {differing} metrics differ>"
        )

    @property
    def pairs(self) -> int:
        """The number of pairs of runs."""
        return max((each.pairs for each in self.differences), default=0)

    def __getitem__(self, metric: str) -> Difference:
        """Return the difference of a metric. KeyError if the runs do not have it."""
        for each in self.differences:
            if each.metric == metric:
                return each
        raise KeyError(metric)

    def document(self) -> dict[str, object]:
        """Return the JSON of `roadstead compare --format json`."""
        metrics = [
            {
                **asdict(each),
                "difference": each.difference,
                "verdict": each.verdict,
                "values": [asdict(pair) for pair in each.values],
            }
            for each in self.differences
        ]
        return {
            "a": self.a,
            "b": self.b,
            "confidence": 0.95,
            "left_out": self.left_out,
            "inputs": dict(self.inputs),
            "metrics": metrics,
        }

    def to_arrow(self) -> Table:
        """Return a table with a row for each metric; intervals are null for one pair."""
        rows = self.differences
        columns = {
            "metric": column([each.metric for each in rows], STRING),
            "pairs": column([each.pairs for each in rows], INT64),
            "a": column([each.a for each in rows], FLOAT64),
            "b": column([each.b for each in rows], FLOAT64),
            "difference": column([each.difference for each in rows], FLOAT64),
        }
        # Two confidence intervals: Student's t, and that of resampled pairs.
        for name in ("student", "bootstrap"):
            intervals: list[Band | None] = [getattr(each, name) for each in rows]
            for limit in ("low", "high"):
                values = [None if each is None else getattr(each, limit) for each in intervals]
                columns[f"{name}_{limit}"] = column(values, FLOAT64)
        columns["verdict"] = column([each.verdict for each in rows], STRING)
        return make_table(columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return `to_arrow` as a pandas frame. Raises RoadsteadError if pandas is not installed."""
        return as_frame(self.to_arrow())


def compare_groups(a: RunGroup, b: RunGroup, inputs: Mapping[str, str] | None = None) -> Comparison:
    """Compare the runs of two sides; without a pair, there are no differences."""
    metrics = [{key: run.metrics for key, run in each.runs.items()} for each in (a, b)]
    differences = tuple(paired_differences(*metrics))
    left_out = len(a.runs.keys() ^ b.runs.keys())
    return Comparison(a.name, b.name, differences, left_out, inputs or {})


def compare_finished(a: RunGroup, b: RunGroup) -> Comparison:
    """Compare finished runs. Raises InputError without a pair."""
    comparison = compare_groups(a, b)
    if not comparison.differences:
        raise InputError(f"has no run with the seed and values of one in {a.name}", source=b.name)
    return comparison


def sweep_runs(rows: Iterable[SweepRow], output: Path | None) -> list[PlayedRun]:
    """Return the runs of a sweep. output: its folder, None for none."""
    return [
        PlayedRun(
            json.dumps(row.values, sort_keys=True),
            row.seed,
            row.metrics,
            output / row.tables if output is not None and row.tables else None,
        )
        for row in rows
    ]


def read_group(folder: Path) -> RunGroup:
    """Return the runs of a folder of `simulate` or `sweep`. Raises InputError."""
    name = str(folder)
    if (folder / JSON_FILE).is_file():
        return RunGroup.of(name, _read_sweep(folder))
    runs = runs_in(folder)
    if not runs:
        problem = "holds no run of `roadstead simulate` or `roadstead sweep`"
        raise InputError(problem, source=name)
    return RunGroup.of(name, map(read_simulated, runs))


def _read_sweep(folder: Path) -> list[PlayedRun]:
    path = folder / JSON_FILE
    content = read_bytes(path, READ_MAX_BYTES)
    try:
        document = json.loads(content)
        runs = cast("list[dict[str, Any]]", document["runs"])
        rows = [
            SweepRow(
                dict(run["values"]),
                int(run["seed"]),
                {str(name): float(value) for name, value in run["metrics"].items()},
                # Only folders below that of the sweep are read.
                f"{RUNS_FOLDER}/{Path(run['tables']).name}" if "tables" in run else "",
            )
            for run in runs
        ]
    # OverflowError: a number that no float holds, or Infinity as a seed.
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        raise InputError("is no result of `roadstead sweep`", source=str(path)) from error
    return sweep_runs(rows, folder)


def read_simulated(folder: Path) -> PlayedRun:
    """Return a simulated run, with the metrics of its tables. Raises InputError."""
    summary = read_summary(folder)
    metrics = RunMetrics(summary.horizon_us)
    query = RunQuery(folder)
    for owner, created_us, bound_us, ended_us, ending in query.execute(_PODS).rows:
        metrics.add_pod(
            str(owner or ""),
            cast("int", created_us),
            cast("int | None", bound_us),
            cast("int | None", ended_us),
            cast("str | None", ending),
        )
    for message, attempts in query.execute(FAILED_ATTEMPTS).rows:
        metrics.add_failed_attempts(str(message or ""), cast("int", attempts))
    for zone, metric, resource, value in query.execute(_SAMPLES).rows:
        metrics.add_sample(str(zone or ""), str(metric), str(resource or ""), cast("float", value))
    return PlayedRun(summary.config, summary.seed, metrics.result(), folder)
