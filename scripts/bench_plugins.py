#!/usr/bin/env python3
"""Cost of each in-tree plugin for one pod on the reference path, from PreFilter to Normalize.

    python scripts/bench_plugins.py [--nodes 5000] [--running 20000] [--plugin NAME]

Each plugin is alone in a profile; pods of forty apps run on the nodes of the table. `new class`:
the first pod of a class, whose results are not cached. `next pod`: another pod of this class, after
one was placed on a node. Times are milliseconds, medians of --runs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from roadstead.bench.machine import commit_of, this_machine
from roadstead.config.load import load_config
from roadstead.cycle.class_scores import ClassScores
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import HOSTNAME_LABEL, ZONE_LABEL
from roadstead.facts.pod import (
    HostPort,
    PodAffinityTerm,
    PodFacts,
    PreferredNodeTerm,
    SpreadConstraint,
    Volume,
)
from roadstead.facts.selectors import LabelSelector, NodeSelectorTerm, Requirement
from roadstead.facts.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    ClaimFacts,
    ClaimReference,
    CsiDriverFacts,
    CsiNodeFacts,
    CsiSource,
    NodeDriverFacts,
    StorageClassFacts,
    StorageFacts,
    VolumeFacts,
)
from roadstead.fleet.openb import MIB_BYTES, task_facts
from roadstead.fleet.ten_classes import ten_node
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import FilterPlugin, Handle, ScorePlugin
from roadstead.framework.profile import Profile
from roadstead.framework.registry import extension_points
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.plugins.in_tree import in_tree_registry

APPS = 40
GIB_BYTES = 1 << 30
DRIVER = "disk.csi.example.com"
ARGS = {
    "NodeLabel": "{name: NodeLabel, args: {presentLabels: [disk], "
    "presentLabelsPreference: [pool]}}",
    "ServiceAffinity": "{name: ServiceAffinity, args: {affinityLabels: [pool], "
    "antiAffinityLabelsPreference: [disk]}}",
}
"""Arguments of plugins that do nothing without arguments."""


def only(plugin: str) -> str:
    """Return a configuration whose only profile runs a single plugin, with its `ARGS` if any."""
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{{name: {plugin}}}, {{name: PrioritySort}}, {{name: DefaultBinder}}]
      disabled: [{{name: "*"}}]
  pluginConfig: [{ARGS.get(plugin, "")}]
"""


def own(app: int) -> LabelSelector:
    return LabelSelector((Requirement("app", "In", (f"app-{app}",)),))


def near(key: str, app: int, weight: int = 0) -> PodAffinityTerm:
    return PodAffinityTerm(key, own(app), ("bench",), None, weight)


def spread(key: str, when: str, app: int) -> SpreadConstraint:
    return SpreadConstraint(key, 500, when, own(app), 1, "Honor", "Ignore", ())


def pod_of(app: int, cpu_milli: int) -> PodFacts:
    """Return a pod that every plugin has work for; each `cpu_milli` is a class of its own."""
    plain = task_facts(
        "bench",
        (("app", f"app-{app}"),),
        cpu_milli=cpu_milli,
        memory_bytes=256 * MIB_BYTES,
        gpu_milli=0,
        models=(),
        image="bench/web:1",
    )
    ssd = NodeSelectorTerm(expressions=(Requirement("disk", "In", ("ssd",)),))
    return replace(
        plain,
        required_node_terms=(ssd,),
        preferred_node_terms=(PreferredNodeTerm(10, ssd),),
        host_ports=(HostPort("0.0.0.0", "TCP", 9000 + app),),  # noqa: S104
        spread_constraints=(
            spread(ZONE_LABEL, "DoNotSchedule", app),
            spread(HOSTNAME_LABEL, "DoNotSchedule", app),
            spread(ZONE_LABEL, "ScheduleAnyway", app),
            spread(HOSTNAME_LABEL, "ScheduleAnyway", app),
        ),
        pod_affinity=(near(ZONE_LABEL, app),),
        pod_anti_affinity=(near(HOSTNAME_LABEL, (app + 1) % APPS),),
        preferred_pod_affinity=(near(ZONE_LABEL, (app + 2) % APPS, 10),),
        preferred_pod_anti_affinity=(near(HOSTNAME_LABEL, app, 20),),
        volumes=(
            mounted("shared", "persistentVolumeClaim", claimName=f"shared-{app}"),
            mounted("scratch", "persistentVolumeClaim", claimName=f"scratch-{app}"),
            mounted("disk", "gcePersistentDisk", pdName=f"disk-{app}", readOnly="true"),
        ),
    )


def mounted(name: str, kind: str, **source: str) -> Volume:
    return Volume(name, kind, tuple(sorted(source.items())))


