#!/usr/bin/env python3
"""Benchmarks with recorded figures: prints machine, commit, command and what was measured.

    python scripts/bench.py openb DIR      the openb trace on Ray, from command to summary
    python scripts/bench.py ten            5,000 nodes, 10,000 pods of ten shapes
    python scripts/bench.py import         100,000 JSON objects, from text to facts

Each run is a process of its own, as its user would start it. Medians of --runs runs are what to
quote; a speed is a figure with its machine and commit, never a test that passes or fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "roadstead"]


def machine() -> str:
    """What the figures were measured on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        model = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
            model,
        )
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    )


def commit() -> str:
    """The commit that is checked out, marked where the tree differs from it."""
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty"],  # noqa: S607
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="roadstead-bench-") as folder:
        yield Path(folder)


def run_schedule(arguments: list[str]) -> dict[str, float]:
    """One run of `roadstead schedule`: seconds of the whole command, and what its summary says."""
    started = time.perf_counter()
    done = subprocess.run(
        [*COMMAND, "schedule", *arguments, "--format", "json"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    elapsed_s = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"the run failed with {done.returncode}:\n{done.stderr[-2000:]}")
    summary = json.loads(done.stdout)
    figures = {"command_s": elapsed_s, "pods_per_s": summary["pods_per_s"]}
    figures |= {"placed": summary["placed"], "pending": summary["pending"]}
    return figures | {f"{k}": v for k, v in summary["timings_s"].items()}


def openb(options: argparse.Namespace, folder: Path) -> Callable[[], dict[str, float]]:
    trace = folder / "openb.trace"
    subprocess.run(
        [*COMMAND, "trace", "import", "openb", options.dir, "-o", str(trace)], cwd=ROOT, check=True
    )
    return lambda: run_schedule(["--trace", str(trace), *_flags(options)])


def ten(options: argparse.Namespace, folder: Path) -> Callable[[], dict[str, float]]:
    from roadstead.fleet.generate import ten_shapes
    from roadstead.fleet.trace_file import write_trace

    trace = folder / "ten.trace"
    write_trace(trace, ten_shapes(options.nodes, options.pods, seed=0))
    return lambda: run_schedule(["--trace", str(trace), *_flags(options)])


def _flags(options: argparse.Namespace) -> list[str]:
    return [
        "--runtime", options.runtime, "--workers", str(options.workers), "--batch",
        str(options.batch),
    ]  # fmt: skip


def import_json(options: argparse.Namespace, folder: Path) -> Callable[[], dict[str, float]]:
    from roadstead.fleet.generate import generate_fleet
    from roadstead.fleet.manifests import manifests_text

    objects = folder / "objects.json"
    trace = generate_fleet(options.objects // 10, options.objects - options.objects // 10, seed=0)
    objects.write_text(manifests_text(trace, "json"), encoding="utf-8")
    code = (
        "import sys,time; t=time.perf_counter();"
        "from roadstead.facts.compile import compile_node, compile_pod;"
        "from roadstead.manifests import read_manifests;"
        "m=read_manifests([sys.argv[1]], stdin=sys.stdin.buffer);"
        "n=len([compile_node(x) for x in m.nodes])+len([compile_pod(x) for x in m.pods]);"
        "print(n, time.perf_counter()-t)"
    )

    def once() -> dict[str, float]:
        done = subprocess.run(
            [sys.executable, "-c", code, str(objects)],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        count, seconds = done.stdout.split()
        return {"objects": float(count), "import_s": float(seconds)}

    return once


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("openb", "ten", "import"))
    parser.add_argument("dir", nargs="?", help="openb: the folder of the CSV files")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--runtime", default="ray", choices=("ray", "inline"))
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--objects", type=int, default=100_000)
    options = parser.parse_args()
    if options.what == "openb" and options.dir is None:
        parser.error("openb needs the folder of the CSV files")
    print(f"machine  {machine()}")
    print(f"commit   {commit()}")
    print(f"command  {' '.join(sys.argv)}", flush=True)
    kinds = {"openb": openb, "ten": ten, "import": import_json}
    with scratch() as folder:
        once = kinds[options.what](options, folder)
        runs = []
        for index in range(options.runs):
            runs.append(once())
            first = ", ".join(f"{name} {value:,.2f}" for name, value in list(runs[-1].items())[:4])
            print(f"run {index + 1}: {first}", file=sys.stderr, flush=True)
    print(f"{'figure':28}{'min':>12}{'median':>12}{'max':>12}")
    for name in runs[0]:
        values = [run[name] for run in runs if name in run]
        print(
            f"{name:28}{min(values):12,.3f}{statistics.median(values):12,.3f}{max(values):12,.3f}"
        )


if __name__ == "__main__":
    main()
