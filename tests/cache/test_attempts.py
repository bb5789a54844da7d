"""Attempts that conflict: within one batch, after their end, and in bounded memory."""

import pytest

from roadstead.cache import Assumption, CacheCore, CacheSettings, CacheState, PodOnNode, TableStore
from roadstead.facts.node_list import NodeList
from tests.builders import node, pod
from tests.inside import next_deadline_s

FACTS = pod(cpu=100)


def cache_with(*names, **settings):
    core = CacheCore(TableStore(), CacheSettings(**settings))
    for name in names:
        core.add_node(node(name))
    return core


def assumption(uid, node_name="n1", token="t1"):
    return Assumption(uid, f"default/{uid}", FACTS, node_name, token)


def refused(answer):
    return [(each.uid, each.status.message) for each in answer.refused]


def test_the_first_of_two_attempts_in_one_batch_gets_the_pod():
    core = cache_with("n1", "n2")

    answer = core.assume(
        [assumption("a"), assumption("b"), assumption("a", "n2", "t2"), assumption("c", "n2")], 0.0
    )

    assert [uid for uid, _ in refused(answer)] == ["a"]
    assert [(each.uid, each.node_name) for each in answer.deltas] == [
        ("a", "n1"),
        ("b", "n1"),
        ("c", "n2"),
    ]
    assert (core.node_of("a"), core.token_of("a")) == ("n1", "t1")
    core.validate()


def test_an_assumption_after_copies_in_one_batch_succeeds():
    core = cache_with("n1")
    core.assume([assumption("again")], 0.0)
    core.forget([("late", "t1")])

    answer = core.assume([assumption("again"), assumption("late"), assumption("new")], 0.0)

    assert [uid for uid, _ in refused(answer)] == ["late"]
    assert [each.uid for each in answer.deltas] == ["new"]


def test_binding_finishes_after_confirmed_and_unknown_pods_in_a_batch():
    core = cache_with("n1", bind_s=30.0)
    core.confirm([PodOnNode("a", "default/a", FACTS, "n1")])
    core.assume([assumption("b")], 0.0)

    core.finish_binding([("a", "t1"), ("z", "t1"), ("b", "t1")], 1.0)

    assert next_deadline_s(core) == 31.0


def test_a_repeated_confirmation_is_one_step_of_the_pods_history():
    core = cache_with("n1")
    for _ in range(2):
        core.confirm([PodOnNode("a", "default/a", FACTS, "n1")])

    ((_, why),) = refused(core.assume([assumption("a")], 0.0))

    assert why.endswith("before it: add→added")


def test_a_copy_of_an_assumption_after_the_pod_was_deleted_is_refused():
    core = cache_with("n1")
    core.assume([assumption("a")], 0.0)
    core.remove_pods(["a"])

    ((uid, why),) = refused(core.assume([assumption("a")], 0.0))

    assert (uid, "forgotten before this copy" in why) == ("a", True)
    assert core.state_of("a") is CacheState.DELETED
    assert core.assume([assumption("a", token="t2")], 0.0).refused == ()


def test_a_deleted_pod_without_an_assumption_is_not_among_ended_attempts():
    core = cache_with("n1", max_gone_remembered=1)
    core.forget([("a", "t1")])
    core.confirm([PodOnNode("b", "default/b", FACTS, "n1")])

    core.remove_pods(["b"])

    assert [uid for uid, _ in refused(core.assume([assumption("a")], 0.0))] == ["a"]


def test_a_forgotten_pod_is_not_among_deleted_pods():
    core = cache_with("n1", max_gone_remembered=1)
    core.assume([assumption("a"), assumption("b")], 0.0)
    core.remove_pods(["a"])

    core.forget([("b", "t1")])

    assert (core.state_of("a"), core.token_of("a")) == (CacheState.DELETED, "t1")
    assert (core.state_of("b"), core.token_of("b")) == (CacheState.INITIAL, "")


@pytest.mark.parametrize("preempts", [False, True])
def test_a_pod_whose_nomination_is_removed_is_nominated_to_no_node(preempts):
    core = cache_with("n1")
    core.nominate("a", "n1", FACTS)

    core.nominate("a", "", FACTS, preempts=preempts)

    assert core.placements.nominated == {}


def test_nodes_are_added_in_bulk_only_where_none_of_them_is_known():
    core = cache_with()

    assert core.add_nodes(NodeList.of([node("n1"), node("n2")]))
    assert not core.add_nodes(NodeList.of([node("n2"), node("n3")]))

    assert list(core.placements.nodes) == ["n1", "n2"]


def test_the_default_commit_has_fifteen_minutes_and_its_confirmation_thirty_seconds():
    core = cache_with("n1")
    core.assume([assumption("a"), assumption("b")], 0.0)
    assert next_deadline_s(core) == 900.0

    core.finish_binding([("a", "t1")], 0.0)

    assert next_deadline_s(core) == 30.0
    assert core.settings.max_gone_remembered == 65_536
