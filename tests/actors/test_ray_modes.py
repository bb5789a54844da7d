"""Schedulers in processes of their own on Ray: no pod is lost or doubled, no node overfilled."""

from collections import Counter

import pytest

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.settings import Settings
from roadstead.facts.pod import Owner
from roadstead.invariants.checker import check
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from roadstead.run import RunPlan
from tests.actors.world import identity, inputs_of, ray_left
from tests.builders import node, pod

pytestmark = pytest.mark.ray


def test_partitioned_schedulers_on_ray_commit_whole_jobs_and_overfill_no_node(tmp_path):
    ray_left()
    pending = [
        (identity(f"p{number}"), pod(cpu=500, owner=Owner("Job", f"j{number // 3}", "")))
        for number in range(60)
    ]
    inputs = inputs_of([node(f"n{number}", cpu=4000) for number in range(8)], pending)
    settings = Settings(
        schedulers=2,
        mode="partitioned",
        conflicts="version",
        transaction="all-or-nothing",
        batch=6,
        journal=tmp_path / "journal",
    )

    outcome = ActorLauncher().run(inputs, RunPlan(settings), lambda _: None)

    used = Counter(each.node for each in outcome.placements)
    assert len({each.uid for each in outcome.placements}) == len(outcome.placements) == 60
    assert max(used.values()) <= 8, "a node has room for 8 pods"
    works = outcome.concurrency.schedulers
    assert sum(each.bound for each in works) == 60
    assert all(0.0 <= each.busyness <= 1.0 for each in works)
    records = Reader(RealDisk(tmp_path / "journal")).records()
    assert not check(records).violations
