#!/usr/bin/env python3
"""Speed of reading manifests: JSON objects, from text to facts.

    python scripts/bench_import.py [--objects 100000] [--runs 5]

Each run is a process of its own. Medians of --runs runs are what to quote; a speed is a figure with
its machine and commit, never a test that passes or fails. For scheduling: `roadstead bench`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from roadstead.bench.machine import commit_of, this_machine
from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.manifests import manifests_text

ROOT = Path(__file__).resolve().parents[1]
IMPORT = (
    "import sys,time; t=time.perf_counter();"
    "from roadstead.facts.compile import compile_node, compile_pod;"
    "from roadstead.manifests import read_manifests;"
    "m=read_manifests([sys.argv[1]], stdin=sys.stdin.buffer);"
    "n=len([compile_node(x) for x in m.nodes])+len([compile_pod(x) for x in m.pods]);"
    "print(n, time.perf_counter()-t)"
)


def import_s(objects: Path) -> float:
    """Return the seconds of one import, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, str(objects)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout.split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="processes (default 5)")
    parser.add_argument(
        "--objects", type=int, default=100_000, help="a tenth nodes, the rest pods (default 100000)"
    )
    options = parser.parse_args()
    print(f"machine  {this_machine()}\ncommit   {commit_of(ROOT) or 'unknown'}", flush=True)
    with tempfile.TemporaryDirectory(prefix="roadstead-bench-") as folder:
        objects = Path(folder) / "objects.json"
        nodes = options.objects // 10
        trace = generate_fleet(nodes, options.objects - nodes, seed=0)
        objects.write_text(manifests_text(trace, "json"), encoding="utf-8")
        runs = [import_s(objects) for _ in range(options.runs)]
    low, middle, high = min(runs), statistics.median(runs), max(runs)
    print(f"import of {options.objects:,} objects: {middle:.3f} s ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
