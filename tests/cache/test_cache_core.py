"""The cache's contract: exact undo, every repair path, and no assumption dropped without a
query.
"""

import pytest

from roadstead.cache import (
    AskBinder,
    Assumption,
    BinderAnswer,
    CacheCore,
    CacheSettings,
    CacheState,
    PodOnNode,
    TableStore,
)
from roadstead.cache.pods import CacheRecord
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import HostPort, PodFacts
from roadstead.protocol.errors import IllegalTransitionError
from tests.inside import deadlines_of, next_deadline_s

SMALL = PodFacts(requests=(("cpu", 100),), host_ports=(HostPort("0.0.0.0", "TCP", 80),))
LARGE = PodFacts(requests=(("cpu", 900),), labels=(("app", "db"),))


def cache_with(*node_names: str, **settings: float) -> CacheCore:
    core = CacheCore(TableStore(), CacheSettings(**settings))
    for name in node_names:
        core.add_node(NodeFacts(name, allocatable=(("cpu", 4000),), allocatable_pods=10))
    return core


def assumption(name: str, node_name: str, facts: PodFacts = SMALL, token: str = "t1") -> Assumption:
    return Assumption(f"uid-{name}", f"default/{name}", facts, node_name, token)


def placement(name: str, node_name: str, facts: PodFacts = SMALL) -> PodOnNode:
    return PodOnNode(f"uid-{name}", f"default/{name}", facts, node_name)


def cpu(core: CacheCore) -> dict[str, int]:
    """Requested CPU of each node, in milli-CPU."""
    table = core.placements.store.table
    return {name: table.row_facts(name)["requested"].get("cpu", 0) for name in table.node_names()}


def rows(core: CacheCore) -> dict[str, object]:
    table = core.placements.store.table
    return {name: table.row_facts(name) for name in table.node_names()}


def kinds(deltas) -> list[tuple[str, str, str]]:
    return [(delta.kind.value, delta.node_name, delta.uid) for delta in deltas]


