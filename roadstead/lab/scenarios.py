"""Scenarios for the product: generated fleets and pods for which schedulers compete.

constraint-heavy: hard spread over zones, anti-affinity on hosts in both directions, and nodes with
room for a single pod; the pods of an application compete for the same few nodes.

jobs: jobs of ten equal pods, of two sizes, on nodes with room for four of the small ones. They show
the cost of all-or-nothing transactions.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from roadstead.facts.node import HOSTNAME_LABEL, ZONE_LABEL, NodeFacts
from roadstead.facts.pod import Owner, Pod, PodAffinityTerm, PodFacts, PodIdentity, SpreadConstraint
from roadstead.facts.selectors import LabelSelector, Requirement

ZONES: Final = 4
GIB: Final = 1 << 30
SINGLE_EVERY: Final = 4
"""One node in this many has room for only one pod."""

APPS: Final = 5
"""Applications of each type."""

JOB_PODS: Final = 10
"""Pods of a job."""


def constraint_heavy(nodes: int, pods: int, seed: int) -> tuple[list[NodeFacts], list[Pod]]:
    """Nodes, and pods in a seeded order; the same seed gives the same result."""
    draw = random.Random(f"constraint-heavy {seed}")  # noqa: S311
    templates = [
        make(app)
        for make in (_spread, _alone_on_host, _plain_or_anti_affinity, _single)
        for app in range(APPS)
    ]
    chosen = [templates[draw.randrange(len(templates))] for _ in range(pods)]
    return [_node(number) for number in range(nodes)], _named(chosen)


def jobs(nodes: int, pods: int, seed: int) -> tuple[list[NodeFacts], list[Pod]]:
    """Nodes with room for several pods, and pods by job; the same seed gives the same result."""
    draw = random.Random(f"jobs {seed}")  # noqa: S311
    sizes_milli = [draw.choice((1000, 2000)) for _ in range(-(-pods // JOB_PODS))]
    chosen = [
        _pod(
            f"job-{number // JOB_PODS}",
            cpu_milli=sizes_milli[number // JOB_PODS],
            owner=Owner("Job", f"job-{number // JOB_PODS}", f"job-{number // JOB_PODS}"),
        )
        for number in range(pods)
    ]
    # Skips multiples of SINGLE_EVERY, whose nodes have room for a single pod.
    numbers = (number + 1 + number // (SINGLE_EVERY - 1) for number in range(nodes))
    return [_node(number) for number in numbers], _named(chosen)


def _named(chosen: list[PodFacts]) -> list[Pod]:
    return [
        (PodIdentity(f"default/p{number:05}", "default", f"p{number:05}"), facts)
        for number, facts in enumerate(chosen)
    ]


def _node(number: int) -> NodeFacts:
    name, is_single = f"n{number:04}", number % SINGLE_EVERY == 0
    labels = {HOSTNAME_LABEL: name, ZONE_LABEL: f"z{number % ZONES}"}
    if is_single:
        labels["slot"] = "one"
    return NodeFacts(
        name=name,
        labels=tuple(sorted(labels.items())),
        allocatable=(("cpu", 4000), ("memory", 8 * GIB)),
        allocatable_pods=1 if is_single else 16,
    )


def _pod(app: str, cpu_milli: int = 250, **constraints: object) -> PodFacts:
    build: Callable[..., PodFacts] = PodFacts
    return build(
        labels=(("app", app),),
        requests=(("cpu", cpu_milli), ("memory", GIB // 4)),
        nonzero_cpu_milli=cpu_milli,
        nonzero_memory_bytes=GIB // 4,
        container_count=1,
        **constraints,
    )


def _app_selector(app: str) -> LabelSelector:
    return LabelSelector((Requirement("app", "In", (app,)),))


def _anti_affinity_to(app: str) -> PodAffinityTerm:
    return PodAffinityTerm(HOSTNAME_LABEL, _app_selector(app), ("default",), None)


def _spread(app: int) -> PodFacts:
    name = f"even-{app}"
    rule = SpreadConstraint(
        ZONE_LABEL, 1, "DoNotSchedule", _app_selector(name), 1, "Honor", "Ignore", ()
    )
    return _pod(name, spread_constraints=(rule,))


def _alone_on_host(app: int) -> PodFacts:
    """A pod that excludes other pods of its application from its host."""
    return _pod(f"shy-{app}", pod_anti_affinity=(_anti_affinity_to(f"shy-{app}"),))


def _plain_or_anti_affinity(app: int) -> PodFacts:
    """A pod without constraints (odd `app`), or one that keeps such pods off its host."""
    return (
        _pod(f"feared-{app}")
        if app % 2
        else _pod(f"fearful-{app}", pod_anti_affinity=(_anti_affinity_to(f"feared-{app + 1}"),))
    )


def _single(app: int) -> PodFacts:
    """A pod that requires a node with room for a single pod."""
    return _pod(f"single-{app}", node_selector=(("slot", "one"),))
