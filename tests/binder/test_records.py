"""The journal records of each change; a change is made completely or not at all."""

import pytest

from roadstead.binder import (
    Acknowledge,
    BindConflictError,
    BinderCore,
    BinderHaltedError,
    BinderState,
    BindRequest,
    Bound,
    Rejected,
    TableStore,
)
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.run_mark import BEGUN, RunMark
from roadstead.journal import RecordKind
from roadstead.protocol.errors import IllegalTransitionError
from roadstead.protocol.status import SUCCESS
from tests.binder.test_all_or_nothing import Hooks, PlannedError, core_of
from tests.binder.test_all_or_nothing import ask as ask_plainly
from tests.binder.test_binder_core import LARGE, SMALL, answers, ask, binder, committed
from tests.binder.test_void import records_of
from tests.inside import counts_of

NODES = NodeList.of([NodeFacts("n3"), NodeFacts("n4")])
CHANGES = {
    "add_node": (lambda core, *at: core.add_node(NodeFacts("n2"), *at), RecordKind.NODE),
    "add_nodes": (lambda core, *at: core.add_nodes(NODES, *at), RecordKind.NODE),
    "update_node": (lambda core, *at: core.update_node(NodeFacts("n1"), *at), RecordKind.NODE),
    "remove_node": (lambda core, *at: core.remove_node("n1", *at), RecordKind.NODE_GONE),
    "add_pods": (lambda core, *at: core.add_pods([("b", "b", SMALL)], *at), RecordKind.ADD),
    "update_pods": (lambda core, *at: core.update_pods([("a", LARGE)], *at), RecordKind.ADD),
    "delete": (lambda core, *at: core.delete(["a"], *at), RecordKind.DELETE),
}


def core_with_journal(*, journals_all=True):
    core = BinderCore(TableStore(), lambda _: SUCCESS, journals_all=journals_all)
    core.add_node(NodeFacts("n1", allocatable_pods=3))
    core.add_pods([("a", "a", SMALL)])
    return core


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("revision", [(), (5,)])
def test_the_records_of_a_change_have_its_revision_and_zero_without_one(change, revision):
    core = core_with_journal()
    before = core.last_lsn
    ask_for, kind = CHANGES[change]

    found = records_of(ask_for(core, *revision))

    assert {each.kind for each in found} == {kind}

    assert [each.epoch for each in found] == [revision[0] if revision else 0] * len(found)
    assert [each.lsn for each in found] == list(range(before + 1, before + 1 + len(found)))


def test_reported_cluster_state_has_no_revision_of_its_own():
    core = core_with_journal()

    (cluster,) = records_of(core.describe(ClusterFacts()))
    (mark,) = records_of(core.describe(RunMark(BEGUN), RecordKind.RUN))

    assert (cluster.kind, cluster.epoch, cluster.subject) == (RecordKind.CLUSTER, 0, ClusterFacts())
    assert (mark.kind, mark.epoch, mark.lsn) == (RecordKind.RUN, 0, cluster.lsn + 1)


def test_an_eviction_names_its_preemptor_and_a_load_has_its_facts():
    core = core_with_journal()

    (load,) = records_of(core.load([("b", "b", LARGE, "n1")]))
    (evicted,) = records_of(core.evict(["b"], {"b": "preemptor"}))

    assert (load.facts, load.epoch, load.node_name) == (LARGE, 0, "n1")
    assert (evicted.owner, evicted.epoch, evicted.facts) == ("preemptor", 0, None)


def test_a_journal_with_fewer_records_gets_binds_and_node_changes():
    core = core_with_journal(journals_all=False)
    for change in ("add_node", "add_nodes", "add_pods", "update_pods"):
        assert CHANGES[change][0](core) == []
    assert core.describe(ClusterFacts()) == []
    assert core.last_lsn == 0

    kinds = [each.kind for each in records_of(CHANGES["update_node"][0](core))]
    kinds += [each.kind for each in records_of(CHANGES["delete"][0](core))]

    assert kinds == [RecordKind.NODE, RecordKind.DELETE]
    assert core.remove_node("n1") == []


def test_a_halted_binder_describes_no_cluster():
    core = core_with_journal()
    core.flush_failed("disk full")

    with pytest.raises(BinderHaltedError, match="halted: disk full"):
        core.describe(ClusterFacts())


