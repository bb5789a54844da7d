"""The contents of a snapshot, record by record, and the binder that results from any records."""

import gc

import pytest

from roadstead.binder import AppendJournal, BinderCore, BinderSettings, BinderState, TableStore
from roadstead.binder.recovery import (
    RemovedPod,
    SnapshotExtras,
    recover,
    snapshot_records,
    split_by_kind,
)
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.filter_rules import Rules
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.run_mark import BEGUN, EPOCH, VOID, RunMark
from roadstead.journal import JournalRecord, RecordKind
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import SUCCESS
from tests.binder.test_binder_core import LARGE, SMALL, ask, binder
from tests.binder.test_recovery import FACTS, add, bind, has_node, recovered_from_records, versioned
from tests.binder.test_void import records_of
from tests.inside import counts_of, tokens_of

GONE = JournalRecord(0, RecordKind.NODE_GONE, "n1", "n1", "n1")


def recovered_from(*groups, **settings):
    core = BinderCore(
        TableStore(), lambda _: SUCCESS, BinderSettings(**settings), journals_all=True
    )
    result = recover(core, split_by_kind(groups))
    core.validate()
    return core, result


def of_run(what, **fields):
    return JournalRecord(0, RecordKind.RUN, "", "", "", subject=RunMark(what), **fields)


def test_a_snapshot_has_all_state_once_and_with_its_revision():
    core = binder("gone", "evicted", "updated", "bound", "waits", "old")
    core.load([("uid-ran", "default/ran", SMALL, "n2")])
    core.bind([ask("updated"), ask("bound", epoch=2), ask("old", "n2", owner="t", epoch=3)])
    core.load([("uid-evicted", "default/evicted", SMALL, "n1")])
    core.update_pods([("uid-updated", LARGE)])
    core.evict(["uid-evicted"])
    core.delete(["uid-gone"])
    core.void(["void"])
    core.flushed(core.last_lsn)
    beside = SnapshotExtras(
        nodes={"n1": 4, "n0": 7},
        pods={"uid-waits": 3, "uid-bound": 5, "uid-evicted": 6, "uid-ran": 0},
        removed=[
            RemovedPod("uid-evicted", "default/evicted", "n1", "preemptor"),
            RemovedPod("uid-bound", "default/bound", "n1", ""),
            RemovedPod("uid-before", "default/before", "n9", ""),
        ],
        subjects=[ClusterFacts(), Rules(), RunMark(BEGUN)],
    )

    nodes = core.placements.nodes
    kinds = RecordKind
    assert list(snapshot_records(core, beside)) == [
        JournalRecord(0, kinds.CLUSTER, "", "", "", subject=ClusterFacts()),
        JournalRecord(0, kinds.CLUSTER, "", "", "", subject=Rules()),
        of_run(BEGUN),
        JournalRecord(0, kinds.NODE, "n1", "n1", "n1", epoch=4, subject=nodes["n1"]),
        JournalRecord(0, kinds.NODE, "n2", "n2", "n2", epoch=0, subject=nodes["n2"]),
        JournalRecord(0, kinds.NODE_GONE, "n0", "n0", "n0", epoch=7),
        of_run(EPOCH, owner="s", epoch=2),
        of_run(EPOCH, owner="t", epoch=3),
        of_run(VOID, token="void"),
        JournalRecord(0, kinds.ADD, "uid-waits", "default/waits", "", epoch=3, facts=SMALL),
        JournalRecord(1, kinds.LOAD, "uid-ran", "default/ran", "n2", facts=SMALL),
        *loaded(2, "updated", "n1", "s", 1),
        JournalRecord(0, kinds.ADD, "uid-updated", "default/updated", "n1", facts=LARGE),
        *loaded(3, "bound", "n1", "s", 2),
        JournalRecord(0, kinds.ADD, "uid-bound", "default/bound", "n1", epoch=5, facts=SMALL),
        *loaded(4, "old", "n2", "t", 3),
        JournalRecord(
            *(0, kinds.EVICT, "uid-evicted", "default/evicted", "n1"), owner="preemptor", epoch=6
        ),
        JournalRecord(0, kinds.DELETE, "uid-before", "default/before", "n9"),
        JournalRecord(0, kinds.DELETE, "uid-gone", "default/gone", ""),
    ]


