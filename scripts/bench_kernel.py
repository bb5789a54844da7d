#!/usr/bin/env python3
"""Speed of the kernel alone: pods on one table, from facts to rows, nothing around it.

Seconds are those of the processor (one thread), so that what else a machine does matters less.

python scripts/bench_kernel.py [--nodes 5000] [--pods 10000] [--reference]
"""

from __future__ import annotations

import argparse
import time

from roadstead.config.model import default_config
from roadstead.cycle.batch import Batch, ClassInput, CompiledKernel, PodInCycle
from roadstead.cycle.class_scores import ClassScores
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import Handle
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry

GIB = 1 << 30
KINDS = {"identical": 1, "10 classes": 10, "all distinct": None}


def node(number: int) -> NodeFacts:
    cpu, memory = 32_000 + 1000 * (number % 4), (128 + 32 * (number % 3)) * GIB
    return NodeFacts(
        f"node-{number}",
        labels=(("topology.kubernetes.io/zone", f"zone-{number % 4}"),),
        allocatable=(("cpu", cpu), ("memory", memory)),
        allocatable_pods=110,
    )


def pod(number: int) -> PodFacts:
    cpu, memory = 100 + number % 1000, GIB // 4 + (number << 20)
    return PodFacts(
        requests=(("cpu", cpu), ("memory", memory)),
        nonzero_cpu_milli=cpu,
        nonzero_memory_bytes=memory,
    )


def measure(nodes: int, pods: int, classes: int, compiled_kernel: CompiledKernel | None) -> float:
    """Return the processor seconds to decide the pods, spread over the classes."""
    table = NodeTable()
    for number in range(nodes):
        table.add_node(node(number))
    config = default_config().profiles[0]
    profile = Profile(config, in_tree_registry(), Handle(table.classes))
    pod_classes = [table.classes.pod_class(pod(number)) for number in range(classes)]
    keys = [profile.signature_of(pod_class, "") for pod_class in pod_classes]
    pods_in_cycle = [
        PodInCycle(f"u{i}", f"ns/p{i}", pod_classes[i % classes], keys[i % classes])
        for i in range(pods)
    ]
    started = time.process_time()
    inputs = {}
    for pod_class, key in zip(pod_classes, keys, strict=True):
        evaluation = Evaluation(profile, pod_class, table)
        pre_filter = evaluation.run_pre_filter()
        evaluation.update(pre_filter)
        scores = ClassScores(evaluation)
        inputs[key] = ClassInput(scores, pre_filter, evaluation.run_pre_score())
    evaluated = time.process_time()
    batch = Batch(table, inputs, Chooser(TieBreak()), compiled_kernel=compiled_kernel)
    decided = 0
    while decided < pods:
        run = batch.decide_by_kernel(pods_in_cycle[decided : decided + 1024])
        if not run:
            batch.decide(pods_in_cycle[decided])
        decided += len(run) or 1
    print(f"  evaluated in {evaluated - started:.3f} s", end="")
    return time.process_time() - evaluated


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=5000, help="number of nodes (default 5000)")
    parser.add_argument(
        "--pods",
        type=int,
        default=10_000,
        help="number of pods (default 10000; a tenth where no two are alike)",
    )
    parser.add_argument(
        "--reference", action="store_true", help="decide by the plugins, without the kernel"
    )
    options = parser.parse_args()
    compiled_kernel = None if options.reference else CompiledKernel(load(), DecisionCounts())
    if compiled_kernel is not None:
        print(f"loaded in {load().started_s:.2f} s")
    for kind, classes in KINDS.items():
        pods = options.pods if classes is not None else options.pods // 10
        spent_s = measure(options.nodes, pods, classes or pods, compiled_kernel)
        print(f"  {kind}: {pods / spent_s:,.0f} pods/s ({1e6 * spent_s / pods:.1f} µs each)")


if __name__ == "__main__":
    main()
