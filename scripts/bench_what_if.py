"""Cost of `roadstead fit` and `roadstead grow` on a large cluster, in processor time.

    scripts/bench_what_if.py [--nodes N] [--pending P] [--only fit|grow]

fit: replicas of one pod on empty nodes of 32 CPUs, until one is refused (21 for each node). grow:
two shapes with prices, for pods that have no node since the running pods fill all nodes. Prints
processor time, runs, and what 20 million additions in a Python loop took just before.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from roadstead.bench.calibration import calibrate
from roadstead.config.settings import Settings
from roadstead.facts.node import HOSTNAME_LABEL, ZONE_LABEL, NodeFacts
from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.inputs.find_pod import InputPod
from roadstead.inputs.node_catalog import catalog_of
from roadstead.kernel.compiled_code import load
from roadstead.run import RunInputs, RunPlan
from roadstead.whatif.fit import CountedSpec, FitQuestion, fit
from roadstead.whatif.grow import grow

GIB = 1 << 30
ZONES = 5
PODS_PER_NODE = 8


def fleet(count: int) -> list[NodeFacts]:
    """Return nodes of 32 CPUs and 128 GiB in five zones, named so that they are sorted."""
    room = (("cpu", 32_000), ("memory", 128 * GIB))
    return [
        NodeFacts(
            f"n{number:06}",
            ((HOSTNAME_LABEL, f"n{number:06}"), (ZONE_LABEL, f"z{number % ZONES}")),
            room,
            110,
        )
        for number in range(count)
    ]


def pod(cpu_milli: int, memory_gib: int) -> PodFacts:
    memory = memory_gib * GIB
    return PodFacts(
        requests=(("cpu", cpu_milli), ("memory", memory)),
        nonzero_cpu_milli=cpu_milli,
        nonzero_memory_bytes=memory,
    )


def named(name: str) -> PodIdentity:
    return PodIdentity(f"default/{name}", "default", name)


def shape(name: str, cpu: int, memory_gib: int, price: float) -> dict[str, object]:
    amounts = {"cpu": str(cpu), "memory": f"{memory_gib}Gi", "pods": "110"}
    return {"name": name, "pricePerHour": price, "node": {"status": {"allocatable": amounts}}}


def bench_fit(nodes: int) -> str:
    spec = CountedSpec("x", InputPod(named("x"), pod(1500, 4), ""))
    result = fit(RunInputs(fleet(nodes)), RunPlan(Settings()), FitQuestion((spec,)))
    assert result.next is not None, "the count ends with a refusal"
    return f"{result.replicas:,} replicas on {nodes:,} nodes, {result.tried} changes tried"


def bench_grow(nodes: int, pending: int) -> str:
    cluster = fleet(nodes)
    running = tuple(
        (named(f"r-{at}"), pod(4000, 4), cluster[at % nodes].name)
        for at in range(nodes * PODS_PER_NODE)
    )
    classes = pod(4000, 4), pod(5000, 40)
    pods = tuple((named(f"p-{at}"), classes[at % 2]) for at in range(pending))
    document = {
        "apiVersion": "roadstead.dev/v1",
        "kind": "NodeCatalog",
        "shapes": [shape("cpu-16", 16, 64, 1.0), shape("cpu-64", 64, 512, 3.5)],
    }
    shapes = catalog_of(document, "shapes")
    result = grow(RunInputs(cluster, running, pods), RunPlan(Settings()), shapes)
    assert result.is_complete, "every pod is placed"
    counts = ", ".join(f"{each.count} {each.shape}" for each in result.shapes)
    return f"{counts} for {pending:,} pods beside {len(running):,} running ones, {result.runs} runs"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=5000, help="number of nodes (default 5000)")
    parser.add_argument("--pending", type=int, default=2000, help="pods of grow (default 2000)")
    parser.add_argument("--only", choices=["fit", "grow"], help="only one of both")
    options = parser.parse_args()
    load()
    for name in ("fit", "grow"):
        if options.only in (None, name):
            additions_s = calibrate().processor_s
            began_s = time.process_time()
            if name == "fit":
                text = bench_fit(options.nodes)
            else:
                text = bench_grow(options.nodes, options.pending)
            spent_s = time.process_time() - began_s
            print(f"{name}: {spent_s:.1f} s of processor time: {text}", flush=True)
            print(f"    20 million additions {additions_s:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
