"""A run with a journal: what was placed stands there, flushed, and the checker finds nothing."""

import pytest

from roadstead.actors import client
from roadstead.actors.launch import ActorLauncher
from roadstead.fleet.generate import generate_fleet
from roadstead.invariants.checker import check
from roadstead.journal import RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.segments import Reader
from roadstead.protocol.errors import InputError
from tests.actors.world import inputs_of, placed, plan_of, pods_of
from tests.builders import node, pod


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch):
    monkeypatch.setattr(client, "LOOK_S", 0.002)


def run(inputs, **how):
    return ActorLauncher().run(inputs, plan_of(**how), lambda progress: None)


def records_in(folder):
    return list(Reader(RealDisk(folder)).records())


def test_the_journal_tells_of_the_cluster_and_of_every_bind_in_order(tmp_path):
    trace = generate_fleet(20, 200, 1)
    running = tuple((*each, "n-extra") for each in pods_of("runs", facts=pod(cpu=10)))
    inputs = inputs_of([*trace.nodes(), node("n-extra")], trace.pods(), running)

    outcome = run(inputs, journal=tmp_path / "journal", batch=16, schedulers=3)

    records = records_in(tmp_path / "journal")
    binds = {each.key: each.node_name for each in records if each.kind is RecordKind.BIND}
    assert binds == placed(outcome)
    kinds = {each.kind for each in records}
    assert kinds == {RecordKind.CLUSTER, RecordKind.NODE, RecordKind.LOAD, *("add", "bind")}
    result = check(records)
    assert result.violations == []
    assert result.binds_checked == len(outcome.placements) > 100


def test_the_profiles_filters_stand_in_the_journal(tmp_path):
    run(inputs_of([node("n1")], pods_of("a")), journal=tmp_path)

    _, rules = [each.subject for each in records_in(tmp_path) if each.kind is RecordKind.CLUSTER]

    ((name, filters),) = rules.filters
    assert name == "default-scheduler"
    assert {"NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"} < set(filters)


def test_a_folder_that_holds_another_run_is_refused_and_left_alone(tmp_path):
    inputs = inputs_of([node("n1")], pods_of("a"))
    run(inputs, journal=tmp_path)
    before = records_in(tmp_path)

    with pytest.raises(InputError, match="holds the journal of another run; name a new or empty"):
        run(inputs, journal=tmp_path)

    assert records_in(tmp_path) == before


def test_a_journal_is_free_again_when_the_run_is_over(tmp_path):
    run(inputs_of([node("n1")], pods_of("a")), journal=tmp_path)

    RealDisk(tmp_path).lock()