def loaded(lsn, name, node_name, owner, epoch):
    who = (f"uid-{name}", f"default/{name}", node_name)
    yield JournalRecord(lsn, RecordKind.LOAD, *who, f"token-{name}", owner, epoch, SMALL)


def test_no_records_make_a_fresh_binder():
    core, result = recovered_from()

    assert (result.records, result.subjects) == (0, ())
    assert (core.last_lsn, core.flushed_lsn, core.version) == (0, 0, 0)


def test_a_removed_node_and_one_marked_as_removed_in_a_snapshot_do_not_exist():
    core, _ = recovered_from([GONE, has_node(1), has_node(2, "n2"), GONE._replace(lsn=3)])

    assert list(core.placements.nodes) == ["n2"]


def test_a_node_is_removed_after_a_snapshot_with_another_removed_one():
    core, _ = recovered_from([has_node(1)], [GONE])

    assert core.placements.nodes == {}


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 2), (1, 3), (4,)])
def test_as_many_last_tokens_are_remembered_as_before(sizes):
    pods, lsn, groups = "abcd", 10, []
    for size in sizes:
        names = pods[:size]
        groups.append([bind(lsn + number, name) for number, name in enumerate(names)])
        pods, lsn = pods[size:], lsn + size

    core, _ = recovered_from([has_node(1)], *groups, max_tokens=2)

    assert counts_of(core).tokens == 2
    assert tokens_of(core).knows_any(["t-c"])
    assert tokens_of(core).knows_any(["t-d"])


def test_a_pod_that_ran_before_has_no_owner_and_changed_no_row():
    ran = JournalRecord(5, RecordKind.LOAD, "ran", "ran", "n1", facts=FACTS[0])
    kept = bind(6, "bound")._replace(kind=RecordKind.LOAD)
    core = versioned()

    recover(core, split_by_kind([[has_node(1), has_node(2, "n2"), ran, kept]]))

    assert core.current_epoch("") is None
    assert core.current_epoch("s") == 1
    assert core.row_versions.row("n1") == (6, "s", 0)
    assert core.row_versions.row("n2") is None
    assert next(iter(core.pods.present.values())).bound is None


def test_bound_pods_are_listed_in_the_order_of_their_binds():
    binds = [bind(2, "d"), bind(3, "c"), bind(4, "b", "n9"), bind(5, "a")]
    ran = JournalRecord(6, RecordKind.LOAD, "ran", "ran", "n1", facts=FACTS[0])
    gone = [
        JournalRecord(7, RecordKind.DELETE, "c", "c", "n1"),
        JournalRecord(8, RecordKind.EVICT, "d", "d", "n1"),
    ]
    again = bind(10, "d", "n9")._replace(token="t-again")

    _, result = recovered_from([has_node(1)], binds, [ran, *gone, add(9, "d"), again])

    assert list(result.bound.items()) == [("b", "n9"), ("a", "n1"), ("d", "n9")]


def test_a_token_whose_pod_is_bound_under_another_one_does_not_get_its_answer():
    gone = JournalRecord(4, RecordKind.DELETE, "a", "a", "n1")
    again = bind(6, "a")._replace(token="t-again")
    core, _ = recovered_from([has_node(1), add(2, "a"), bind(3, "a"), gone, add(5, "a"), again])

    first = ask("a")._replace(token="t-a", uid="a", key="a", facts=FACTS[0])
    (answer,) = core.bind([first])

    assert answer.result.cause == "already_bound"


def test_a_bind_to_a_removed_node_makes_no_version():
    live = BinderCore(TableStore(), lambda _: SUCCESS, journals_all=True)
    records = records_of(live.add_node(NodeFacts("n1")))
    records += records_of(live.load([("x", "x", FACTS[0], "n9"), ("y", "y", FACTS[0], "n1")]))

    core, _ = recovered_from(records)

    assert core.version == live.version
    assert [each.node_name for each in core.pods.present.values()] == ["n9", "n1"]


