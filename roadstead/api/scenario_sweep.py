"""The steps of a sweep of a scenario that the command line and the Python API share."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Final, cast

from roadstead.api.scenario_runs import plan_with
from roadstead.config.scenario.read import ScenarioFile
from roadstead.config.scenario.vary import CONFIG, Axis, configs_of, packed
from roadstead.lab.scenario_sweep import Row, ScenarioSweep, rows_of, spreads, value_text
from roadstead.protocol.errors import InputError
from roadstead.report.paths import entries
from roadstead.sweeps.carry_out import (
    NoStore,
    Processes,
    ReportCounts,
    ResultStore,
    SweepEnd,
    carry_out,
)
from roadstead.sweeps.results_file import (
    RESULTS_FILE_NAME,
    ResultsFile,
    header_of,
    refuse_unfinished,
)
from roadstead.sweeps.tasks import Plain, Work

JSON_FILE: Final = "sweep.json"
CSV_FILE: Final = "sweep.csv"


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """The folder of the results.

    output: None for no files. has_tables: the tables of each run are written, too. is_resumed: a
    stopped sweep in the folder is continued.
    """

    output: Path | None
    has_tables: bool = False
    is_resumed: bool = False


def sweep_of(file: ScenarioFile, axes: Sequence[Axis], seeds: int | None) -> ScenarioSweep:
    """Return the sweep over some axes. Raises InputError; nothing has run.

    The configurations of the scenario are an axis, unless `axes` has others.
    """
    keys = [each.key for each in axes]
    if repeated := next((key for key in keys if keys.count(key) > 1), None):
        raise InputError("is varied twice", source="--vary", field=repeated)
    found = [(each.key, each.values) for each in axes]
    configs = configs_of(file)
    if len(configs) > 1 and not any(key.split(".")[0] in (CONFIG, "scheduler") for key in keys):
        found.append((CONFIG, tuple(configs)))
    # The scenario has a list of seeds; the option is a number of them.
    chosen_seeds = tuple(range(seeds)) if seeds is not None else tuple(file.scenario.seeds)
    planned = ScenarioSweep(file.scenario.metadata.name, tuple(found), chosen_seeds)
    planned.check()
    return planned


def prepare_sweep(file: ScenarioFile, planned: ScenarioSweep, folder: SweepFolder) -> None:
    """Compile every combination, and check the folder. Raises InputError; nothing has run."""
    if folder.is_resumed and folder.output is None:
        raise InputError("needs the --output folder of the sweep to continue", source="--resume")
    for values in planned.combinations():
        plan_with(file, values)
    if folder.output is not None and not folder.is_resumed:
        refuse_unfinished(folder.output / RESULTS_FILE_NAME)
        if entries(folder.output):
            raise InputError("holds other files; name a new directory", source=str(folder.output))


def run_sweep(
    file: ScenarioFile,
    planned: ScenarioSweep,
    folder: SweepFolder,
    processes_of: Callable[[Work], Processes | None],
    report: ReportCounts,
) -> tuple[list[Row], SweepEnd]:
    """Play the runs of a sweep that was prepared, and write its files.

    processes_of: returns the other processes that may run the tasks, None for none.
    """
    output = folder.output
    tables = output.resolve() / "runs" if output is not None and folder.has_tables else None
    tasks: list[dict[str, Plain]] = [
        {
            "values": cast("Plain", values),
            "seed": seed,
            "tables": "" if tables is None else str(tables / f"{index + 1:03}"),
        }
        for index, (values, seed) in enumerate(planned.runs())
    ]
    scenario = packed(file)
    work = Work("scenario", {"scenario": cast("Plain", scenario)}, tuple(tasks))
    with _store(planned, scenario, folder) as store:
        end = carry_out(work, processes_of(work), store, report, monotonic)
    rows = rows_of(planned, end.results)
    if output is not None:
        _write(output, planned, rows)
    return rows, end


@contextmanager
def _store(
    planned: ScenarioSweep, scenario: Mapping[str, object], folder: SweepFolder
) -> Iterator[ResultStore]:
    """Yield the storage of the results: a file in the output folder, if there is one."""
    if folder.output is None:
        yield NoStore()
        return
    # Everything that decides the results: a sweep is resumed only if all of it is equal.
    compared_on_resume = {
        "scenario": cast("Plain", scenario["document"]),
        "vary": cast("Plain", [[key, list(values)] for key, values in planned.axes]),
        "seeds": cast("Plain", list(planned.seeds)),
        "tables": folder.has_tables,
    }
    path, header = folder.output / RESULTS_FILE_NAME, header_of(compared_on_resume, planned.size)
    is_resumed = folder.is_resumed
    opened = ResultsFile.resume(path, header) if is_resumed else ResultsFile.begin(path, header)
    try:
        yield opened
    finally:
        opened.close()


def sweep_document(planned: ScenarioSweep, rows: Sequence[Row]) -> dict[str, object]:
    """Return the result as a JSON object."""
    return {
        "scenario": planned.scenario,
        "vary": {key: list(values) for key, values in planned.axes},
        "seeds": list(planned.seeds),
        "points": [
            {
                "values": dict(values),
                "runs": count,
                "metrics": {name: asdict(spread) for name, spread in metrics.items()},
            }
            for values, count, metrics in spreads(rows)
        ],
        "runs": [
            {"values": dict(row.values), "seed": row.seed, "metrics": dict(row.metrics)}
            for row in rows
        ],
    }


def metric_names(rows: Sequence[Row]) -> list[str]:
    """Return the names of all metrics, in the order of the runs."""
    return list(dict.fromkeys(name for row in rows for name in row.metrics))


def _write(output: Path, planned: ScenarioSweep, rows: Sequence[Row]) -> None:
    """Write sweep.json, and sweep.csv with a row for each run."""
    text = json.dumps(sweep_document(planned, rows), indent=2)
    (output / JSON_FILE).write_text(f"{text}\n", encoding="utf-8")
    keys = [key for key, _ in planned.axes]
    names = metric_names(rows)
    with (output / CSV_FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*keys, "seed", *names])
        for row in rows:
            values = (value_text(row.values[key]) for key in keys)
            writer.writerow([*values, row.seed, *(row.metrics.get(name, "") for name in names)])
