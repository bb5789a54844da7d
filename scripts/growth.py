#!/usr/bin/env python3
"""Speed by numbers of nodes, pods, classes and schedulers: figures as JSON, plots as SVG.

    scripts/growth.py OUT                    all axes: OUT/growth.json, OUT/growth-AXIS.svg
    scripts/growth.py OUT --only nodes       one axis
    scripts/growth.py OUT --plot             the plots again, from OUT/growth.json

Every point is `roadstead bench` in a process of its own, the median of --runs; points that are
there already are not run again. Measure on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from roadstead.lab.statistics import Band  # noqa: E402
from roadstead.report.plot import Plot, PlotLine, svg  # noqa: E402

COMMAND = [sys.executable, "-m", "roadstead", "bench"]
RUNTIMES = ("inline", "ray")
TIMEOUT_S = 900

TEMPLATES = ROOT / "roadstead" / "bench" / "workloads" / "templates"


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """One point of an axis: a workload by name, or numbers of nodes and pods."""

    x: float
    line: str
    runtime: str
    name: str = ""
    nodes: int = 5_000
    pods: int = 10_000
    flags: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.line} {self.x:g}"


def _nodes() -> Iterator[GrowthPoint]:
    for nodes in (100, 1_000, 5_000, 20_000, 100_000):
        pods = min(10_000, 40 * nodes)
        yield from (GrowthPoint(nodes, runtime, runtime, "", nodes, pods) for runtime in RUNTIMES)


def _pods() -> Iterator[GrowthPoint]:
    for pods in (1_000, 5_000, 20_000, 100_000):
        yield from (GrowthPoint(pods, runtime, runtime, "", 5_000, pods) for runtime in RUNTIMES)


def _classes() -> Iterator[GrowthPoint]:
    for runtime in RUNTIMES:
        yield GrowthPoint(1, runtime, runtime)
        yield GrowthPoint(10, runtime, runtime, "TenClasses/5000Nodes_50000Pods")
        yield GrowthPoint(10_000, runtime, runtime, "AllDistinct/5000Nodes_10000Pods")


def _schedulers() -> Iterator[GrowthPoint]:
    for mode in ("shared", "partitioned"):
        for schedulers in (1, 2, 4, 8):
            flags = ("--schedulers", str(schedulers), "--mode", mode)
            yield GrowthPoint(
                schedulers, f"{mode}, ray", "ray", nodes=50_000, pods=20_000, flags=flags
            )


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis. varied: for the title of the plot. fixed: the constant values, as a sentence."""

    varied: str
    x_title: str
    fixed: str
    points: Callable[[], Iterator[GrowthPoint]]


AXES = {
    "nodes": Axis(
        "number of nodes",
        "Nodes",
        "10,000 pods of one class (4,000 on 100 nodes), onto empty nodes.",
        _nodes,
    ),
    "pods": Axis("number of pods", "Pods", "Pods of one class, onto 5,000 empty nodes.", _pods),
    "classes": Axis(
        "number of pod classes",
        "Classes of pods",
        "10,000 pods (50,000 of ten classes), onto 5,000 empty nodes.",
        _classes,
    ),
    "schedulers": Axis(
        "number of schedulers",
        "Schedulers",
        "20,000 pods of one class, onto 50,000 empty nodes.",
        _schedulers,
    ),
}


def workload(point: GrowthPoint) -> str:
    """Return a file in scheduler_perf's format (JSON is YAML): pods for empty nodes."""
    steps = [
        {"opcode": "createNodes", "countParam": "$nodes"},
        {"opcode": "createPods", "countParam": "$pods", "collectMetrics": True},
    ]
    only = {"name": "one", "params": {"nodes": point.nodes, "pods": point.pods}}
    template = str(TEMPLATES / "pod.yaml")
    case = {"name": "Growth", "defaultPodTemplatePath": template, "workloadTemplate": steps}
    return json.dumps([case | {"workloads": [only]}])


def measure(point: GrowthPoint) -> dict[str, float | str]:
    """Return pods per second, memory and commit of one run."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "growth.yaml"
        file.write_text(workload(point), encoding="utf-8")
        what = [point.name] if point.name else ["--file", str(file)]
        command = [*COMMAND, *what, "--json", "--runtime", point.runtime, *point.flags]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=ROOT
        )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    found = json.loads(done.stdout)
    (result,) = found["results"]
    return {
        "pods_per_s": result["pods_per_s"],
        "peak_bytes": result["peak_bytes"],
        "commit": found["commit"],
    }


def run(axis: str, runs: int, known: dict[str, list[dict[str, float | str]]]) -> None:
    """Measure the points of an axis that are not known yet."""
    for point in AXES[axis].points():
        figures = known.setdefault(f"{axis}: {point.key}", [])
        while len(figures) < runs:
            figures.append(measure(point))
            rate = figures[-1]["pods_per_s"]
            print(f"{axis}: {point.key}: {rate:,.0f} pods/s", file=sys.stderr, flush=True)


def plot(axis: str, known: dict[str, list[dict[str, float | str]]]) -> str:
    """Return the points of an axis as SVG; "" if there are none."""
    drawn_axis = AXES[axis]
    lines: dict[str, list[tuple[float, Band]]] = {}
    runs = set[int]()
    for point in drawn_axis.points():
        rates = [float(each["pods_per_s"]) for each in known.get(f"{axis}: {point.key}", ())]
        if rates:
            middle = Band(statistics.median(rates), min(rates), max(rates))
            lines.setdefault(point.line, []).append((point.x, middle))
            runs.add(len(rates))
    if not lines:
        return ""
    drawn = tuple(PlotLine(name, tuple(found)) for name, found in lines.items())
    title = f"Pods scheduled per second by {drawn_axis.varied}"
    interval = f"slowest to fastest of {_of_runs(runs)} runs; the marker is at their median"
    single = ("One run of each point: no intervals.",) if runs == {1} else ()
    notes = (drawn_axis.fixed, *single)
    return svg(
        Plot(title, drawn_axis.x_title, "Pods per second", drawn, interval=interval, notes=notes)
    )


def _of_runs(runs: set[int]) -> str:
    fewest, most = min(runs), max(runs)
    return str(most) if fewest == most else f"{fewest} to {most}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="folder of the figures and plots")
    parser.add_argument("--only", choices=AXES, action="append", help="one axis; may be repeated")
    parser.add_argument("--runs", type=int, default=1, help="runs of each point (default 1)")
    parser.add_argument("--plot", action="store_true", help="only draw what is there")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "growth.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for axis in options.only or AXES:
        if not options.plot:
            try:
                run(axis, options.runs, known)
            finally:
                file.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        if drawn := plot(axis, known):
            (options.out / f"growth-{axis}.svg").write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
