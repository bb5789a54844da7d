"""The steps of a sweep of a scenario that the command line and the Python API share.

    ScenarioSweep, the combinations and seeds ──► PreparedSweep, compiled and checked
    ──► tasks, one for each run ──► rows, the metrics of each run ──► files

The tasks are carried out in this process or others (`roadstead.sweeps.carry_out`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Final, cast

from roadstead.api.run_folder import REPORT_FILE, replace_text
from roadstead.api.scenario_plan import plan_of
from roadstead.config.scenario.read import ScenarioFile
from roadstead.config.scenario.vary import CONFIG, Axis, configs_of, packed, plugins_of, vary
from roadstead.framework.user_plugins import digests_of
from roadstead.lab.scenario_sweep import (
    ScenarioSweep,
    SweepRow,
    rows_of,
    spreads,
    tables_of,
    value_text,
)
from roadstead.protocol.errors import InputError
from roadstead.report.paths import entries
from roadstead.report.result import installed_versions
from roadstead.report.scenario_sweep_page import scenario_sweep_page
from roadstead.scenario.inputs import FileDigests, document_digest
from roadstead.sweeps.carry_out import (
    NoStore,
    OnResult,
    Processes,
    ReportCounts,
    ResultStore,
    SweepEnd,
    carry_out,
    ignore_result,
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
    varied = [(each.key, each.values) for each in axes]
    configs = configs_of(file)
    if len(configs) > 1 and not any(key.split(".")[0] in (CONFIG, "scheduler") for key in keys):
        varied.append((CONFIG, tuple(configs)))
    # The scenario has a list of seeds; the option is a number of them.
    chosen_seeds = tuple(range(seeds)) if seeds is not None else tuple(file.scenario.seeds)
    planned = ScenarioSweep(file.scenario.metadata.name, tuple(varied), chosen_seeds)
    planned.check()
    return planned


@dataclass(frozen=True, slots=True)
class PreparedSweep:
    """A sweep whose combinations were compiled.

    planned: its combinations and seeds. plugins: for each combination in order, the dotted paths of
    its plugins; digests: for each, (module, SHA-256) of their modules. plugin_dir: as in `RunPlan`.
    inputs: SHA-256 of all files, by name. notes: on the scenario.
    """

    file: ScenarioFile
    planned: ScenarioSweep
    folder: SweepFolder
    plugins: tuple[tuple[str, ...], ...]
    digests: tuple[tuple[tuple[str, str], ...], ...]
    plugin_dir: str
    inputs: Mapping[str, str]
    notes: tuple[str, ...]


def prepare_sweep(
    file: ScenarioFile, planned: ScenarioSweep, folder: SweepFolder, plugins: Sequence[str] = ()
) -> PreparedSweep:
    """Compile every combination, and check the folder. Raises InputError; nothing has run.

    plugins: of all combinations, as for `--plugin`; the key `plugin` adds others to them.
    """
    if folder.is_resumed and folder.output is None:
        raise InputError("needs the --output folder of the sweep to continue", source="--resume")
    paths_and_digests = []
    document = document_digest(file)
    inputs = {document.name: document.sha256}
    notes: dict[str, None] = {}
    files = FileDigests()
    for values in planned.combinations():
        varied = vary(file, values)
        plan, chosen = plan_of(varied, (*plugins, *plugins_of(values)))
        notes |= dict.fromkeys(plan.notes)
        inputs |= {each.name: each.sha256 for each in files.of(varied)}
        paths_and_digests.append((chosen.paths, digests_of(chosen.paths)))
    inputs |= {f"plugin {name}": digest for _, each in paths_and_digests for name, digest in each}
    if folder.output is not None and not folder.is_resumed:
        refuse_unfinished(folder.output / RESULTS_FILE_NAME)
        check_new_folder(folder.output)
    return PreparedSweep(
        file,
        planned,
        folder,
        tuple(paths for paths, _ in paths_and_digests),
        tuple(digests for _, digests in paths_and_digests),
        str(Path.cwd()) if any(paths for paths, _ in paths_and_digests) else "",
        inputs,
        tuple(notes),
    )


def check_new_folder(folder: Path) -> None:
    """Raise InputError if the folder holds files; it need not exist."""
    if entries(folder):
        raise InputError("holds other files; name a new directory", source=str(folder))


def run_sweep(
    prepared: PreparedSweep,
    processes_of: Callable[[Work], Processes | None],
    report: ReportCounts,
    on_result: OnResult = ignore_result,
) -> tuple[list[SweepRow], SweepEnd]:
    """Play the runs of a sweep, and write its files.

    processes_of: returns the other processes that may run the tasks, None for none. on_result:
    called with the index of each run that has ended, and its metrics.
    """
    planned, output = prepared.planned, prepared.folder.output
    has_tables = output is not None and prepared.folder.has_tables
    # As data that other processes can read.
    scenario = packed(prepared.file)
    shared: dict[str, Plain] = {
        "scenario": cast("Plain", scenario),
        "plugin_dir": prepared.plugin_dir,
    }
    work = Work(function="scenario", shared=shared, tasks=_tasks(prepared))
    with _store(prepared, scenario) as store:
        end = carry_out(work, processes_of(work), store, report, monotonic, on_result)
    rows = rows_of(planned, end.results, has_tables=has_tables)
    if output is not None:
        _write(output, prepared, rows)
    return rows, end


def _tasks(prepared: PreparedSweep) -> tuple[dict[str, Plain], ...]:
    """Return the task of each run; the folder of its tables is an absolute path."""
    output, seeds = prepared.folder.output, len(prepared.planned.seeds)
    has_tables = output is not None and prepared.folder.has_tables
    folder = output.resolve() if has_tables and output is not None else Path()
    tasks: list[dict[str, Plain]] = []
    for index, (values, seed) in enumerate(prepared.planned.runs()):
        combination = index // seeds
        digests: list[Plain] = [list(each) for each in prepared.digests[combination]]
        tasks.append(
            {
                "values": cast("Plain", values),
                "seed": seed,
                "tables": str(folder / tables_of(index)) if has_tables else "",
                "plugins": list(prepared.plugins[combination]),
                "digests": digests,
            }
        )
    return tuple(tasks)


@contextmanager
def _store(prepared: PreparedSweep, scenario: Mapping[str, object]) -> Iterator[ResultStore]:
    """Yield the storage of the results: a file in the output folder, if there is one."""
    folder, planned = prepared.folder, prepared.planned
    if folder.output is None:
        yield NoStore()
        return
    # Everything that decides the results: a sweep is resumed only if all of it is equal.
    compared_on_resume = {
        "scenario": cast("Plain", scenario["document"]),
        "vary": cast("Plain", [[key, list(values)] for key, values in planned.axes]),
        "seeds": cast("Plain", list(planned.seeds)),
        "tables": folder.has_tables,
        "plugins": cast("Plain", [list(each) for each in prepared.plugins]),
        # Each by itself, so that an error names the one that has changed.
        **{f"input {name}": digest for name, digest in prepared.inputs.items()},
    }
    path, header = folder.output / RESULTS_FILE_NAME, header_of(compared_on_resume, planned.size)
    is_resumed = folder.is_resumed
    opened = ResultsFile.resume(path, header) if is_resumed else ResultsFile.begin(path, header)
    try:
        yield opened
    finally:
        opened.close()


def sweep_document(prepared: PreparedSweep, rows: Sequence[SweepRow]) -> dict[str, object]:
    """Return the result as a JSON object."""
    planned = prepared.planned
    return {
        "scenario": planned.scenario,
        "vary": {key: list(values) for key, values in planned.axes},
        "seeds": list(planned.seeds),
        "inputs": dict(prepared.inputs),
        "points": [
            {
                "values": dict(values),
                "runs": count,
                "metrics": {name: asdict(spread) for name, spread in metrics.items()},
            }
            for values, count, metrics in spreads(rows)
        ],
        "runs": [
            {
                "values": dict(row.values),
                "seed": row.seed,
                "metrics": dict(row.metrics),
                **({"tables": row.tables} if row.tables else {}),
            }
            for row in rows
        ],
    }


def metric_names(rows: Sequence[SweepRow]) -> list[str]:
    """Return the names of all metrics, in the order of the runs."""
    return list(dict.fromkeys(name for row in rows for name in row.metrics))


def _write(output: Path, prepared: PreparedSweep, rows: Sequence[SweepRow]) -> None:
    """Write sweep.json, and sweep.csv with a row for each run. Raises InputError."""
    planned = prepared.planned
    text = json.dumps(sweep_document(prepared, rows), indent=2)
    replace_text(output / JSON_FILE, f"{text}\n")
    keys = [key for key, _ in planned.axes]
    names = metric_names(rows)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow([*keys, "seed", *names])
    for row in rows:
        values = (value_text(row.values[key]) for key in keys)
        writer.writerow([*values, row.seed, *(row.metrics.get(name, "") for name in names)])
    replace_text(output / CSV_FILE, table.getvalue())


def write_sweep_report(output: Path, prepared: PreparedSweep, rows: Sequence[SweepRow]) -> None:
    """Write report.html, unless no run has ended. Raises InputError if it cannot be written."""
    if not rows:
        return
    page = scenario_sweep_page(prepared.planned, rows, installed_versions())
    replace_text(output / REPORT_FILE, page)