def test_returning_pods_on_removed_nodes_make_no_version():
    loads = [bind(2, "a"), bind(3, "b", "n9"), bind(4, "c")]
    loads = [each._replace(kind=RecordKind.LOAD) for each in loads]

    core, _ = recovered_from([has_node(1)], loads)

    assert [each.bound.version for each in core.pods.present.values()] == [2, 2, 3]
    assert core.version == 3


def test_the_row_of_a_bound_pod_has_the_version_of_its_last_update():
    core, records = versioned(), []
    for effects in (
        core.add_node(NodeFacts("n1")),
        core.add_pods([("a", "a", FACTS[0]), ("b", "b", FACTS[0])]),
        core.bind([ask("a")._replace(uid="a", key="a", facts=FACTS[0], read_version=9)]),
        core.update_pods([("a", FACTS[1]), ("b", FACTS[1])]),
    ):
        records += records_of(effects)
    core.flushed(core.last_lsn)

    again = versioned()
    recover(again, split_by_kind([records]))
    snapshot = versioned()
    recover(snapshot, split_by_kind([[*snapshot_records(core)]]), core.last_lsn)

    assert again.row_versions.row("n1") == core.row_versions.row("n1") == (core.last_lsn - 1, "", 4)
    # A snapshot has only the version of the bind.
    assert snapshot.row_versions.row("n1") == (4, "s", 0)


def test_the_history_of_a_pod_is_listed_as_before():
    live = BinderCore(TableStore(), lambda _: SUCCESS, journals_all=True)
    records = records_of(live.add_node(NodeFacts("n1")))
    records += records_of(live.add_pods([("a", "a", FACTS[0])]))
    records += records_of(live.delete(["a"]))
    records += records_of(live.add_pods([("a", "a", FACTS[0])]))
    records += records_of(live.update_pods([("a", FACTS[1])]))
    live.flushed(live.last_lsn)

    core, _ = recovered_from(records)

    texts = []
    for each in (live, core):
        with pytest.raises(IllegalTransitionError) as refused:
            each.unbind("a")
        texts.append(str(refused.value))
    assert texts[0] == texts[1]
    assert "add→pending, delete→deleted, add→pending, update→pending" in texts[0]


def test_a_pod_loaded_after_its_deletion_exists_again():
    gone = JournalRecord(3, RecordKind.DELETE, "a", "a", "")
    back = JournalRecord(4, RecordKind.LOAD, "a", "a", "n1", facts=FACTS[1])

    core, _ = recovered_from([has_node(1), add(2, "a"), gone, back])

    assert core.pod_status("a") == (BinderState.BOUND, "n1")
    assert core.pod("a") == ("a", FACTS[1])


def test_a_pod_record_without_facts_is_refused():
    with pytest.raises(AssertionError, match="a record of a pod has no facts"):
        recovered_from_records(add(1, "a", facts=None))


@pytest.mark.parametrize("is_enabled", [True, False])
def test_garbage_collection_pauses_while_records_are_read(is_enabled):
    seen = []

    def groups():
        seen.append(gc.isenabled())
        yield [add(1, "a")]

    was_enabled = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        recover(versioned(), split_by_kind(groups()))
        assert gc.isenabled() is is_enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
    assert seen == [False]


def test_repeated_pods_of_a_group_are_applied_one_after_another():
    later = [add(4, "a")._replace(facts=FACTS[1]), add(5, "b")]
    core, result = recovered_from([has_node(1), add(2, "a"), add(3, "b"), *later, add(6, "a")])

    assert (result.records, core.last_lsn) == (6, 6)
    assert core.pod("a")[1] == FACTS[0]
    assert counts_of(core).pending == 2


def test_a_snapshot_of_a_recovered_binder_equals_the_previous_one():
    core = binder("a", "b")
    core.bind([ask("a")])
    core.delete(["uid-b"])
    core.flushed(core.last_lsn)

    again = BinderCore(TableStore(), lambda _: SUCCESS, journals_all=True)
    recover(again, split_by_kind([[*snapshot_records(core)]]), core.last_lsn)

    assert list(snapshot_records(again)) == list(snapshot_records(core))
    assert again.last_lsn == again.flushed_lsn == core.last_lsn
    effect = again.add_pods([("c", "c", PodFacts())])[0]
    assert isinstance(effect, AppendJournal)
    assert effect.last_lsn == core.last_lsn + 1
