"""Runs of the kernel use counts of images from each row's last snapshot, as single pods do."""

from __future__ import annotations

import itertools
import random

import pytest

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.local.decision_paths import DecisionPath, open_path
from tests.builders import MIB, node, pod
from tests.local.test_paths import profiles_of

IMAGE = "registry.k8s.io/pause:3.9"
POD = pod(cpu=100, memory=100 * MIB, images=(IMAGE,), container_count=1)
ARRIVALS = 6
PODS_EACH = 30
Placed = tuple[str | None, int, int]


def place(path: DecisionPath, first: int, facts: PodFacts) -> list[Placed]:
    """Place pods from a number on, in batches of the path's own length."""
    waiting = [
        path.prepare(PodIdentity(f"u{number}", "default", f"p{number}"), facts)
        for number in range(first, first + PODS_EACH)
    ]
    placed: list[Placed] = []
    while waiting:
        decided = path.decide(waiting)
        placed += [(each.node_name, each.total, each.best_size) for each in decided]
        waiting = waiting[len(decided) :]
    return placed


def played(path_name: str, seed: int) -> list[Placed]:
    """Place pods while nodes with and without the image arrive, and pods go."""
    random_of = random.Random(seed)
    path = open_path(path_name, profiles_of)
    placed: list[Placed] = []
    numbers = itertools.count()

    def arrive(count: int) -> None:
        names = [f"n{next(numbers)}" for _ in range(count)]
        path.add_nodes(
            node(
                name,
                cpu=random_of.choice([4000, 8000]),
                images={IMAGE: random_of.choice([250, 300]) * MIB}
                if random_of.random() < 0.8
                else {},
            )
            for name in names
        )

    arrive(40)
    for number in range(ARRIVALS):
        placed += place(path, number * PODS_EACH, POD)
        gone = random_of.choice([name for name, _, _ in placed if name is not None])
        if number == ARRIVALS // 2:
            path.remove_pod(gone, POD)
        arrive(1)
    return placed


@pytest.mark.parametrize("seed", range(8))
def test_runs_place_pods_as_single_pods_while_nodes_with_images_arrive(seed: int) -> None:
    assert played("batches+runs", seed) == played("plain", seed), f"seed {seed}"
