"""`roadstead.sweep` and its result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from roadstead.api.frames import as_frame
from roadstead.api.launcher import open_launcher
from roadstead.api.request import ARGUMENTS
from roadstead.api.scenario import ScenarioSource, scenario_file
from roadstead.api.scenario_sweep import (
    PreparedSweep,
    SweepFolder,
    metric_names,
    prepare_sweep,
    run_sweep,
    sweep_document,
    sweep_of,
    write_sweep_report,
)
from roadstead.config.ray import LOCAL
from roadstead.config.scenario.read import ScenarioFile
from roadstead.config.scenario.vary import axis_of
from roadstead.config.settings import Settings, load_settings
from roadstead.lab.scenario_sweep import (
    MetricSpread,
    ScenarioSweep,
    SweepRow,
    Values,
    spreads,
    value_text,
)
from roadstead.protocol.errors import InputError, cut_short
from roadstead.report.arrow import FLOAT64, INT64, STRING, column, make_table
from roadstead.sweeps.carry_out import Processes
from roadstead.sweeps.tasks import TaskCounts, Work

if TYPE_CHECKING:
    import pandas as pd
    from arro3.core import Table

COUNT_MAX = 10_000
"""Maximum of `seeds` and of `jobs`."""


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A combination of values. runs: number of its runs, one per seed. metrics: over these runs."""

    values: Values
    runs: int
    metrics: Mapping[str, MetricSpread]


@dataclass(frozen=True, slots=True)
class SweepJobs:
    """Processes of a sweep. count: runs at a time. ray_address: as for `sweep`."""

    count: int | None
    ray_address: str | None

    def settings(self) -> Settings:
        """Return settings with the Ray to use. Raises InputError for a wrong address."""
        overrides = {"ray.address": self.ray_address}
        return load_settings(overrides=overrides, overrides_source=ARGUMENTS)

    def has_processes(self) -> bool:
        """Whether other processes than this one play the runs."""
        return self.ray_address not in (None, LOCAL) or self.count not in (None, 1)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SweepResult:
    """The result of `sweep`.

    runs: values, seed and metrics of each run, in order. directory: of the files, None for none.
    """

    runs: tuple[SweepRow, ...]
    directory: Path | None
    _prepared: PreparedSweep

    def __repr__(self) -> str:
        return f"<SweepResult of {self._prepared.planned.scenario}: {len(self.runs):,} runs>"

    @property
    def points(self) -> tuple[SweepPoint, ...]:
        """Each combination, with the median, lowest and highest value of each metric."""
        return tuple(SweepPoint(*each) for each in spreads(self.runs))

    def document(self) -> dict[str, object]:
        """Return the JSON of `roadstead sweep --format json`."""
        return sweep_document(self._prepared, self.runs)

    def to_arrow(self) -> Table:
        """Return a table with a row for each run: the varied keys as text, seed, and metrics."""
        keys = [key for key, _ in self._prepared.planned.axes]
        columns = {
            key: column([value_text(row.values[key]) for row in self.runs], STRING) for key in keys
        }
        columns["seed"] = column([row.seed for row in self.runs], INT64)
        for name in metric_names(self.runs):
            columns[name] = column([row.metrics.get(name) for row in self.runs], FLOAT64)
        return make_table(columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return `to_arrow` as a pandas frame. Raises RoadsteadError if pandas is not installed."""
        return as_frame(self.to_arrow())


def sweep(
    scenario: ScenarioSource,
    vary: Mapping[str, Iterable[object]] | None = None,
    *,
    seeds: int | None = None,
    plugin: str | Sequence[str] = (),
    jobs: int | None = None,
    ray_address: str | None = None,
    output: str | os.PathLike[str] | None = None,
    tables: bool = False,
    resume: bool = False,
    progress: Callable[[TaskCounts], None] | None = None,
) -> SweepResult:
    """Play a scenario with every combination of some values and each seed, as `roadstead sweep`.

    scenario: as for `simulate`. vary: values by key, such as {"config": ["default", "binpack"]}.
    seeds: number of seeds, in place of the scenario's. plugin: of all runs, as of `--plugin`. jobs:
    number of runs at a time, by default one; several are played in processes of their own.
    ray_address: HOST:PORT or auto, a Ray cluster whose nodes play the runs, by default one for each
    free CPU; local starts a Ray for this call. output, tables, resume: as the flags. progress:
    called with the numbers of runs that are done, running and lost. Raises InputError for invalid
    input, RoadsteadError if a run fails; with `output` the runs that ended are kept.
    """
    check_count("seeds", seeds)
    if not isinstance(vary, Mapping | None):
        raise InputError("must be a mapping of keys to values", source=ARGUMENTS, field="vary")
    file = scenario_file(scenario)
    folder = SweepFolder(None if output is None else Path(output), tables, resume)
    planned = sweep_of(
        file, [axis_of(file, key, each) for key, each in (vary or {}).items()], seeds
    )
    plugins = (plugin,) if isinstance(plugin, str) else tuple(plugin)
    sweep_jobs = SweepJobs(jobs, ray_address)
    prepared, rows = play_sweep(file, planned, plugins, sweep_jobs, folder, progress)
    if folder.output is not None:
        write_sweep_report(folder.output, prepared, rows)
    return SweepResult(tuple(rows), folder.output, prepared)


def check_count(name: str, value: int | None) -> None:
    """Raise InputError for an argument out of range. None: not given."""
    if value is not None and not 1 <= value <= COUNT_MAX:
        rule = f"must be 1 to {COUNT_MAX:,}"
        raise InputError(rule, source=ARGUMENTS, field=name, value=cut_short(value))


def play_sweep(
    file: ScenarioFile,
    planned: ScenarioSweep,
    plugins: Sequence[str],
    jobs: SweepJobs,
    folder: SweepFolder,
    progress: Callable[[TaskCounts], None] | None,
) -> tuple[PreparedSweep, list[SweepRow]]:
    """Play a sweep of a scenario that was read; see `sweep`."""
    settings = jobs.settings()
    check_count("jobs", jobs.count)
    if folder.output is None and (folder.has_tables or folder.is_resumed):
        name = "tables" if folder.has_tables else "resume"
        raise InputError("needs output", source=ARGUMENTS, field=name)
    prepared = prepare_sweep(file, planned, folder, plugins)

    def processes_of(work: Work) -> Processes | None:
        if not jobs.has_processes():
            return None
        return Processes(
            lambda: open_launcher().open_tasks(work, settings, jobs.count, lambda _: None),
            jobs.count,
            # Started before the first task, because the caller asked for them.
            starts_at_once=True,
        )

    def report(counts: TaskCounts, _: int) -> None:
        if progress is not None:
            progress(counts)

    rows, end = run_sweep(prepared, processes_of, report)
    if end.stopped_by is not None:
        raise end.stopped_by
    return prepared, rows
