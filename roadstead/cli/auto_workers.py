"""The number of workers for `--workers auto`, from nodes, pod classes, plugin times and free cores.

For new pod classes, workers evaluate their part of the nodes: they call users' plugins or, on large
fleets, make lists of the best nodes. That saves time if evaluating a class takes longer than the
messages about it, if there are enough classes to outweigh the start of processes, and if cores are
free. Texts for the user call a pod class a pod shape.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from roadstead.cli.cores import usable_cores
from roadstead.config.settings import Settings
from roadstead.cycle.merged_lists import MIN_NODES_FOR_LISTS, may_list
from roadstead.cycle.scored_parts import MIN_PLUGINS_S
from roadstead.cycle.scorer import Scorer
from roadstead.facts.pod import PodFacts
from roadstead.facts.wire import encode_facts
from roadstead.framework.worker_results import worker_calls
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.run import RunInputs, RunPlan, build_profiles

WORKER_START_S = 2.0
"""Processor time that a worker's process takes to start; a smaller saving is not worth a worker."""

MAX_WORKERS = 64
"""Maximum on a Ray cluster: each worker receives every change of the cluster's state."""

SAMPLE_NODES, SAMPLE_CLASSES = 200, 3
"""Numbers of nodes and pod classes with which plugins are timed."""

NEW_CLASS_ROW_S, CLASS_WITH_LISTS_S = 7e-9, 1e-4
"""Seconds of the kernel per node and new pod class, and of a scheduler per pod class with lists.

Lists are the best nodes that workers return (`docs/performance.md`).
"""


@dataclass(frozen=True, slots=True)
class WorkerCount:
    """The number of workers, and the reason for it.

    why: for the user. maximum: the number that the run may reach as cores become free; 0 without
    workers.
    """

    workers: int
    why: str
    maximum: int = 0


@dataclass(frozen=True, slots=True)
class FreeCores:
    """Cores that are free for workers. workers: how many now. may_grow: more may be later."""

    workers: int
    may_grow: bool = False


def free_cores(settings: Settings, cluster_room: int | None = None) -> FreeCores:
    """Return how many workers other processes leave room for; 0 if all share one process.

    cluster_room: workers that fit on the Ray cluster that the run joined; None on this machine.
    """
    if settings.runtime != "ray":
        return FreeCores(0)
    if cluster_room is not None:
        return FreeCores(min(MAX_WORKERS, cluster_room), may_grow=True)
    return FreeCores(max(0, usable_cores() - settings.scheduler_count))


def choose_workers(
    plan: RunPlan,
    inputs: RunInputs,
    free: Callable[[], FreeCores],
    *,
    clock_s: Callable[[], float] = time.perf_counter,
) -> WorkerCount:
    """Choose the number of workers that makes a run faster, or 0.

    free: called only if workers could pay, because on a cluster it checks the nodes.
    """
    profiles = build_profiles(plan, PodClasses()) if plan.plugins else {}
    calls_plugins = any(map(worker_calls, profiles.values()))
    has_lists = _has_lists(plan, len(inputs.nodes))
    if not calls_plugins and not has_lists:
        return WorkerCount(
            0, "no plugin of yours answers node by node, and this run uses no lists of best nodes"
        )
    cores = free()
    if cores.workers < 2 and not cores.may_grow:
        why = (
            "all actors share this process"
            if plan.settings.runtime != "ray"
            else "fewer than two cores are free"
        )
        return WorkerCount(0, f"{why}: workers would save no time")
    # By identity first: comparing facts takes longer, and a million pods may share fifty objects.
    facts = {id(facts): facts for _, facts in inputs.pending}.values()
    classes = [
        each for each in dict.fromkeys(facts) if has_lists or each.scheduler_name in profiles
    ]
    if not classes or not inputs.nodes:
        return WorkerCount(0, "the run has no pods or no nodes to evaluate")
    if calls_plugins:
        # Time to evaluate a class on all nodes, and the time that messages to workers take.
        class_s, overhead_s = _plugin_time_s(plan, inputs, classes, clock_s), MIN_PLUGINS_S
        what = f"plugins take {class_s * 1000:.1f} ms for each pod shape"
    else:
        class_s, overhead_s = len(inputs.nodes) * NEW_CLASS_ROW_S, CLASS_WITH_LISTS_S
        what = (
            f"evaluating {len(inputs.nodes):,} nodes takes about {class_s * 1000:.1f} ms for each"
        )
        what += " pod shape"
    text = f"{what}; number of shapes: {len(classes)}"
    # With more workers, each would evaluate for less time than its messages take.
    useful_max = math.ceil(class_s / overhead_s)

    def at_most(limit: int) -> int:
        """Return the number of workers, up to limit, that saves time; 0 if none does."""
        workers = max(1, min(limit, useful_max))
        saved_s = len(classes) * (class_s * (1 - 1 / workers) - overhead_s)
        return workers if workers >= 2 and saved_s >= WORKER_START_S else 0

    workers, maximum = at_most(cores.workers), at_most(max(MAX_WORKERS, cores.workers))
    if not maximum:
        text += "; starting workers would take longer"
    elif not workers:
        text += "; too few cores are free"
    return WorkerCount(workers, text, maximum if cores.may_grow else workers)


def _has_lists(plan: RunPlan, nodes: int) -> bool:
    """Whether workers would list the best nodes, in a run without the user's plugins."""
    settings = plan.settings
    uses_lists = may_list(settings) and not plan.plugins and settings.concurrency != "partitioned"
    return uses_lists and nodes >= MIN_NODES_FOR_LISTS


def _plugin_time_s(
    plan: RunPlan, inputs: RunInputs, classes: list[PodFacts], clock_s: Callable[[], float]
) -> float:
    """Return the time that plugins take for a pod class on all nodes.

    Extrapolated from a sample of classes and nodes. clock_s: returns the time.
    """
    table = NodeTable(PodClasses())
    for index in range(min(SAMPLE_NODES, len(inputs.nodes))):
        table.add_node(inputs.nodes[index])
    scorer = Scorer(table, build_profiles(plan, table.classes))
    sampled = [encode_facts(each) for each in classes[:SAMPLE_CLASSES]]
    began_s = clock_s()
    # Calls the plugins as a worker does.
    for each in sampled:
        scorer.columns(each, len(table))
    spent_s = clock_s() - began_s
    return spent_s / len(sampled) * len(inputs.nodes) / len(table)
