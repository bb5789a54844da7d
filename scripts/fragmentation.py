#!/usr/bin/env python3
"""Our figures for "Beware of Fragmentation" (Weng et al., USENIX ATC'23): docs/fragmentation.md.

    scripts/fragmentation.py TRACE [--gpus devices] [--seeds 3] [--start 0] [--policy NAME ...]

TRACE is openb as `roadstead trace import openb` writes it, or the folder of its CSV files. As in
the paper, the trace is inflated: its pods in random order, then pods drawn from it with
replacement, until they request 130% of the fleet's GPUs. They arrive one after the other on the
nodes with GPUs, and none ends. Allocated GPU and fragments (free GPU that a typical pod of the
trace cannot use) are recorded as functions of the GPU that the pods so far request: arrived GPU.

With `--gpus devices`, each GPU is a device besides: a pod gets whole GPUs, and a part of one only
where a single GPU has that much left. The amounts of the nodes remain, for scores.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from roadstead.bench.machine import commit_of, this_machine  # noqa: E402
from roadstead.bench.roadstead_workloads import read_openb  # noqa: E402
from roadstead.cycle.batch import CompiledKernel  # noqa: E402
from roadstead.facts.cluster import ClusterFacts  # noqa: E402
from roadstead.facts.devices import DevicesFacts  # noqa: E402
from roadstead.facts.pod import PodFacts  # noqa: E402
from roadstead.fleet.gpu_devices import CAPACITY, with_gpu_devices  # noqa: E402
from roadstead.fleet.openb import GPU_MILLI, GPU_RESOURCE  # noqa: E402
from roadstead.fleet.trace import Trace  # noqa: E402
from roadstead.kernel.compiled_code import load  # noqa: E402
from roadstead.kernel.decision_counts import DecisionCounts  # noqa: E402
from roadstead.protocol.quantity import parse_quantity  # noqa: E402
from roadstead.queue.reports import PendingReason  # noqa: E402
from roadstead.scenario.bench_plans import LIFECYCLE, LIMITS, TIMINGS  # noqa: E402
from roadstead.simulator.engine import Engine  # noqa: E402
from roadstead.simulator.play import Variant, build_engine  # noqa: E402
from roadstead.simulator.recording import Recorder  # noqa: E402
from roadstead.simulator.scenario import Arrival, CompiledScenario  # noqa: E402
from roadstead.simulator.simulated_pods import SimulatedPod  # noqa: E402
from roadstead.simulator.times import NEVER_US  # noqa: E402

EXAMPLES = ROOT / "docs" / "examples"
INFLATION = 1.3
STEP_US = 1_000
"""From one arrival to the next: so short that no pending pod is tried again by time alone."""

EARLY = 0.95
SAMPLES = 260
SHOWN = (50, 80, 90, 95, 100, 110, 120, 130)
"""Percent of the fleet's GPUs that have arrived, for the table."""

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
RANDOM = HEAD + 'profiles: [{plugins: {score: {disabled: [{name: "*"}]}}}]\n'
MOST_ALLOCATED = f"""{HEAD}profiles:
- plugins:
    score: {{disabled: [{{name: "*"}}], enabled: [{{name: NodeResourcesFit}}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{{name: cpu, weight: 1}}, {{name: {GPU_RESOURCE}, weight: 1}}]
"""


@dataclass(frozen=True)
class Policy:
    """A configuration of the scheduler. plugin: of docs/examples, as the configuration there."""

    name: str
    text: str = ""
    plugin: str = ""

    def variant(self, seed: int) -> Variant:
        if not self.plugin:
            return Variant(seed, self.text, self.name)
        module, _, _ = self.plugin.partition(".")
        text = (EXAMPLES / f"{module}.yaml").read_text(encoding="utf-8")
        return Variant(seed, text, self.name, (self.plugin,), str(EXAMPLES))


AMOUNT, DEVICES = "amount", "devices"
"""What the GPUs of a node are: one amount, or devices besides."""

# Fragmentation Gradient Descent, the policy of the paper.

FGD_OF = {
    AMOUNT: Policy("FGD", plugin="fgd.FGD"),
    DEVICES: Policy("FGD", plugin="fgd_gpus.FGDofGPUs"),
}
POLICIES = (
    FGD_OF[AMOUNT],
    Policy("BestFit", plugin="bestfit.BestFit"),
    Policy("MostAllocated", MOST_ALLOCATED),
    Policy("DotProd", plugin="dotprod.DotProd"),
    Policy("Random", RANDOM),
    Policy("default", HEAD),
)


def gpu_of(facts: PodFacts) -> int:
    """Return how much GPU a pod requests, in thousandths."""
    return dict(facts.requests).get(GPU_RESOURCE, 0)


