"""Pods, tokens and owners: each rule accepts one history and refuses another."""

import pytest

from roadstead.facts.run_mark import EPOCH, VOID
from roadstead.invariants.checker import check
from roadstead.journal import RecordKind
from tests.builders import node, pod
from tests.invariants.history import started


def test_an_accepted_bound_and_deleted_pod_is_on_one_node_at_a_time():
    history = started().accept("a").bind("a").delete("a", "n1").accept("b").delete("b")

    assert history.broken() == []


def test_a_waiting_pod_may_be_accepted_again_with_other_facts():
    history = started().accept("a", pod(cpu=10)).accept("a", pod(cpu=20)).bind("a")

    assert history.broken() == []


def test_a_bound_pod_is_not_accepted_again():
    history = started().accept("a").bind("a").accept("a")

    assert history.broken() == [("I4", 4, "it is accepted again and is on n1")]


def test_a_running_pod_is_updated_on_its_own_node_only():
    history = started().accept("a").accept("b").bind("a")
    history.add(RecordKind.ADD, "a", "n1", facts=pod())

    assert history.broken() == []
    assert history.delete("a", "n1").broken() == []
    assert history.add(RecordKind.ADD, "b", "n1", facts=pod()).broken() == [
        ("I3", 7, "it is updated there and is on no node")
    ]


def test_a_pod_updated_on_another_node_stays_on_its_own():
    history = started(cpu=100).node(node("n2", cpu=100)).bind("a")
    history.add(RecordKind.ADD, "a", "n2", facts=pod(cpu=100))
    history.bind("b", "n2").bind("c", "n1")

    assert history.broken() == [
        ("I4", 4, "it is accepted again and is on n1"),
        ("I1", 6, "cpu: 100 + 100 of 100"),
    ]


def test_a_journal_without_acceptances_may_bind_and_delete_any_pod():
    history = started().bind("a").add(RecordKind.ADD, "a", "n1", facts=pod())

    assert history.bind("b").delete("gone").broken() == []


def test_a_pod_may_be_accepted_without_facts():
    assert started().add(RecordKind.ADD, "a").bind("a").broken() == []


def test_pods_may_run_from_the_start_and_be_reported_again():
    history = started().accept("a").add(RecordKind.LOAD, "a", "n1", facts=pod())
    history.add(RecordKind.LOAD, "a", "n1", facts=pod())
    history.add(RecordKind.LOAD, "b", "n1", facts=pod())

    assert history.broken() == []
    assert history.bind("b").broken() == [("I3", 6, "it was bound before")]


def test_a_pod_deleted_while_waiting_is_not_bound():
    history = started().accept("a").delete("a").bind("a")

    assert history.broken() == [("I4", 4, "it was deleted before")]


def test_a_pod_added_again_after_its_deletion_is_bound():
    history = started().accept("a").delete("a").accept("a").bind("a")

    assert history.broken() == []


def test_an_unknown_pod_is_not_deleted():
    history = started().accept("a").delete("a").delete("a").delete("b")

    assert history.broken() == [
        ("I4", 4, "it is deleted and was not there"),
        ("I4", 5, "it is deleted and was not there"),
    ]


def test_deleted_pods_of_a_snapshot_never_existed_in_this_journal():
    history = started().accept("a").delete("b")
    history.records[-1] = history.records[-1]._replace(lsn=0)

    assert history.broken() == []
    assert history.bind("b").broken() == [("I4", 4, "it was deleted before")]


def test_a_deleted_pod_frees_the_room_on_its_node():
    history = started().accept("a").bind("a").accept("b")

    assert history.delete("a", "n2").broken() == [
        ("I5", 5, "its room is given back, but it is on n1")
    ]
    history.records.pop()
    assert history.delete("b", "n1").broken() == [
        ("I5", 5, "its room is given back, but it is on no node")
    ]


def test_no_pod_is_bound_under_a_void_token():
    history = started().accept("a").bind("a", token="t1").accept("b")

    assert history.mark(VOID, token="t2").bind("b", token="t3").broken() == []
    history.records.pop()
    assert history.bind("b", token="t2").broken() == [("I6", 6, "its token t2 was void before")]


