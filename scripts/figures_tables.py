"""Tables of the documentation whose rows are of several commands, or of a whole sweep.

A function gets the rows of the page and answers with the same rows, in which the cells that are
made by commands are new. The others (names, remarks) are written by hand. The presets `omega-…` and
`parsync-…` repeat experiments of the papers on Omega and ParSync (docs/conflicts.md).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypedDict

Rows = list[list[str]]
Run = Callable[[str, str], str]
"""Runs a command in a folder; returns its standard output."""

EXAMPLES = "docs/examples"
GPU = "alibabacloud.com/gpu-milli"


@dataclass(frozen=True, slots=True)
class Table:
    """Recipe of a table. commands: for `--list`. make: the new rows from the page's rows."""

    commands: str
    make: Callable[[Rows, Run], Rows]


def openb_scores(page: Rows, run: Run) -> Rows:
    """Return rows with placed pods and GPUs in use for the options in each second cell."""
    rows = []
    for name, options, *_ in page:
        command = f"{_OPENB} {options.strip('`–')}".strip()
        result = json.loads(run(command, EXAMPLES))
        (gpu,) = [each for each in result["utilization"] if each["resource"] == GPU]
        used = f"{gpu['after'] / 1000:,.0f} ({gpu['after_fraction']:.1%})"
        rows.append([name, options, f"{result['placed']:,}", used])
    return rows


_OPENB = "roadstead schedule --trace openb.trace --runtime inline --format json"


def significant(number: float, digits: int) -> str:
    """Return a number rounded to significant digits, without an exponent."""
    if number == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(number)))
    rounded = round(number, decimals)
    # 0.096 with one digit is 0.1, not 0.10.
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, decimals)}f}"


def mean(band: Mapping[str, float], digits: int = 2, unit: str = "") -> str:
    return significant(band["mean"], digits) + unit


def mean_and_band(band: Mapping[str, float], digits: int = 2) -> str:
    """Return the mean and half of its confidence interval; only the mean if all runs are equal."""
    half = band["high"] - band["mean"]
    return mean(band, digits) + (f" ± {significant(half, digits - 1)}" if half else "")


def whole(band: Mapping[str, float]) -> str:
    return f"{band['mean']:,.0f}"


@dataclass(frozen=True, slots=True)
class Column:
    """The cell `at` of each row: a figure of the sweep's point that has the values in `where`.

    form: function that formats the figure's mean and interval.
    """

    at: int
    figure: str
    where: Mapping[str, object] = field(default_factory=dict)
    form: Callable[[Mapping[str, float]], str] = mean_and_band


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep. Its parameter `row` has the value at the beginning of the cell `row_at`."""

    command: str
    row: str
    columns: Sequence[Column]
    row_at: int = 0


def swept(sweeps: Sequence[Sweep], page: Rows, run: Run) -> Rows:
    """Return the page's rows with the cells of all sweeps; a sweep skips rows without a number."""
    rows = [list(row) for row in page]
    for sweep in sweeps:
        points: list[SweepPoint] = json.loads(run(f"{sweep.command} --format json", "."))["points"]
        for row in rows:
            number = re.match(r"[\d.]+", row[sweep.row_at])
            if number is None:
                continue
            for column in sweep.columns:
                wanted = {**column.where, sweep.row: float(number[0])}
                row[column.at] = column.form(_point(points, wanted)["figures"][column.figure])
    return rows


class SweepPoint(TypedDict):
    """A combination of parameters in a sweep, as `roadstead stress --format json` prints it."""

    values: dict[str, object]
    figures: dict[str, dict[str, float]]


def _point(points: Sequence[SweepPoint], wanted: Mapping[str, object]) -> SweepPoint:
    for point in points:
        if all(point["values"].get(name) == value for name, value in wanted.items()):
            return point
    raise LookupError(f"the sweep has no point with {dict(wanted)}")


def _of(*sweeps: Sweep) -> Table:
    return Table("; ".join(sweep.command for sweep in sweeps), partial(swept, sweeps))


_SLOTS = partial(mean_and_band, digits=3)
_CONFLICTS = ("fit", "version")
_TRANSACTIONS = ("incremental", "all-or-nothing")
_WAIT = partial(mean, unit=" s")

TABLES: Mapping[str, Table] = {
    "openb-scores": Table(f"{_OPENB} …", openb_scores),
    "omega-decision-time": _of(
        Sweep(
            "roadstead stress --preset omega-decision-time",
            "service_job_s",
            [
                Column(at + index, f"service_{figure}", {"placement": placement}, form)
                for at, figure, form in (
                    (1, "conflict_fraction", mean_and_band),
                    (3, "busyness", mean),
                    (5, "wait_s", _WAIT),
                )
                for index, placement in enumerate(("first-fit", "pack"))
            ],
        )
    ),
    "omega-choices": _of(
        Sweep(
            "roadstead stress --preset omega-choices --vary horizon_s=7200 --seeds 3",
            "service_job_s",
            [
                Column(
                    1 + 2 * index + offset,
                    "service_conflict_fraction",
                    {"conflicts": conflicts, "transaction": transaction},
                )
                for index, conflicts in enumerate(_CONFLICTS)
                for offset, transaction in enumerate(_TRANSACTIONS)
            ],
        )
    ),
    "omega-schedulers": _of(
        Sweep(
            "roadstead stress --preset omega-schedulers --seeds 5",
            "batch_schedulers",
            [
                *(
                    Column(1 + index, "batch_conflict_fraction", {"batch_rate": rate}, mean)
                    for index, rate in enumerate((1.0, 2.0, 4.0, 8.0))
                ),
                Column(5, "batch_busyness", {"batch_rate": 8.0}, mean),
                Column(6, "batch_wait_s", {"batch_rate": 8.0}, _WAIT),
            ],
        )
    ),
    "parsync-slots": _of(
        Sweep(
            "roadstead stress --preset parsync-schedulers --seeds 3",
            "schedulers",
            [
                Column(1, "extra_slots", {"partitions": 1}, _SLOTS),
                Column(2, "extra_slots", {"partitions": 20}, whole),
            ],
        ),
        Sweep(
            "roadstead stress --preset parsync-gap --seeds 3",
            "sync_gap_s",
            [
                Column(5, "extra_slots", {"partitions": 1}, _SLOTS),
                Column(6, "extra_slots", {"partitions": 10}, whole),
                Column(7, "extra_slots", {"partitions": 20}, whole),
            ],
            row_at=4,
        ),
    ),
    "parsync-partitions": _of(
        Sweep(
            "roadstead stress --preset parsync-partitions --vary partitions=1,5,10,20,40,80"
            " --seeds 3",
            "partitions",
            [
                Column(at, "extra_share", {"look": look, "variance": variance})
                for at, look, variance in (
                    (1, "fresh", 0.0),
                    (2, "fresh", 1.0),
                    (3, "all", 0.0),
                    (4, "all", 1.0),
                )
            ],
        )
    ),
}
"""The tables that a mark may name."""