@dataclass(frozen=True)
class Inflated:
    """Pods of the inflated trace. arrived: GPU of the pods up to each one, in thousandths."""

    pods: Sequence[tuple[str, PodFacts]]
    arrived: Sequence[int]
    index: int = 0
    name: str = "inflated"

    def expected(self, horizon_us: int) -> tuple[float, float]:
        return float(len(self.pods)), float(len(self.pods))

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        for number, pod in enumerate(self.pods, 1):
            yield Arrival(number * STEP_US, self.index, (pod,), NEVER_US, LIFECYCLE)


def inflate(trace: Trace, capacity: int, seed: int) -> Inflated:
    """Return the trace's pods in random order, then drawn ones, up to INFLATION of a capacity."""
    random = np.random.default_rng(seed)
    known = [(identity.name, facts) for identity, facts in trace.pods()]
    pods = [known[place] for place in random.permutation(len(known)).tolist()]
    total = sum(gpu_of(facts) for _, facts in pods)
    while True:
        name, facts = known[int(random.integers(len(known)))]
        total += gpu_of(facts)
        if total > INFLATION * capacity:
            break
        pods.append((f"{name}-more-{len(pods)}", facts))
    return Inflated(pods, np.cumsum([gpu_of(facts) for _, facts in pods]).tolist())