def storage(nodes: int) -> StorageFacts:
    """Return, for each app, a claim that is bound and shared, and one that waits for a pod."""
    volumes = [
        VolumeFacts(
            f"pv-{app}",
            "standard",
            GIB_BYTES,
            ("ReadWriteMany",),
            labels=((ZONE_LABEL, "zone-0__zone-1__zone-2__zone-3__zone-4"),),
            claim=ClaimReference("bench", f"shared-{app}", f"shared-{app}"),
            csi=CsiSource(DRIVER, f"pv-{app}"),
        )
        for app in range(APPS)
    ]
    claims = [
        ClaimFacts(
            "bench",
            f"shared-{app}",
            f"shared-{app}",
            "standard",
            f"pv-{app}",
            has_bind_completed=True,
            access_modes=("ReadWriteMany",),
            requested_bytes=GIB_BYTES,
        )
        for app in range(APPS)
    ]
    claims += [
        ClaimFacts(
            "bench",
            f"scratch-{app}",
            f"scratch-{app}",
            "waits",
            access_modes=("ReadWriteMany",),
            requested_bytes=GIB_BYTES,
        )
        for app in range(APPS)
    ]
    classes = (
        StorageClassFacts("standard", DRIVER, "Immediate"),
        StorageClassFacts("waits", DRIVER, WAIT_FOR_FIRST_CONSUMER),
    )
    csi_nodes = tuple(
        CsiNodeFacts(ten_node(index).name, (NodeDriverFacts(DRIVER, 40),)) for index in range(nodes)
    )
    drivers = (CsiDriverFacts(DRIVER),)
    return StorageFacts(tuple(volumes), tuple(claims), classes, csi_nodes, drivers)


def crowded(nodes: int, running: int) -> NodeTable:
    """Return a table of varied nodes in five zones, with pods of forty apps in turn."""
    table = NodeTable(PodClasses())
    for index in range(nodes):
        table.add_node(ten_node(index))
    pod_classes = [table.classes.pod_class(pod_of(app, 100)) for app in range(APPS)]
    names = list(table.node_names())
    for index in range(running):
        table.add_pod(names[index * 7 % nodes], pod_classes[index % APPS])
    return table


def decide(run: ClassScores) -> None:
    """Run PreFilter, Filter, PreScore, Score and Normalize, and add up the totals."""
    evaluation = run.evaluation
    pre_filter = evaluation.run_pre_filter()
    failure = run.filter(pre_filter)
    assert not failure, failure
    status = run.score(evaluation.run_pre_score())
    assert status.is_success, status


def timed_ms(run: ClassScores) -> float:
    started = time.perf_counter()
    decide(run)
    return (time.perf_counter() - started) * 1000


def measure(name: str, table: NodeTable, runs: int) -> tuple[list[float], list[float], int]:
    """Return the times of (new class, next pod) in ms, and the last number of feasible nodes."""
    config = load_config(only(name), source="bench").config.profiles[0]
    cluster = ClusterFacts(storage=storage(len(table)))
    profile = Profile(config, in_tree_registry(), Handle(table.classes, cluster))
    first, following = [], []
    names = list(table.node_names())
    for turn in range(runs):
        pod_class = table.classes.pod_class(pod_of(turn % APPS, 101 + turn))
        run = ClassScores(Evaluation(profile, pod_class, table))
        first.append(timed_ms(run))
        for step in range(3):
            node = names[(turn * 31 + step) % len(names)]
            table.add_pod(node, pod_class)
            following.append(timed_ms(run))
            table.remove_pod(node, pod_class)
    return first, following, int(run.evaluation.feasible.sum())


def plugins() -> Iterator[str]:
    """Yield the names of in-tree plugins that filter or score."""
    handle = Handle(PodClasses())
    registry = in_tree_registry()
    for name in registry.factories:
        plugin = registry.build(name, None, handle)
        if isinstance(plugin, FilterPlugin | ScorePlugin) and extension_points(plugin):
            yield name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=5_000, help="number of nodes (default 5000)")
    parser.add_argument(
        "--running", type=int, default=20_000, help="pods that run already (default 20000)"
    )
    parser.add_argument("--runs", type=int, default=9, help="of each figure (default 9)")
    parser.add_argument("--plugin", metavar="NAME", help="only this one")
    options = parser.parse_args()
    commit = commit_of(Path(__file__).parent) or "unknown"
    print(
        f"machine  {this_machine()}\ncommit   {commit}\ncommand  {' '.join(sys.argv)}", flush=True
    )
    table = crowded(options.nodes, options.running)
    print(f"{'plugin':34}{'new class':>12}{'next pod':>12}{'feasible':>10}   (ms, medians)")
    for name in [options.plugin] if options.plugin else plugins():
        first, following, feasible = measure(name, table, options.runs)
        print(
            f"{name:34}{statistics.median(first):12.2f}{statistics.median(following):12.2f}"
            f"{feasible:10,}",
            flush=True,
        )


if __name__ == "__main__":
    main()
