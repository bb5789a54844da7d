#!/usr/bin/env python3
"""Draw the pictures of docs/plots again, from the figures recorded there.

    scripts/plots.py [FOLDER]       FOLDER: docs/plots unless another is named

sweeps.json has the points of `roadstead stress`, growth.json is that of `scripts/growth.py`,
compare.json has the metrics of `roadstead compare` that differ.
Nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import growth  # noqa: E402

from roadstead.cli.stress_plan import PRODUCT  # noqa: E402
from roadstead.cli.stress_product import PARAMETERS  # noqa: E402
from roadstead.lab.paired import difference  # noqa: E402
from roadstead.lab.statistics import Band  # noqa: E402
from roadstead.lab.studies import MODEL_STUDIES, Metrics, Study, Values  # noqa: E402
from roadstead.lab.sweep import Point, make_sweep  # noqa: E402
from roadstead.report.paired_plot import difference_svg  # noqa: E402
from roadstead.report.plot import svg  # noqa: E402
from roadstead.report.stress_plots import plots  # noqa: E402

DOCS_PLOTS = ROOT / "docs" / "plots"


class RecordedSweep(TypedDict):
    """A recorded sweep of one figure. points: values, mean, low and high of each combination."""

    command: str
    commit: str
    study: str
    figure: str
    seeds: int
    vary: dict[str, list[object]]
    points: list[list[float | str]]


def draw(name: str, recorded: RecordedSweep) -> str:
    """Return a recorded sweep as SVG."""
    figure = recorded["figure"]
    study = replace(_study(recorded["study"]), metrics=(figure,))
    seeds = range(recorded["seeds"])
    sweep = make_sweep(study, recorded["vary"], {}, seeds, source=name)
    names = [axis for axis, _ in sweep.axes]
    points = [
        Point(dict(zip(names, values, strict=True)), {figure: Band(*map(float, band))})
        for *values, mean, low, high in recorded["points"]
        for band in [(mean, low, high)]
    ]
    (plot,) = plots(sweep, points)
    return svg(plot)


def _study(name: str) -> Study:
    if name == PRODUCT:
        return Study(PRODUCT, "", PARAMETERS, _no_run, ())
    return MODEL_STUDIES[name]


def _no_run(values: Values, seed: int) -> Metrics:
    raise AssertionError("recorded sweeps are only drawn")


def draw_differences(recorded: dict[str, Any]) -> str:
    """Return the metrics of a compare.json as SVG."""
    differences = [
        difference(
            each["metric"],
            [pair["a"] for pair in each["values"]],
            [pair["b"] for pair in each["values"]],
            [pair["run"] for pair in each["values"]],
        )
        for each in recorded["metrics"]
    ]
    return difference_svg("A", "B", differences)


def draw_all(folder: Path) -> dict[str, str]:
    """Return file name → SVG for everything recorded in a folder."""
    sweeps = json.loads((folder / "sweeps.json").read_text(encoding="utf-8"))
    known = json.loads((folder / "growth.json").read_text(encoding="utf-8"))
    compared = json.loads((folder / "compare.json").read_text(encoding="utf-8"))
    return {
        "compare.svg": draw_differences(compared),
        **{f"{name}.svg": draw(name, recorded) for name, recorded in sweeps.items()},
        **{f"growth-{axis}.svg": growth.plot(axis, known) for axis in growth.AXES},
    }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=DOCS_PLOTS, metavar="FOLDER")
    folder = parser.parse_args(arguments).folder
    for name, drawn in draw_all(folder).items():
        (folder / name).write_text(drawn + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
