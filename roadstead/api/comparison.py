"""Comparisons of two configurations, runs or sweeps: `roadstead.compare` and its result."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from roadstead.api.config_source import Document
from roadstead.api.frames import as_frame
from roadstead.api.request import ARGUMENTS
from roadstead.api.run_check import runs_in
from roadstead.api.run_folder import read_summary
from roadstead.api.run_query import RunQuery
from roadstead.api.scenario_plan import scenario_file
from roadstead.api.scenario_sweep import JSON_FILE, SweepFolder
from roadstead.api.simulation import SimulationResult
from roadstead.api.sweep import SweepJobs, SweepResult, sweep_file
from roadstead.config.files import read_bytes
from roadstead.config.scenario.vary import CONFIG
from roadstead.lab.paired import HIGHER, LOWER, Difference
from roadstead.lab.paired import compare as paired_differences
from roadstead.lab.scenario_sweep import Row
from roadstead.lab.statistics import Band
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.arrow import FLOAT64, INT64, STRING, column, make_table
from roadstead.simulator.metrics import RunMetrics
from roadstead.sweeps.tasks import Counts

if TYPE_CHECKING:
    import pandas as pd
    from arro3.core import Table

READ_MAX_BYTES: Final = 1 << 30
"""Maximum size of the result of a sweep that is read."""

_PODS: Final = "SELECT owner, created_us, bound_us, ended_us, ending FROM pods"
_SAMPLES: Final = "SELECT zone, metric, resource, value FROM samples"

Runs = dict[Hashable, Mapping[str, float]]
"""The metrics of each run. The keys of the two runs of a pair are equal."""

Compared: TypeAlias = "str | os.PathLike[str] | SimulationResult | SweepResult"
"""A finished simulation or sweep, or its folder; or a configuration: a file, or the name of one."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Comparison:
    """The result of `compare`.

    a, b: names of what was compared. differences: one for each metric. left_out: number of runs
    without a partner of the same seed.
    """

    a: str
    b: str
    differences: tuple[Difference, ...]
    left_out: int = 0

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
        found = [
            {**asdict(each), "difference": each.difference, "verdict": each.verdict}
            for each in self.differences
        ]
        return {"a": self.a, "b": self.b, "confidence": 0.95, "metrics": found}

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
            bands: list[Band | None] = [getattr(each, name) for each in rows]
            for end in ("low", "high"):
                values = [None if band is None else getattr(band, end) for band in bands]
                columns[f"{name}_{end}"] = column(values, FLOAT64)
        columns["verdict"] = column([each.verdict for each in rows], STRING)
        return make_table(columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return `to_arrow` as a pandas frame. Raises RoadsteadError if pandas is not installed."""
        return as_frame(self.to_arrow())


def compare(
    a: Compared,
    b: Compared,
    *,
    scenario: Document | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    ray_address: str | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: Callable[[Counts], None] | None = None,
) -> Comparison:
    """Return the paired differences of two finished simulations or sweeps, as `roadstead compare`.

    a, b: results, or their folders; runs with the same seed are a pair. With `scenario` they are
    configurations, each a file or the name of an included one, and the scenario is played with
    both; seeds, jobs, ray_address, output and progress are then as for `sweep`. Raises InputError
    for wrong input, RoadsteadError if a run fails.
    """
    if scenario is None:
        given = {"seeds": seeds, "output": output, "jobs": jobs, "ray_address": ray_address}
        for name, value in given.items():
            if value is not None:
                raise InputError("has no use without a scenario", source=ARGUMENTS, field=name)
        return compare_runs((_display_name(a), _runs_of(a)), (_display_name(b), _runs_of(b)))
    if not all(isinstance(each, str | os.PathLike) for each in (a, b)):
        rule = "must be configurations: a scenario is given"
        raise InputError(rule, source=ARGUMENTS, field="a, b")
    names = _display_name(a), _display_name(b)
    values = [config_value(each) for each in names]
    if values[0] == values[1]:
        rule = "is the same configuration as a"
        raise InputError(rule, source=ARGUMENTS, field="b", value=cut_short(names[1]))
    folder = SweepFolder(None if output is None else Path(output))
    file, sweep_jobs = scenario_file(scenario), SweepJobs(jobs, ray_address)
    played = sweep_file(file, {CONFIG: values}, seeds, sweep_jobs, folder, progress)
    return compare_configs(names, values, played.runs)


def config_value(name: str) -> str:
    """Return a configuration as a value of `config`: a file is relative to the working folder."""
    return str(Path(name).resolve()) if Path(name).is_file() else name


def compare_configs(
    names: tuple[str, str], values: Iterable[str], rows: Iterable[Row]
) -> Comparison:
    """Compare the runs of a sweep with two configurations.

    names: of the configurations, for display. values: of the axis `config`, in the same order.
    """
    played = list(rows)
    a, b = (
        Runs({row.seed: row.metrics for row in played if row.values[CONFIG] == each})
        for each in values
    )
    return Comparison(*names, tuple(paired_differences(a, b)), len(a.keys() ^ b.keys()))


def compare_runs(a: tuple[str, Runs], b: tuple[str, Runs]) -> Comparison:
    """Compare finished runs. a, b: (name for display, runs). Raises InputError without a pair."""
    (name_a, runs_a), (name_b, runs_b) = a, b
    differences = paired_differences(runs_a, runs_b)
    if not differences:
        raise InputError(f"has no run with the seed and values of one in {name_a}", source=name_b)
    left_out = len(runs_a.keys() ^ runs_b.keys())
    return Comparison(name_a, name_b, tuple(differences), left_out)


def _display_name(compared: Compared) -> str:
    if isinstance(compared, SimulationResult):
        return str(compared.directory)
    return repr(compared) if isinstance(compared, SweepResult) else str(os.fspath(compared))


def _runs_of(compared: Compared) -> Runs:
    if isinstance(compared, SimulationResult):
        return read_runs(compared.directory)
    if isinstance(compared, SweepResult):
        found = (
            (json.dumps(row.values, sort_keys=True), row.seed, row.metrics) for row in compared.runs
        )
        return _by_seed(found)
    return read_runs(Path(os.fspath(compared)))


def read_runs(folder: Path) -> Runs:
    """Return the runs of a folder of `simulate` or `sweep`. Raises InputError.

    Keys are seeds, with the configuration or the values where the folder has runs of several.
    """
    if (folder / JSON_FILE).is_file():
        return _by_seed(_read_sweep(folder / JSON_FILE))
    runs = runs_in(folder)
    if not runs:
        rule = "holds no run of `roadstead simulate` or `roadstead sweep`"
        raise InputError(rule, source=str(folder))
    return _by_seed(_read_simulated(each) for each in runs)


def _by_seed(runs: Iterable[tuple[str, int, Mapping[str, float]]]) -> Runs:
    """Key runs by seed; also by their variant, if there are several.

    runs: (variant, seed, metrics). A variant is a configuration, or values as JSON.
    """
    found = list(runs)
    is_single_variant = len({variant for variant, _, _ in found}) == 1
    return {
        seed if is_single_variant else (variant, seed): metrics for variant, seed, metrics in found
    }


def _read_sweep(path: Path) -> list[tuple[str, int, Mapping[str, float]]]:
    content = read_bytes(path, READ_MAX_BYTES)
    try:
        document = json.loads(content)
        return [
            (
                json.dumps(run["values"], sort_keys=True),
                int(run["seed"]),
                {str(name): float(value) for name, value in run["metrics"].items()},
            )
            for run in cast("list[dict[str, Any]]", document["runs"])
        ]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError("is no result of `roadstead sweep`", source=str(path)) from error


def _read_simulated(folder: Path) -> tuple[str, int, Mapping[str, float]]:
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
    for zone, metric, resource, value in query.execute(_SAMPLES).rows:
        metrics.add_sample(str(zone or ""), str(metric), str(resource or ""), cast("float", value))
    return summary.config, summary.seed, metrics.result()