def test_loaded_pods_wait_for_their_flush():
    core = binder()
    core.load([(f"u{n}", f"default/{n}", SMALL, "n1") for n in range(3)])
    assert counts_of(core).unflushed == 3

    core.flushed(2)

    assert counts_of(core).unflushed == 1
    assert [each.lsn for each in core.pods.present.values()] == [1, 2, 3]


def test_one_pod_that_may_not_be_evicted_leaves_all_unchanged():
    core = binder("a")
    committed(core, ask("a"))
    before = core.last_lsn

    with pytest.raises(IllegalTransitionError, match='"uid-never": evict is not allowed'):
        core.evict(["uid-a", "uid-never"])

    assert core.pod_status("uid-a") == (BinderState.BOUND, "n1")
    assert core.last_lsn == before
    core.validate()


def test_one_pod_that_may_not_be_updated_leaves_all_unchanged():
    core = binder("a", "gone")
    core.delete(["uid-gone"])

    with pytest.raises(IllegalTransitionError, match='"uid-gone": update is not allowed'):
        core.update_pods([("uid-a", LARGE), ("uid-gone", LARGE)])

    assert core.pod("uid-a") == ("default/a", SMALL)


def test_already_deleted_pods_are_omitted_from_a_batch_of_ends():
    core = binder("a", "b", "c")
    core.delete(["uid-a"])

    found = records_of(core.delete(["uid-b", "uid-a", "uid-c"]))

    assert [each.uid for each in found] == ["uid-b", "uid-c"]


def test_present_and_recent_pods_are_known_by_uid():
    core = binder("a", "b", "gone")
    core.delete(["uid-gone"])

    assert core.pod("uid-gone") == ("default/gone", SMALL)
    assert [each.uid for each in core.records(["uid-b", "uid-gone", "uid-z"])] == ["uid-b"]
    with pytest.raises(KeyError, match="uid-z"):
        core.pod("uid-z")


def test_a_pod_added_again_after_its_end_is_no_longer_deleted():
    core = binder("a", "b")
    core.delete(["uid-a", "uid-b"])

    core.load([("uid-a", "default/a", SMALL, "n1")])
    core.add_pods([("uid-b", "default/b", SMALL)])

    core.validate()
    assert core.pod_status("uid-a") == (BinderState.BOUND, "n1")
    with pytest.raises(IllegalTransitionError, match="delete→deleted, load→bound"):
        core.unbind("uid-a")


def test_the_last_void_tokens_are_remembered_up_to_the_limit():
    core = binder(max_tokens=2)
    core.void(["first", "x", "y"])

    assert core.void(["x", "y"]) == []
    assert [each.token for each in records_of(core.void(["first"]))] == ["first"]


def test_refusals_of_a_batch_that_raised_are_not_the_answer_of_later_requests():
    hooks = Hooks()
    core = core_of(hooks)
    hooks.fails_at = 2
    with pytest.raises(PlannedError):
        core.bind([ask_plainly("new"), ask_plainly("pod-0"), ask_plainly("pod-1")])
    core.add_pods([("new", "new", SMALL)])

    core.bind([ask_plainly("new", facts=SMALL)])

    assert core.bind([ask_plainly("new", facts=SMALL)]) == []
    answered = answers(core.flushed(core.last_lsn))
    assert isinstance(answered["t-new"], Bound)


def test_the_first_of_two_conflicts_in_a_batch_is_named():
    core = binder("a", "b", "c")
    core.bind([ask("a")])

    with pytest.raises(BindConflictError, match="asked before for default/a on n1"):
        core.bind([ask("a", "n2"), ask("b", token="t"), ask("c", token="t")])


def test_requests_and_refusals_have_no_version_by_default():
    request = BindRequest("t", "u", "k", "n", SMALL, "s", 1)
    core = binder()

    (answer,) = core.bind([request])

    assert request.read_version == 0
    assert isinstance(answer, Acknowledge)
    assert isinstance(answer.result, Rejected)
    assert answer.result.row_version == 0
    assert Rejected("u", answer.result.cause, 1).row_version == 0


def test_a_token_for_two_requests_is_an_error_even_if_both_would_be_refused():
    core = binder("a", "b")
    core.flush_failed("disk full")

    with pytest.raises(BindConflictError, match="asked before for default/a on n1"):
        core.bind([ask("a", token="t"), ask("b", token="t")])
