"""`roadstead.simulate` and its result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from roadstead.api.cluster import Cluster
from roadstead.api.config_pairs import compare_configs
from roadstead.api.frames import as_frame
from roadstead.api.moment import load_moment, time_of
from roadstead.api.paired_runs import Comparison
from roadstead.api.pod_life import PodLife, life_of
from roadstead.api.request import ARGUMENTS
from roadstead.api.run_check import RunCheck, check_folder
from roadstead.api.run_folder import read_record, read_summary
from roadstead.api.run_query import RunQuery
from roadstead.api.scenario import ScenarioSource, scenario_file
from roadstead.api.simulated_report import write_report
from roadstead.api.simulation_steps import play_all, prepare_folder, prepare_simulation
from roadstead.protocol.errors import InputError, cut_short
from roadstead.simulator.engine import Engine
from roadstead.simulator.summary import RunSummary
from roadstead.simulator.tables import COLUMNS

if TYPE_CHECKING:
    import pandas as pd
    from arro3.core import Table


@dataclass(frozen=True, slots=True)
class SimulationProgress:
    """Progress of a run. run: its name. pods: created so far. Times are simulated ones."""

    run: str
    now_us: int
    horizon_us: int
    pods: int


class RunTables(Mapping[str, "Table"]):
    """The tables of simulated runs by name, read from their files at each access.

    With several runs, each table begins with the columns `config` and `seed`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> Table:
        if name not in COLUMNS:
            raise KeyError(name)
        return RunQuery(self._folder).arrow(f'SELECT * FROM "{name}"')  # noqa: S608

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    def __len__(self) -> int:
        return len(COLUMNS)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SimulationResult:
    """The result of `simulate`.

    directory: of the files; a temporary one is removed with the result. summaries: figures of each
    run, such as numbers of pods and waits, by the name of the run. notes: on the scenario.
    """

    directory: Path
    summaries: Mapping[str, RunSummary]
    notes: tuple[str, ...]
    _temporary: TemporaryDirectory[str] | None = None

    def __repr__(self) -> str:
        pods = sum(each.created for each in self.summaries.values())
        runs = "1 run" if len(self.summaries) == 1 else f"{len(self.summaries):,} runs"
        return f"<SimulationResult of {runs}: {pods:,} pods>"

    @property
    def summary(self) -> RunSummary:
        """The figures of the only run. Raises InputError if there are several."""
        if len(self.summaries) > 1:
            raise InputError("is of several runs; use summaries", obj="result", field="summary")
        return next(iter(self.summaries.values()))

    @property
    def tables(self) -> RunTables:
        """The Arrow tables by name; docs/simulate.md lists them with their columns."""
        return RunTables(self.directory)

    def to_arrow(self, table: str = "pods") -> Table:
        """Return a table. Raises InputError for an unknown name."""
        if table not in COLUMNS:
            problem = f"is no table (there are: {', '.join(COLUMNS)})"
            raise InputError(problem, field="table", value=cut_short(table))
        return self.tables[table]

    def to_pandas(self, table: str = "pods") -> pd.DataFrame:
        """Return `to_arrow` as a pandas frame. Raises RoadsteadError if pandas is not installed."""
        return as_frame(self.to_arrow(table))

    def at(self, time: str, run: str | None = None) -> Cluster:
        """Return the fleet after all events of a time (`3h20m`), for what-if questions.

        run: a name in `summaries`, by default the first. The run is played again up to then; its
        configuration and settings decide, unless others are given to the question. Raises
        InputError for a time or run that is wrong, and if inputs have changed.
        """
        name = self._name_of_run(run)
        plugins = read_record(self.directory).plugins
        at_us = time_of(time, source="time")
        moment = load_moment(self.directory / name, at_us, plugins, lambda _, __: None)
        return Cluster(moment.loaded, moment)

    def why(
        self, pod: str, *, at: str | None = None, run: str | None = None, tables_only: bool = False
    ) -> PodLife:
        """Return the life of a pod and why it was bound to its node, as `roadstead why`.

        pod: a name, `namespace/name`, a UID, or the beginning of one. at: explain it at this time
        (`3h20m`), as if it were on no node. run: as for `at`. tables_only: do not play the run
        again; the result has the life, and no explanation. Raises InputError for what is wrong.
        """
        name = self._name_of_run(run)
        at_us = None if at is None else time_of(at, source="at")
        if at is not None and tables_only:
            rule = "needs the run to be played again"
            raise InputError(rule, source=ARGUMENTS, field="at and tables_only")
        plugins = read_record(self.directory).plugins
        path = self.directory / name
        return life_of(path, name, pod, at_us, plugins, is_from_tables=tables_only)

    def check(self) -> Mapping[str, RunCheck]:
        """Check each run by its tables alone, as `roadstead check`; violations by run."""
        return {name: check_folder(self.directory / name) for name in self.summaries}

    def compare(self) -> tuple[Comparison, ...]:
        """Return the paired differences of each two configurations; empty for one.

        Of more than five configurations, each is compared with the first.
        """
        return compare_configs(self.directory, self.summaries)

    def _name_of_run(self, name: str | None) -> str:
        """Return the name if it is that of a run; None: that of the first. Raises InputError."""
        if name is None:
            return next(iter(self.summaries))
        if name not in self.summaries:
            problem = f"is no run (there are: {', '.join(self.summaries)})"
            raise InputError(problem, field="run", value=cut_short(name))
        return name

    def query(self, sql: str) -> Table:
        """Return the result of one SELECT over the tables, as `roadstead query`."""
        return RunQuery(self.directory).arrow(sql)


def load_run(directory: str | os.PathLike[str]) -> SimulationResult:
    """Read the results of `simulate` or `roadstead simulate` from their folder.

    Raises InputError if it holds no simulated runs, or if one of them is not finished.
    """
    folder = Path(os.fspath(directory))
    summaries = {each.name: read_summary(folder / each.name) for each in read_record(folder).runs}
    return SimulationResult(folder, summaries, ())


def simulate(
    scenario: ScenarioSource,
    *,
    output: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    plugin: str | tuple[str, ...] | list[str] = (),
    force: bool = False,
    resume: bool = False,
    progress: Callable[[SimulationProgress], None] | None = None,
) -> SimulationResult:
    """Play a scenario in virtual time, as `roadstead simulate`.

    scenario: a `Scenario`, a path, or its content as a dictionary, in which names of files are
    relative to the working directory. output: a folder; by default a temporary one. seed: in place
    of all seeds. force, resume: as the flags. Raises InputError for invalid input, RoadsteadError
    if a run fails.
    """
    file = scenario_file(scenario)
    if force and resume:
        raise InputError("exclude each other", source="arguments", field="force and resume")
    simulation = prepare_simulation(file, (plugin,) if isinstance(plugin, str) else tuple(plugin))
    temporary = None
    if output is None:
        temporary = TemporaryDirectory(prefix="roadstead-")
        output = temporary.name
    folder = Path(output)
    variants, horizon_us = simulation.variants(seed), simulation.plan.horizon_us
    prepare_folder(simulation, folder, variants, may_replace=force, is_resumed=resume)

    def on_progress(name: str, engine: Engine) -> None:
        if progress is not None:
            created = engine.simulated_pods.created
            progress(SimulationProgress(name, engine.now_us, horizon_us, created))

    summaries = list(play_all(simulation, folder, variants, on_progress))
    # The report is for a reader of the folder; a temporary one ends with the result.
    if temporary is None:
        write_report(folder, [*variants], summaries)
    by_name = dict(zip(variants, summaries, strict=True))
    return SimulationResult(folder, by_name, simulation.plan.notes, temporary)
