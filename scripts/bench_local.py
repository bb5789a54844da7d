"""Cost of a decision in one process without actors: `LocalRun`, pods one at a time.

    scripts/bench_local.py [--nodes N] [--pods P] [--batch B] [--no-kernel]

Prints processor time per pod, from submission to the commit, and what 20 million additions in a
Python loop took just before.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from roadstead.bench.calibration import calibrate
from roadstead.config.settings import Settings
from roadstead.cycle.batch import CompiledKernel
from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.local.run import LocalRun
from roadstead.run import RunPlan
from roadstead.scenario.bench_plans import uniform_nodes

WARM_PODS = 50
"""Pods decided before the measured ones, so that per-class results are already cached."""


def schedule(run: LocalRun, pods: Sequence[Pod], batch: int) -> None:
    """Submit and schedule pods, one batch after another."""
    for start in range(0, len(pods), batch):
        run.submit(pods[start : start + batch])
        run.run(0.0)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=5000, help="number of nodes (default 5000)")
    parser.add_argument("--pods", type=int, default=1000, help="number of pods (default 1000)")
    parser.add_argument("--batch", type=int, default=1, help="pods submitted at once (default 1)")
    parser.add_argument("--no-kernel", action="store_true", help="decide by the plugins alone")
    options = parser.parse_args()
    for name in ("nodes", "pods", "batch"):
        if getattr(options, name) < 1:
            parser.error(f"argument --{name}: must be at least 1")
    additions_s = calibrate().processor_s
    compiled_kernel = None if options.no_kernel else CompiledKernel(load(), DecisionCounts())
    run = LocalRun(RunPlan(Settings(batch=options.batch)), compiled_kernel=compiled_kernel)
    run.add_nodes(uniform_nodes(options.nodes))
    facts = PodFacts(
        scheduler_name="default-scheduler",
        requests=(("cpu", 100), ("memory", 500 << 20)),
        nonzero_cpu_milli=100,
        nonzero_memory_bytes=500 << 20,
    )
    pods = [
        (PodIdentity(f"uid-{number}", "default", f"pod-{number}"), facts)
        for number in range(WARM_PODS + options.pods)
    ]
    schedule(run, pods[:WARM_PODS], options.batch)
    began = time.process_time()
    schedule(run, pods[WARM_PODS:], options.batch)
    spent_s = time.process_time() - began
    why = run.pending()[:1]
    assert len(run.placements()) == len(pods), f"{len(run.placements())} pods are placed: {why}"
    each_us = spent_s / options.pods * 1e6
    print(f"20 million additions {additions_s:.2f} s")
    print(
        f"{each_us:.0f} us of processor time per pod: {options.nodes} nodes, batch {options.batch}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
