"""The recorded order of a live run, played by the fleet lab, gives the same placements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from roadstead.actors.runs.launch import ActorLauncher
from roadstead.config.settings import Settings
from roadstead.cycle.batch import CompiledKernel
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Pod
from roadstead.fleet.generate import generate_fleet
from roadstead.journal.disk import RealDisk
from roadstead.journal.records import JournalRecord, RecordKind
from roadstead.journal.segments import Reader
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.run import RunInputs, RunPlan
from roadstead.simulator.virtual_cluster import VirtualCluster
from tests.actors.world import inputs_of

PODS = 400


def records_of(journal: Path) -> list[JournalRecord]:
    return [record for group in Reader(RealDisk(journal)).groups() for record in group]


def play(records: list[JournalRecord], pods: dict[str, Pod], plan: RunPlan) -> dict[str, str]:
    """Play records in virtual time; compare each bind, and return the nodes of the pods."""
    cluster = VirtualCluster(plan, CompiledKernel(load(), DecisionCounts()))
    nodes: dict[str, str] = {}
    for at, record in enumerate(records):
        now_s = float(at)
        if record.kind is RecordKind.NODE:
            assert isinstance(record.subject, NodeFacts)
            cluster.add_nodes([record.subject])
        elif record.kind is RecordKind.NODE_GONE:
            cluster.remove_nodes([record.node_name])
        elif record.kind is RecordKind.LOAD:
            assert record.facts is not None
            cluster.add_running([pods[record.uid]], [record.node_name])
        elif record.kind is RecordKind.DELETE:
            cluster.remove([pods[record.uid]], now_s)
        elif record.kind is RecordKind.BIND:
            pod = pods[record.uid]
            if cluster.place(pod, now_s) is None:
                cluster.submit([pod], now_s)
            cluster.run(now_s)
            found = cluster.node_of(record.uid)
            assert found == record.node_name, f"record {record.lsn}: {record.key} is on {found}"
            nodes[record.uid] = record.node_name
        else:
            assert record.kind is not RecordKind.EVICT, "no pod of this run preempts"
    cluster.table.validate()
    return nodes


def inputs(seed: int) -> RunInputs:
    """Return a fleet in which some pods run already, and not all others fit."""
    trace = generate_fleet(50, PODS, seed)
    given = inputs_of(trace.nodes(), trace.pods())
    first = next(iter(given.nodes)).name
    (identity, facts), *others = given.pending
    return replace(given, running=((identity, facts, first),), pending=tuple(others))


@pytest.mark.parametrize(
    ("runtime", "workers", "seed"),
    [
        ("inline", 0, 54_030_000),
        ("inline", 2, 54_030_001),
        pytest.param("ray", 1, 54_030_002, marks=pytest.mark.ray),
    ],
)
def test_the_lab_places_pods_in_the_order_of_a_journal_as_the_run_did(
    tmp_path: Path, runtime: str, workers: int, seed: int
) -> None:
    given, journal = inputs(seed), tmp_path / "journal"
    settings = Settings.model_validate(
        {"runtime": runtime, "workers": workers, "batch": 32, "seed": seed, "journal": journal}
    )

    outcome = ActorLauncher().run(given, RunPlan(settings), lambda _: None)

    alone = settings.model_copy(update={"runtime": "inline", "workers": 0, "journal": None})
    pods = {who.uid: (who, facts) for who, facts in given.pending}
    pods |= {who.uid: (who, facts) for who, facts, _ in given.running}
    nodes = play(records_of(journal), pods, RunPlan(alone))
    assert nodes == {each.uid: each.node for each in outcome.placements}
    assert 100 < len(nodes) < PODS - 1, "some pods fit and others do not"