@dataclass
class Curve(Recorder):
    """A recorder that samples GPU over what has arrived.

    typical: (facts, number in the trace). rows: (arrived, allocated, fragments in free GPU), all in
    percent, the first two of the capacity. refused: pods; early: those before 95% had arrived, by
    GPUs that they request. gpus_are_devices: fragments are of single GPUs.
    """

    plan: Inflated
    capacity: int
    typical: Sequence[tuple[PodFacts, int]]
    rows: list[tuple[float, float, float]] = field(default_factory=list)
    refused: int = 0
    early: Counter[str] = field(default_factory=Counter)
    gpus_are_devices: bool = False

    @property
    def requested_gpu(self) -> list[int]:
        """GPU requests of the typical pods."""
        return [gpu_of(facts) for facts, _ in self.typical]

    def sample(self, engine: Engine) -> None:
        number = min(engine.now_us // STEP_US, len(self.plan.pods))
        arrived = self.plan.arrived[number - 1] if number else 0
        table = engine.cluster.table
        rows, code_of = slice(0, len(table)), {n: i for i, n in enumerate(table.resource_names)}
        columns = table.columns
        columns.fit_resources()
        free = columns.allocatable[:, rows] - columns.requested[:, rows]
        cpu, gpu = free[code_of["cpu"]], free[code_of[GPU_RESOURCE]]
        # [node, GPU]; as one amount, a node has one GPU, which serves parts and several wholes.
        gpus, largest = gpu[:, None], int(gpu.max(initial=1))
        if self.gpus_are_devices:
            gpus, largest = free_gpus(engine), GPU_MILLI
            assert (gpus.sum(axis=1) == gpu).all(), "amounts and devices differ"
        usable_for = {each: usable(gpus, each, largest) for each in set(self.requested_gpu)}
        fragments = 0
        for (facts, count), requested in zip(self.typical, self.requested_gpu, strict=True):
            fits = cpu >= dict(facts.requests).get("cpu", 0)
            fragments += count * int(gpu.sum() - usable_for[requested][fits].sum())
        pods, idle = sum(count for _, count in self.typical), max(1, int(gpu.sum()))
        allocated = self.capacity - int(gpu.sum())
        self.rows.append(
            (100 * arrived / self.capacity, 100 * allocated / self.capacity,
             100 * fragments / pods / idle)
        )  # fmt: skip

    def not_bound(
        self,
        now_us: int,
        pod: SimulatedPod,
        reason: PendingReason,
        nominated: str,
        victims: Sequence[str],
    ) -> None:
        self.refused += 1
        if self.plan.arrived[pod.number] <= EARLY * self.capacity:
            self.early[f"{gpu_of(pod.facts) / 1000:g}"] += 1

    def at(self, arrived: float) -> tuple[float, float]:
        """Return allocated GPU and fragments at a percentage of arrived GPU, interpolated."""
        shares, allocated, fragments = zip(*self.rows, strict=True)
        return (
            float(np.interp(arrived, shares, allocated)),
            float(np.interp(arrived, shares, fragments)),
        )


def usable(gpus: np.ndarray, requested: int, largest: int) -> np.ndarray:
    """Return the free GPU of each node that a pod can use, 0 where it does not fit.

    gpus: what is free, as [node, GPU]. largest: most that one GPU gives to a pod. To a pod without
    GPU, all free GPU is a fragment, as in the paper's simulator.
    """
    if not requested:
        return np.zeros(len(gpus), dtype=np.int64)
    part = min(requested, largest)
    serves = gpus >= part
    fits = serves.sum(axis=1) * part >= requested
    return np.where(serves, gpus, 0).sum(axis=1) * fits


@lru_cache
def _value(text: str) -> int:
    return parse_quantity(text).value()


def free_gpus(engine: Engine) -> np.ndarray:
    """Return what is free of each device, as [node, device]; 0 where a node has fewer."""
    devices, columns = engine.cluster.facts().devices, engine.cluster.table.columns
    row_of = {columns.node(row).name: row for row in range(len(engine.cluster.table))}
    width = max(int(each.name.rpartition("-")[2]) for each in devices.slices) + 1
    found = np.zeros((len(row_of), width), dtype=np.int64)
    for each in devices.slices:
        for device in each.devices:
            found[row_of[each.pool], int(device.name.rpartition("-")[2])] = GPU_MILLI
    for claim in devices.claims:
        for result in claim.allocation.results if claim.allocation else ():
            index = int(result.device.rpartition("-")[2])
            found[row_of[result.pool], index] -= _value(dict(result.consumed or ())[CAPACITY])
    return found


def as_devices(trace: Trace) -> tuple[Trace, DevicesFacts]:
    """Return the trace with a claim for each pod with GPUs, and its GPUs as devices.

    Amounts stay, too: scores read what a node has free, and devices decide what fits.
    """
    claiming, devices = with_gpu_devices(trace)
    classes = tuple(
        replace(facts, device_claims=other.device_claims)
        for facts, other in zip(trace.pod_classes, claiming.pod_classes, strict=True)
    )
    return replace(trace, pod_classes=classes), devices


def run(
    trace: Trace,
    policy: Policy,
    seed: int,
    compiled_kernel: CompiledKernel,
    devices: DevicesFacts | None = None,
) -> dict[str, object]:
    """Play one policy with one seed; return its curve at SHOWN. devices: see `as_devices`."""
    nodes = tuple(each for each in trace.nodes() if dict(each.allocatable).get(GPU_RESOURCE, 0))
    capacity = sum(dict(each.allocatable)[GPU_RESOURCE] for each in nodes)
    inflated = inflate(trace, capacity, seed)
    counts = Counter(trace.pod_class.tolist())
    typical = [(trace.pod_classes[code], count) for code, count in counts.items()]
    curve = Curve(inflated, capacity, typical, gpus_are_devices=devices is not None)
    gates = {"featureGates": {"DRAConsumableCapacity": devices is not None}}
    horizon_us = (len(inflated.pods) + 1) * STEP_US
    plan = CompiledScenario(
        "inflated openb", nodes, horizon_us, horizon_us // SAMPLES, 0, TIMINGS, LIMITS,
        cluster=ClusterFacts(namespaces=trace.namespaces, devices=devices or DevicesFacts()),
        sources=(inflated,), settings=gates,
    )  # fmt: skip
    began_s = time.process_time()
    engine = build_engine(plan, policy.variant(seed), curve, compiled_kernel)
    engine.run()
    engine.validate()
    found = {str(each): curve.at(each) for each in SHOWN}
    return {
        "policy": policy.name, "seed": seed, "nodes": len(nodes), "gpus": capacity / 1000,
        "pods": len(inflated.pods), "refused": curve.refused,
        "early": dict(curve.early.most_common()),
        "processor_s": round(time.process_time() - began_s, 1),
        "allocated": {key: round(value[0], 2) for key, value in found.items()},
        "fragments": {key: round(value[1], 2) for key, value in found.items()},
    }  # fmt: skip


def table(results: Sequence[dict[str, object]], key: str) -> Iterator[str]:
    """Yield the medians over seeds at SHOWN, a Markdown row for each policy."""
    yield f"| {key} at | " + " | ".join(f"{each}%" for each in SHOWN) + " |"
    yield "|---" * (len(SHOWN) + 1) + "|"
    for policy in dict.fromkeys(str(each["policy"]) for each in results):
        ours = [each[key] for each in results if each["policy"] == policy]
        medians = (statistics.median(one[str(at)] for one in ours) for at in SHOWN)  # type: ignore[index]
        yield f"| {policy} | " + " | ".join(f"{each:.2f}" for each in medians) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", type=Path, help="openb.trace, or the folder of the CSV files")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds (default 3)")
    parser.add_argument("--start", type=int, default=0, help="first seed (default 0)")
    parser.add_argument(
        "--policy", action="append", choices=[each.name for each in POLICIES],
        help="one of several to play (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--gpus", choices=(AMOUNT, DEVICES), default=AMOUNT,
        help="amount: GPUs of a node are one amount (default); devices: a part lies on one GPU",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, help="write every run's figures to this file")
    options = parser.parse_args()
    trace, compiled_kernel = read_openb(options.trace), CompiledKernel(load(), DecisionCounts())
    devices = None
    if options.gpus == DEVICES:
        trace, devices = as_devices(trace)
    results = []
    for seed in range(options.start, options.start + options.seeds):
        for policy in POLICIES:
            if not options.policy or policy.name in options.policy:
                played = FGD_OF[options.gpus] if policy.name == "FGD" else policy
                results.append(run(trace, played, seed, compiled_kernel, devices))
                print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    if options.json:
        document = {"commit": commit_of(ROOT), "machine": str(this_machine()), "runs": results}
        options.json.write_text(json.dumps(document, indent=2), encoding="utf-8")
    for key in ("allocated", "fragments"):
        print("\n".join(table(results, key)), end="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
