"""The files of a comparison.

compare.json     all metrics with intervals, verdicts, and the values of each pair
compare.csv      a row for each metric
report.html      differences, and pods and resources over time where runs have tables

The tables of a run have samples: the values of its metrics at regular times.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Final

from roadstead.api.paired_runs import Comparison, RunGroup
from roadstead.api.run_folder import COMPARISON_FILE, REPORT_FILE, replace_text
from roadstead.api.simulated_report import sampled_run
from roadstead.protocol.errors import InputError
from roadstead.report.paired_page import paired_page
from roadstead.report.result import installed_versions
from roadstead.report.simulated_plots import SampledRun

CSV_FILE: Final = "compare.csv"

RUNS_AVERAGED: Final = 20
"""Maximum number of pairs whose samples are read for the report."""

WITHOUT_TABLES: Final = (
    "The runs have no tables; with --tables, the report also shows pods and resources over time."
)


def write_comparison(
    folder: Path, comparison: Comparison, groups: tuple[RunGroup, RunGroup]
) -> None:
    """Write the files. groups: A and B. Raises InputError if they cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(comparison.document(), indent=2, ensure_ascii=False)
        replace_text(folder / COMPARISON_FILE, f"{text}\n")
        _write_csv(folder / CSV_FILE, comparison)
        sampled, notes = _sampled(groups)
        a, b = comparison.a, comparison.b
        page = paired_page(a, b, comparison.differences, sampled, notes, installed_versions())
        replace_text(folder / REPORT_FILE, page)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", source=str(folder)) from error


def _write_csv(path: Path, comparison: Comparison) -> None:
    table = comparison.to_arrow()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.column_names)
        # Without an interval the cells are empty.
        columns = [table.column(name).to_pylist() for name in table.column_names]
        writer.writerows(zip(*columns, strict=True))


def _sampled(groups: tuple[RunGroup, RunGroup]) -> tuple[list[SampledRun], list[str]]:
    """Return A and B over time, as means over the pairs, and notes; nothing without tables."""
    a, b = groups
    pairs = [(run.folder, b.runs[key].folder) for key, run in a.runs.items() if key in b.runs]
    read = [(x, y) for x, y in pairs if x and y and x.is_dir() and y.is_dir()][:RUNS_AVERAGED]
    if not read:
        return [], [WITHOUT_TABLES]
    sides = [_mean("A", (x for x, _ in read)), _mean("B", (y for _, y in read))]
    if len(read) == 1:
        return sides, []
    first = "" if len(read) == len(pairs) else "the first "
    return sides, [f"The plots over time show means over {first}{len(read)} pairs."]


def _mean(name: str, folders: Iterable[Path]) -> SampledRun:
    """Average the samples of some runs, at the times that all of them have."""
    # By metric and resource, then by time.
    values: defaultdict[tuple[str, str], defaultdict[int, list[float]]]
    values = defaultdict(lambda: defaultdict(list))
    runs = 0
    for folder in folders:
        runs += 1
        for metric, samples in sampled_run(folder, name).samples.items():
            for at_us, value in samples:
                values[metric][at_us].append(value)
    return SampledRun(
        name,
        {
            metric: [(at_us, fmean(each)) for at_us, each in by_time.items() if len(each) == runs]
            for metric, by_time in values.items()
        },
    )