class TestAssume:
    def test_the_facts_of_a_pod_are_known_after_its_deletion(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1", LARGE)], 0.0)
        assert core.facts_of("uid-a") == LARGE
        core.remove_pods(["uid-a"])
        assert core.facts_of("uid-a") == LARGE
        with pytest.raises(KeyError):
            core.facts_of("uid-b")

    def test_the_attempt_of_a_pod_is_known_after_its_deletion(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1", token="t7")], 0.0)
        core.remove_pods(["uid-a"])
        assert core.token_of("uid-a") == "t7"
        assert core.token_of("uid-b") == ""

    def test_an_assumed_pod_is_counted_and_sent_to_the_workers(self):
        core = cache_with("n1")
        answer = core.assume([assumption("a", "n1")], 0.0)
        assert kinds(answer.deltas) == [("add_pod", "n1", "uid-a")]
        assert cpu(core) == {"n1": 100}
        assert core.node_of("uid-a") == "n1"

    def test_a_copy_of_an_assumption_after_its_end_is_refused(self):
        core = cache_with("n1")
        core.forget([("uid-a", "t1")])
        answer = core.assume([assumption("a", "n1")], 0.0)
        assert "forgotten before this copy" in answer.refused[0].status.message
        assert core.state_of("uid-a") is CacheState.INITIAL
        assert core.assume([assumption("a", "n1", token="t2")], 0.0).refused == ()

    def test_the_number_of_remembered_ended_attempts_is_bounded(self):
        core = cache_with("n1", max_gone_remembered=1)
        core.forget([("uid-a", "t1"), ("uid-b", "t2")])
        assert core.assume([assumption("a", "n1")], 0.0).refused == ()

    def test_forget_undoes_assume_exactly(self):
        core = cache_with("n1", "n2")
        core.confirm([placement("running", "n1", LARGE)])
        before = rows(core)
        core.assume([assumption("a", "n1"), assumption("b", "n1", LARGE)], 0.0)
        answer = core.forget([("uid-a", "t1"), ("uid-b", "t1")])
        assert kinds(answer.deltas) == [
            ("remove_pod", "n1", "uid-a"),
            ("remove_pod", "n1", "uid-b"),
        ]
        assert rows(core) == before
        assert core.state_of("uid-a") is CacheState.INITIAL
        assert next_deadline_s(core) is None

    def test_a_repeated_assumption_changes_nothing(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        assert core.assume([assumption("a", "n1")], 5.0).deltas == ()
        assert cpu(core) == {"n1": 100}

    def test_a_pod_assumed_by_another_attempt_is_refused_and_the_rest_is_accepted(self):
        core = cache_with("n1", "n2")
        core.assume([assumption("a", "n1")], 0.0)
        answer = core.assume([assumption("a", "n2", token="t2"), assumption("b", "n2")], 0.0)
        assert [refusal.uid for refusal in answer.refused] == ["uid-a"]
        assert "assume is not allowed in state assumed" in answer.refused[0].status.message
        assert "it is on n1 by t1" in answer.refused[0].status.message
        assert cpu(core) == {"n1": 100, "n2": 100}

    def test_the_same_token_with_another_node_is_refused(self):
        core = cache_with("n1", "n2")
        core.assume([assumption("a", "n1")], 0.0)
        assert core.assume([assumption("a", "n2")], 0.0).refused
        assert core.assume([assumption("a", "n1", LARGE)], 0.0).refused

    def test_a_confirmed_pod_cannot_be_assumed(self):
        core = cache_with("n1")
        core.confirm([placement("a", "n1")])
        refused = core.assume([assumption("a", "n1")], 0.0).refused
        assert "it is on n1 by the cluster" in refused[0].status.message

    def test_a_pod_assumed_on_an_unknown_node_is_counted_once_the_node_is_added(self):
        core = cache_with()
        assert core.assume([assumption("a", "n1")], 0.0).deltas == ()
        assert core.counts().on_unknown_nodes == 1
        deltas = core.add_node(NodeFacts("n1"))
        assert kinds(deltas) == [("add_node", "n1", ""), ("add_pod", "n1", "uid-a")]
        assert core.counts().on_unknown_nodes == 0


class TestForget:
    def test_forget_of_an_unknown_pod_is_done_already(self):
        core = cache_with("n1")
        assert core.forget([("uid-a", "t1")]) == core.forget([("uid-a", "t1")])
        assert core.version == 1

    def test_forget_after_confirm_is_refused(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        core.confirm([placement("a", "n1")])
        answer = core.forget([("uid-a", "t1")])
        assert "forget is not allowed in state added" in answer.refused[0].status.message
        assert cpu(core) == {"n1": 100}

    def test_forget_by_another_attempt_is_refused(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        assert core.forget([("uid-a", "t0")]).refused[0].uid == "uid-a"
        assert core.state_of("uid-a") is CacheState.ASSUMED


class TestConfirm:
    def test_a_confirmation_as_assumed_moves_nothing(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        assert core.confirm([placement("a", "n1")]) == []
        assert core.state_of("uid-a") is CacheState.ADDED
        assert next_deadline_s(core) is None

    def test_a_pod_added_on_another_node_than_assumed_moves_its_resources(self):
        core = cache_with("n1", "n2")
        core.assume([assumption("a", "n1")], 0.0)
        deltas = core.confirm([placement("a", "n2")])
        assert kinds(deltas) == [("remove_pod", "n1", "uid-a"), ("add_pod", "n2", "uid-a")]
        assert cpu(core) == {"n1": 0, "n2": 100}
        core.validate()

    def test_a_pod_added_with_other_facts_than_assumed_counts_with_its_new_facts(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        core.confirm([placement("a", "n1", LARGE)])
        assert cpu(core) == {"n1": 900}

    def test_a_pod_that_was_never_assumed_is_added(self):
        core = cache_with("n1")
        assert kinds(core.confirm([placement("a", "n1")])) == [("add_pod", "n1", "uid-a")]

    def test_a_repeated_confirmation_changes_nothing(self):
        core = cache_with("n1")
        core.confirm([placement("a", "n1")])
        assert core.confirm([placement("a", "n1"), placement("a", "n1")]) == []

    def test_a_confirmation_with_newer_facts_is_an_update(self):
        core = cache_with("n1")
        core.confirm([placement("a", "n1")])
        core.confirm([placement("a", "n1", LARGE)])
        assert cpu(core) == {"n1": 900}

    def test_an_added_pod_on_another_node_raises_and_the_batch_changes_nothing(self):
        core = cache_with("n1", "n2")
        core.confirm([placement("a", "n1")])
        before = rows(core)
        with pytest.raises(IllegalTransitionError, match="it is on n1, not on n2"):
            core.confirm([placement("b", "n1"), placement("a", "n2")])
        assert rows(core) == before

    def test_a_pod_on_two_nodes_within_one_batch_raises(self):
        core = cache_with("n1", "n2")
        with pytest.raises(IllegalTransitionError, match="it is on n1, not on n2"):
            core.confirm([placement("a", "n1"), placement("a", "n2")])
        assert core.state_of("uid-a") is CacheState.INITIAL


class TestUpdateAndRemove:
    def test_an_update_of_an_added_pod_counts_its_new_facts(self):
        core = cache_with("n1")
        core.confirm([placement("a", "n1")])
        deltas = core.update_pod("uid-a", LARGE, "n1")
        assert kinds(deltas) == [("remove_pod", "n1", "uid-a"), ("add_pod", "n1", "uid-a")]

    def test_an_update_while_assumed_confirms_the_pod_with_its_new_facts(self):
        core = cache_with("n1", "n2")
        core.assume([assumption("a", "n1")], 0.0)
        core.update_pod("uid-a", LARGE, "n2")
        assert core.state_of("uid-a") is CacheState.ADDED
        assert cpu(core) == {"n1": 0, "n2": 900}

    def test_an_update_never_moves_an_added_pod(self):
        core = cache_with("n1", "n2")
        core.confirm([placement("a", "n1")])
        with pytest.raises(IllegalTransitionError, match="it is on n1, not on n2"):
            core.update_pod("uid-a", SMALL, "n2")
        assert cpu(core) == {"n1": 100, "n2": 0}

    def test_delete_while_assumed_frees_the_node(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        assert kinds(core.remove_pods(["uid-a"])) == [("remove_pod", "n1", "uid-a")]
        assert cpu(core) == {"n1": 0}
        assert core.expire(10_000.0) == []

    def test_a_repeated_delete_changes_nothing(self):
        core = cache_with("n1")
        core.confirm([placement("a", "n1")])
        core.remove_pods(["uid-a", "uid-a"])
        assert core.remove_pods(["uid-a"]) == []

    def test_delete_of_an_unknown_pod_raises_and_the_batch_changes_nothing(self):
        core = cache_with("n1")
        core.confirm([placement("a", "n1")])
        with pytest.raises(IllegalTransitionError, match="remove is not allowed in state initial"):
            core.remove_pods(["uid-a", "uid-z"])
        assert core.state_of("uid-a") is CacheState.ADDED

    def test_a_deleted_pod_may_be_added_as_a_new_one(self):
        core = cache_with("n1", "n2")
        core.confirm([placement("a", "n1")])
        core.remove_pods(["uid-a"])
        core.assume([assumption("a", "n2")], 0.0)
        assert cpu(core) == {"n1": 0, "n2": 100}

    def test_a_pod_added_again_keeps_its_history(self):
        core = cache_with("n1")
        core.confirm([placement("a", "n1")])
        core.remove_pods(["uid-a"])
        core.assume([assumption("a", "n1")], 0.0)
        refused = core.assume([assumption("a", "n1", token="t2")], 0.0).refused
        story = "before it: add→added, remove→deleted, assume→assumed"
        assert refused[0].status.message.endswith(story)

    def test_the_number_of_remembered_deleted_pods_is_bounded(self):
        core = cache_with("n1", max_gone_remembered=2)
        core.confirm([placement(name, "n1") for name in "abc"])
        core.remove_pods(["uid-a", "uid-b", "uid-c"])
        states = [core.state_of(f"uid-{name}") for name in "abc"]
        assert states == [CacheState.INITIAL, CacheState.DELETED, CacheState.DELETED]
        core.validate()


class TestExpiry:
    def test_an_assumption_is_queried_before_it_expires(self):
        core = cache_with("n1", bind_s=30.0)
        core.assume([assumption("a", "n1")], 0.0)
        core.finish_binding([("uid-a", "t1")], 10.0)
        assert core.expire(39.9) == []
        assert core.expire(40.0) == [AskBinder("uid-a", "default/a", "t1", "n1")]
        assert cpu(core) == {"n1": 100}

    def test_a_pod_that_the_binder_does_not_report_as_bound_expires(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        core.expire(900.0)
        answer = core.resolve([BinderAnswer("uid-a", "t1", None)])
        assert kinds(answer.deltas) == [("remove_pod", "n1", "uid-a")]
        assert core.state_of("uid-a") is CacheState.EXPIRED

    def test_a_pod_that_the_binder_has_bound_is_confirmed_on_its_node(self):
        core = cache_with("n1", "n2")
        core.assume([assumption("a", "n1")], 0.0)
        core.expire(900.0)
        core.resolve([BinderAnswer("uid-a", "t1", "n2")])
        assert core.state_of("uid-a") is CacheState.ADDED
        assert cpu(core) == {"n1": 0, "n2": 100}

    def test_a_binder_that_does_not_answer_is_asked_again(self):
        core = cache_with("n1", ask_again_s=5.0)
        core.assume([assumption("a", "n1")], 0.0)
        assert len(core.expire(900.0)) == 1
        assert core.expire(904.9) == []
        assert len(core.expire(905.0)) == 1
        assert next_deadline_s(core) == 910.0

    @pytest.mark.parametrize(
        "answer", [BinderAnswer("uid-a", "t0", None), BinderAnswer("x", "t1", None)]
    )
    def test_an_answer_without_a_query_is_refused(self, answer):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        core.expire(900.0)
        assert "was not asked" in core.resolve([answer]).refused[0].status.message
        assert core.state_of("uid-a") is CacheState.ASKED

    def test_a_late_answer_after_the_confirmation_is_refused(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        core.expire(900.0)
        core.confirm([placement("a", "n1")])
        assert core.resolve([BinderAnswer("uid-a", "t1", None)]).refused
        assert cpu(core) == {"n1": 100}

    def test_a_pod_added_again_after_expiry_is_counted_again(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        core.expire(900.0)
        core.resolve([BinderAnswer("uid-a", "t1", None)])
        assert kinds(core.confirm([placement("a", "n1")])) == [("add_pod", "n1", "uid-a")]
        core.validate()

    def test_an_expired_pod_may_be_assumed_again(self):
        core = cache_with("n1", "n2")
        core.assume([assumption("a", "n1")], 0.0)
        core.expire(900.0)
        core.resolve([BinderAnswer("uid-a", "t1", None)])
        core.assume([assumption("a", "n2", token="t2")], 901.0)
        assert core.forget([("uid-a", "t1")]).refused
        assert cpu(core) == {"n1": 0, "n2": 100}

    def test_finish_binding_restores_the_deadline_of_a_queried_pod(self):
        core = cache_with("n1", bind_s=30.0)
        core.assume([assumption("a", "n1")], 0.0)
        core.expire(900.0)
        core.finish_binding([("uid-a", "t1")], 901.0)
        assert core.state_of("uid-a") is CacheState.ASSUMED
        assert next_deadline_s(core) == 931.0

    def test_finish_binding_ignores_confirmed_and_unknown_pods(self):
        core = cache_with("n1")
        core.confirm([placement("a", "n1")])
        assert core.finish_binding([("uid-a", "t1"), ("uid-z", "t1")], 0.0).refused == ()
        assert next_deadline_s(core) is None

    def test_finish_binding_of_another_attempt_is_refused(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        assert core.finish_binding([("uid-a", "t0")], 5.0).refused[0].uid == "uid-a"
        assert next_deadline_s(core) == 900.0


class TestNodes:
    def test_pods_of_a_removed_node_stay_known_and_return_with_it(self):
        core = cache_with("n1")
        core.confirm([placement("a", "n1")])
        core.assume([assumption("b", "n1", LARGE)], 0.0)
        core.remove_node("n1")
        assert core.node_of("uid-a") == "n1"
        assert core.counts().on_unknown_nodes == 2
        core.forget([("uid-b", "t1")])
        core.add_node(NodeFacts("n1"))
        assert cpu(core) == {"n1": 100}

    def test_an_update_of_a_node_keeps_its_pods(self):
        core = cache_with("n1")
        core.confirm([placement("a", "n1")])
        deltas = core.update_node(NodeFacts("n1", unschedulable=True))
        assert kinds(deltas) == [("update_node", "n1", "")]
        assert cpu(core) == {"n1": 100}

    def test_removal_of_an_unknown_node_raises(self):
        with pytest.raises(IllegalTransitionError, match="node n9: remove is not allowed"):
            cache_with("n1").remove_node("n9")

    def test_pods_of_a_removed_node_can_still_be_removed(self):
        core = cache_with("n1")
        core.confirm([placement("a", "n1")])
        core.remove_node("n1")
        assert core.remove_pods(["uid-a"]) == []
        assert core.counts().on_unknown_nodes == 0


class TestCompare:
    def test_a_rebuilt_cache_is_equal_and_keeps_deadlines(self):
        core = cache_with("n1", "n2")
        core.confirm([placement("a", "n1"), placement("ghost", "gone")])
        core.assume([assumption("b", "n2", LARGE)], 3.0)
        again = core.rebuild(TableStore())
        again.validate()
        assert core.compare(again) == []
        assert rows(again) == rows(core)
        assert next_deadline_s(again) == next_deadline_s(core)

    def test_compare_distinguishes_an_assumed_from_an_added_pod(self):
        ours, theirs = cache_with("n1"), cache_with("n1")
        ours.assume([assumption("a", "n1")], 0.0)
        theirs.confirm([placement("a", "n1")])
        assert ours.compare(theirs) == ["pod uid-a: assumed, not added"]

    def test_compare_finds_a_missing_pod(self):
        ours, theirs = cache_with("n1"), cache_with("n1")
        ours.confirm([placement("a", "n1")])
        assert ours.compare(theirs) == ["pod uid-a: on n1, not on None"]

    def test_a_snapshot_has_everything_that_a_new_worker_needs(self):
        core = cache_with("n1")
        core.assume([assumption("a", "n1")], 0.0)
        assert kinds(core.snapshot()) == [("add_node", "n1", ""), ("add_pod", "n1", "uid-a")]

    def test_counts_return_the_number_of_pods_in_each_state(self):
        core = cache_with("n1", "n2")
        core.confirm([placement("a", "n1")])
        core.assume([assumption("b", "n1"), assumption("c", "n1")], 0.0)
        core.finish_binding([("uid-c", "t1")], 880.0)
        core.expire(900.0)
        counts = core.counts()
        assert (counts.nodes, counts.assumed, counts.asked, counts.added) == (2, 1, 1, 1)


def assumed_of(core):
    return core.pods.present["uid-a"]


def unlisted():
    return CacheRecord("uid-z", "", SMALL, "")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda core: setattr(core.pods.present["uid-a"], "state", CacheState.DELETED),
            "uid-a is present as deleted",
        ),
        (lambda core: setattr(core.pods.present["uid-a"], "node_name", "n2"), "is elsewhere"),
        (lambda core: setattr(core.pods.present["uid-a"], "facts", LARGE), "has other facts"),
        (
            lambda core: deadlines_of(core).remove([core.pods.present["uid-a"]]),
            "deadline and state disagree",
        ),
        (lambda core: core.placements.place("uid-z", "n1", SMALL), "counted and not known"),
        (
            lambda core: deadlines_of(core).put([CacheRecord("uid-z", "", SMALL, "")], 1.0),
            "of no unconfirmed pod",
        ),
        (lambda core: core.pods.ended.update({"uid-a": None}), "present and ended"),
    ],
)
def test_validate_finds_damage(damage, message):
    core = cache_with("n1", "n2")
    core.assume([assumption("a", "n1")], 0.0)
    damage(core)
    with pytest.raises(AssertionError, match=message):
        core.validate()
