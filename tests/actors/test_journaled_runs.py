"""A run with a journal: what was placed stands there, flushed, and the checker finds nothing."""

from dataclasses import replace

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
    assert kinds == {RecordKind.CLUSTER, RecordKind.NODE, RecordKind.LOAD, *("run", "add", "bind")}
    result = check(records)
    assert result.violations == []
    assert result.binds_checked == len(outcome.placements) > 100


def test_the_profiles_filters_stand_in_the_journal(tmp_path):
    run(inputs_of([node("n1")], pods_of("a")), journal=tmp_path)

    _, rules = [each.subject for each in records_in(tmp_path) if each.kind is RecordKind.CLUSTER]

    ((name, filters),) = rules.filters
    assert name == "default-scheduler"
    assert {"NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"} < set(filters)


def test_the_journal_of_a_run_that_ended_is_moved_aside_and_kept(tmp_path):
    inputs, folder = inputs_of([node("n1")], pods_of("a")), tmp_path / "journal"
    run(inputs, journal=folder)
    before = records_in(folder)

    run(inputs, journal=folder)
    run(inputs, journal=folder)

    assert records_in(tmp_path / "journal.1") == before
    assert {path.name for path in tmp_path.iterdir()} == {"journal", "journal.1", "journal.2"}


def fleet():
    trace = generate_fleet(20, 300, 1)
    return inputs_of(trace.nodes(), trace.pods())


class EndedError(Exception):
    """The process of a run ends."""


def stopped_in_the_middle(folder, inputs):
    """uid → node of what is bound when a run ends with only some of its pods placed."""

    def end(progress):
        if progress.placed > 50:
            raise EndedError

    with pytest.raises(EndedError):
        ActorLauncher().run(inputs, plan_of(journal=folder, batch=4, schedulers=2), end)
    return {each.uid: each.node_name for each in records_in(folder) if each.kind == "bind"}


def resume(inputs, folder, **how):
    plan = replace(plan_of(journal=folder, batch=8, **how), resume=True)
    return ActorLauncher().run(inputs, plan, lambda progress: None)


def test_a_run_that_did_not_end_is_gone_on_with_and_what_is_bound_stays(tmp_path):
    before = stopped_in_the_middle(tmp_path, fleet())

    outcome = resume(fleet(), tmp_path)

    after = {each.uid: each.node for each in outcome.placements}
    assert 50 < len(before) < len(after)
    assert before.items() <= after.items()
    assert len(outcome.placements) + len(outcome.pending) == 300
    result = check(records_in(tmp_path))
    assert result.violations == []
    assert result.binds_checked == len(after)


def test_a_run_that_did_not_end_is_not_written_over_unasked(tmp_path):
    before = stopped_in_the_middle(tmp_path, fleet())

    with pytest.raises(InputError, match="holds a run that did not end: --resume goes on with it"):
        run(fleet(), journal=tmp_path)

    assert len(before) == sum(each.kind == "bind" for each in records_in(tmp_path))


def test_a_run_is_gone_on_with_only_on_the_same_inputs_and_seed(tmp_path):
    stopped_in_the_middle(tmp_path, fleet())
    others = inputs_of([node("n1")], pods_of("a"))

    for inputs, how in ((others, {}), (fleet(), {"seed": 9})):
        with pytest.raises(InputError, match="holds a run of other inputs, configuration or seed"):
            resume(inputs, tmp_path, **how)


def test_where_there_is_nothing_to_go_on_with_a_run_begins(tmp_path):
    outcome = resume(inputs_of([node("n1")], pods_of("a")), tmp_path / "new")

    assert placed(outcome) == {"default/a": "n1"}


def test_a_damaged_journal_is_refused_with_its_place(tmp_path):
    stopped_in_the_middle(tmp_path, fleet())
    (segment,) = tmp_path.glob("*.segment")
    data = bytearray(segment.read_bytes())
    data[60] ^= 1
    segment.write_bytes(data)

    with pytest.raises(InputError, match="damaged at offset"):
        resume(fleet(), tmp_path)


def test_a_journal_is_free_again_when_the_run_is_over(tmp_path):
    run(inputs_of([node("n1")], pods_of("a")), journal=tmp_path)

    RealDisk(tmp_path).lock()