def test_a_snapshot_has_no_pod_bound_under_a_void_token():
    history = started().mark(VOID, token="t")
    history.add(RecordKind.LOAD, "a", "n1", token="t", owner="s", epoch=1, facts=pod())

    assert history.broken() == [("I6", 3, "its token t was void before")]


def test_a_fenced_owner_binds_nothing():
    history = started().mark(EPOCH, owner="s", epoch=2)

    assert history.bind("a", epoch=2).bind("b", owner="other", epoch=1).broken() == []
    assert history.bind("c", epoch=1).broken() == [("I8", 5, "s: epoch 1 after 2")]


def test_binds_in_a_snapshot_fence_owners_and_keep_tokens():
    history = started()
    history.add(RecordKind.LOAD, "a", "n1", token="t", owner="s", epoch=3, facts=pod())

    assert history.bind("b", token="t", epoch=2).broken() == [
        ("I8", 3, "its token is that of a"),
        ("I8", 3, "s: epoch 2 after 3"),
    ]


def test_the_newest_known_epoch_fences_an_owner():
    history = started().mark(EPOCH, owner="s", epoch=3).mark(EPOCH, owner="s", epoch=2)
    # Epochs in a snapshot may be older than a fence.
    history.add(RecordKind.LOAD, "a", "n1", token="t", owner="s", epoch=1, facts=pod())

    assert history.broken() == []
    assert history.bind("b", epoch=2).broken() == [("I8", 5, "s: epoch 2 after 3")]
    history.records.pop()
    assert history.bind("b", epoch=3).broken() == []


def test_pods_that_overtake_equal_pods_are_counted():
    small, urgent = pod(cpu=10), pod(cpu=10, priority=5)
    history = started().accept("a", small).accept("b", small).accept("c", urgent)
    history.accept("d", pod(cpu=20))

    for uid in "cabd":
        history.bind(uid)
    assert check(history.records).counts == {}
    del history.records[5:]
    for uid in "bdac":
        history.bind(uid)
    assert check(history.records).counts == {"overtaken": 2}


def overtaken(*accepted, then=()):
    """Return how many pods are overtaken after pods are accepted, (uid, facts), and then the
    rest.
    """
    history = started()
    for uid, facts in accepted:
        history.accept(uid, facts)
    for uid in then:
        history.bind(uid)
    return check(history.records).counts["overtaken"]


LOW, MIDDLE, HIGH = pod(), pod(priority=5), pod(priority=9)


def test_a_pod_overtakes_every_waiting_pod_of_higher_priority():
    waiting = ("low", LOW), ("middle", MIDDLE), ("high", HIGH)

    assert overtaken(*waiting, then=["high", "middle", "low"]) == 0
    assert overtaken(*waiting, then=["high", "low", "middle"]) == 1
    assert overtaken(*waiting, then=["middle", "low", "high"]) == 2


def test_an_unchanged_pod_that_is_accepted_again_keeps_its_turn():
    first, second = ("a", LOW), ("b", LOW)

    assert overtaken(first, second, first, then="ab") == 0
    assert overtaken(first, second, first, then="ba") == 1
    assert overtaken(first, second, ("a", HIGH), then="ba") == 1
    assert overtaken(first, second, ("b", HIGH), then="ba") == 0
    # Its earlier facts keep no pod waiting.
    assert overtaken(("a", HIGH), ("a", LOW), then="a") == 0
    assert overtaken(("a", pod(cpu=1)), ("a", LOW), ("b", pod(cpu=1)), then="ba") == 0


def test_equal_facts_match_though_they_are_separate_objects():
    assert overtaken(("a", pod(cpu=7)), ("b", pod(cpu=7)), then="ba") == 1


@pytest.mark.parametrize("kind", [RecordKind.DELETE, RecordKind.LOAD])
def test_a_deleted_or_running_pod_no_longer_waits(kind):
    history = started().accept("a").accept("b")
    node_name = "n1" if kind is RecordKind.LOAD else ""
    history.add(kind, "a", node_name, facts=pod()).bind("b")

    assert history.broken() == []
    assert check(history.records).counts == {}


def test_an_updated_pod_waits_among_pods_equal_to_its_new_facts():
    gated, opened = pod(scheduling_gates=("g",)), pod()
    history = started().accept("a", gated).accept("b", opened).accept("a", opened)

    assert check(history.bind("b").bind("a").records).counts == {}
