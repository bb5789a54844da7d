"""The output directory of a sweep.

runs.parquet     a row for each run: parameters, seed, figures
runs.json        the same, with the sweep's definition, command, versions, inputs and machine
points.json      mean and 95% interval of each figure of each combination; the recommendation
report.html      plots and tables, for reading offline
plots/           one SVG file for each figure
results.jsonl    the figures of each run, written when it ended; `--resume` continues from them
journal, runs/   of sweeps over the product: journals of the binders (`roadstead check`)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from arro3.core import Table

from roadstead.lab.recommend import Recommendation
from roadstead.lab.sweep import LabSweepResult
from roadstead.protocol.errors import InputError
from roadstead.report.arrow import FLOAT64, INT64, column, make_table, type_of
from roadstead.report.parquet import write_parquet
from roadstead.report.paths import JOURNAL_FOLDER, entries
from roadstead.report.plot import svg
from roadstead.report.result import InputDigest, Json
from roadstead.report.stress_page import page
from roadstead.report.stress_plots import plots
from roadstead.sweeps.results_file import RESULTS_FILE_NAME, refuse_unfinished

FILES = ("runs.parquet", "runs.json", "points.json", "report.html")
FORMAT = "roadstead-stress"
PLOTS = "plots"
RUN_FOLDERS = (JOURNAL_FOLDER, "runs")


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a sweep: the user's inputs, the machine, and the commit or "".

    engine: what ran: `model` (of the lab), or the product: `virtual` (in virtual time), `inline`
    (all actors in one process) or `ray`.
    """

    engine: str
    inputs: tuple[InputDigest, ...]
    machine: Mapping[str, Json]
    commit: str


def check_stress_directory(directory: Path, *, is_resumed: bool = False) -> None:
    """Raise InputError unless the directory is missing, empty, or holds a report without journals.

    Journals of committed binds, and the runs of an unfinished sweep, are never overwritten. A sweep
    that is resumed may have both.
    """
    source = str(directory)
    names = {path.name for path in entries(directory)}
    if names - {*FILES, PLOTS, RESULTS_FILE_NAME, *RUN_FOLDERS}:
        raise InputError(
            "holds files that are no report of a sweep; name a new directory", source=source
        )
    if is_resumed and (not names or RESULTS_FILE_NAME in names):
        return
    if not is_resumed:
        refuse_unfinished(directory / RESULTS_FILE_NAME)
    if names & set(RUN_FOLDERS):
        raise InputError("holds journals of an earlier sweep; name a new directory", source=source)
    if is_resumed:
        raise InputError(f"holds no {RESULTS_FILE_NAME} of a sweep to continue", source=source)


def write_stress(
    directory: Path,
    swept: LabSweepResult,
    command: str,
    versions: dict[str, str],
    advice: Recommendation | None = None,
    origin: Origin | None = None,
) -> None:
    """Write all files. Raises InputError if the directory cannot be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_parquet(directory / FILES[0], _table(swept))
        _write_json(directory / FILES[1], runs_document(swept, command, versions, origin))
        _write_json(directory / FILES[2], points_document(swept, advice))
        text = page(swept, command, versions, advice)
        (directory / FILES[3]).write_text(text, encoding="utf-8")
        (directory / PLOTS).mkdir(exist_ok=True)
        # There are no plots if no parameter was varied.
        drawn = plots(swept.sweep, swept.points())
        for metric, each in zip(swept.sweep.study.metrics, drawn, strict=False):
            path = directory / PLOTS / f"{metric.replace('_', '-')}.svg"
            path.write_text(svg(each) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(directory)) from error


def _table(swept: LabSweepResult) -> Table:
    values = list(swept.rows[0].values)
    metrics = list(swept.rows[0].metrics)
    columns = {}
    for name in values:
        chosen = [row.values[name] for row in swept.rows]
        columns[name] = column(chosen, type_of(chosen))
    columns["seed"] = column([row.seed for row in swept.rows], INT64)
    for name in metrics:
        columns[name] = column([row.metrics[name] for row in swept.rows], FLOAT64)
    return make_table(columns)


def runs_document(
    swept: LabSweepResult, command: str, versions: dict[str, str], origin: Origin | None = None
) -> dict[str, Json]:
    """The definition of the sweep, its origin, and every run."""
    sweep = swept.sweep
    axes: dict[str, Json] = {name: list(values) for name, values in sweep.axes}
    runs: list[Json] = [
        {"values": dict(row.values), "seed": row.seed, "figures": dict(row.metrics)}
        for row in swept.rows
    ]
    return {
        "format": FORMAT,
        "title": sweep.title,
        "study": sweep.study.name,
        "command": command,
        "vary": axes,
        "set": dict(sweep.fixed),
        "seeds": list(sweep.seeds),
        "versions": dict(versions),
        **(asdict(origin) if origin is not None else {}),
        "runs": runs,
    }


def points_document(swept: LabSweepResult, advice: Recommendation | None = None) -> dict[str, Json]:
    """Mean and 95% band of each figure of each combination."""
    points: list[Json] = [
        {
            "values": dict(point.values),
            "figures": {name: asdict(each) for name, each in point.bands.items()},
        }
        for point in swept.points()
    ]
    document: dict[str, Json] = {
        "study": swept.sweep.study.name,
        "set": dict(swept.sweep.fixed),
        "seeds": list(swept.sweep.seeds),
        "points": points,
    }
    if advice is not None:
        document["recommendation"] = {
            "text": advice.text,
            "supported": advice.is_supported,
            "values": dict(advice.values),
            "reasons": list(advice.reasons),
        }
    return document


def _write_json(path: Path, document: dict[str, Json]) -> None:
    text = json.dumps(document, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
