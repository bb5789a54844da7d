"""Pods, tokens and owners: each rule accepts one history and refuses another."""

import pytest

from roadstead.facts.run_mark import EPOCH, VOID
from roadstead.invariants.checker import check
from roadstead.journal import RecordKind
from tests.builders import node, pod
from tests.invariants.history import started


def test_a_pod_that_is_accepted_bound_and_deleted_is_in_one_place_at_a_time():
    history = started().accept("a").bind("a").delete("a", "n1").accept("b").delete("b")

    assert history.broken() == []


def test_a_pod_that_waits_may_be_accepted_again_with_other_facts():
    history = started().accept("a", pod(cpu=10)).accept("a", pod(cpu=20)).bind("a")

    assert history.broken() == []


def test_a_pod_that_is_bound_is_not_accepted_again():
    history = started().accept("a").bind("a").accept("a")

    assert history.broken() == [("I4", 4, "it is accepted again and is on n1")]


def test_a_pod_that_runs_is_updated_on_its_node_alone():
    history = started().accept("a").accept("b").bind("a")
    history.add(RecordKind.ADD, "a", "n1", facts=pod())

    assert history.broken() == []
    assert history.delete("a", "n1").broken() == []
    assert history.add(RecordKind.ADD, "b", "n1", facts=pod()).broken() == [
        ("I3", 7, "it is updated there and is on no node")
    ]


def test_a_pod_that_is_updated_on_another_node_stays_where_it_is():
    history = started(cpu=100).node(node("n2", cpu=100)).bind("a")
    history.add(RecordKind.ADD, "a", "n2", facts=pod(cpu=100))
    history.bind("b", "n2").bind("c", "n1")

    assert history.broken() == [
        ("I4", 4, "it is accepted again and is on n1"),
        ("I1", 6, "cpu: 100 + 100 of 100"),
    ]


def test_a_journal_that_tells_of_no_accepted_pods_may_bind_and_delete_any():
    history = started().bind("a").add(RecordKind.ADD, "a", "n1", facts=pod())

    assert history.bind("b").delete("gone").broken() == []


def test_a_pod_may_be_accepted_without_facts():
    assert started().add(RecordKind.ADD, "a").bind("a").broken() == []


def test_pods_may_run_from_the_start_and_be_said_to_run_again():
    history = started().accept("a").add(RecordKind.LOAD, "a", "n1", facts=pod())
    history.add(RecordKind.LOAD, "a", "n1", facts=pod())
    history.add(RecordKind.LOAD, "b", "n1", facts=pod())

    assert history.broken() == []
    assert history.bind("b").broken() == [("I3", 6, "it was bound before")]


def test_a_pod_that_was_deleted_while_it_waited_is_not_bound():
    history = started().accept("a").delete("a").bind("a")

    assert history.broken() == [("I4", 4, "it was deleted before")]


def test_a_pod_that_came_again_after_it_was_deleted_is_bound():
    history = started().accept("a").delete("a").accept("a").bind("a")

    assert history.broken() == []


def test_a_pod_that_is_not_there_is_not_deleted():
    history = started().accept("a").delete("a").delete("a").delete("b")

    assert history.broken() == [
        ("I4", 4, "it is deleted and was not there"),
        ("I4", 5, "it is deleted and was not there"),
    ]


def test_pods_of_a_snapshot_that_are_gone_were_never_there_in_this_journal():
    history = started().accept("a").delete("b")
    history.records[-1] = history.records[-1]._replace(lsn=0)

    assert history.broken() == []
    assert history.bind("b").broken() == [("I4", 4, "it was deleted before")]


def test_room_is_given_back_where_it_was_taken():
    history = started().accept("a").bind("a").accept("b")

    assert history.delete("a", "n2").broken() == [
        ("I5", 5, "its room is given back, but it is on n1")
    ]
    history.records.pop()
    assert history.delete("b", "n1").broken() == [
        ("I5", 5, "its room is given back, but it is on no node")
    ]


def test_nothing_is_bound_under_a_token_that_is_void():
    history = started().accept("a").bind("a", token="t1").accept("b")

    assert history.mark(VOID, token="t2").bind("b", token="t3").broken() == []
    history.records.pop()
    assert history.bind("b", token="t2").broken() == [("I6", 6, "its token t2 was void before")]


def test_a_snapshot_holds_nothing_that_is_bound_under_a_void_token():
    history = started().mark(VOID, token="t")
    history.add(RecordKind.LOAD, "a", "n1", token="t", owner="s", epoch=1, facts=pod())

    assert history.broken() == [("I6", 3, "its token t was void before")]


def test_an_owner_that_was_fenced_binds_nothing():
    history = started().mark(EPOCH, owner="s", epoch=2)

    assert history.bind("a", epoch=2).bind("b", owner="other", epoch=1).broken() == []
    assert history.bind("c", epoch=1).broken() == [("I8", 5, "s: epoch 1 after 2")]


def test_what_a_snapshot_keeps_of_binds_fences_and_remembers_tokens():
    history = started()
    history.add(RecordKind.LOAD, "a", "n1", token="t", owner="s", epoch=3, facts=pod())

    assert history.bind("b", token="t", epoch=2).broken() == [
        ("I8", 3, "its token is that of a"),
        ("I8", 3, "s: epoch 2 after 3"),
    ]


def test_an_owner_is_fenced_by_the_newest_epoch_that_was_seen():
    history = started().mark(EPOCH, owner="s", epoch=3).mark(EPOCH, owner="s", epoch=2)
    # Epochs in a snapshot may be older than a fence.
    history.add(RecordKind.LOAD, "a", "n1", token="t", owner="s", epoch=1, facts=pod())

    assert history.broken() == []
    assert history.bind("b", epoch=2).broken() == [("I8", 5, "s: epoch 2 after 3")]
    history.records.pop()
    assert history.bind("b", epoch=3).broken() == []


def test_pods_that_overtake_their_like_are_counted():
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


def test_a_pod_overtakes_those_of_any_higher_priority_that_wait():
    waiting = ("low", LOW), ("middle", MIDDLE), ("high", HIGH)

    assert overtaken(*waiting, then=["high", "middle", "low"]) == 0
    assert overtaken(*waiting, then=["high", "low", "middle"]) == 1
    assert overtaken(*waiting, then=["middle", "low", "high"]) == 2


def test_a_pod_that_is_accepted_again_keeps_its_turn_if_it_is_as_it_was():
    first, second = ("a", LOW), ("b", LOW)

    assert overtaken(first, second, first, then="ab") == 0
    assert overtaken(first, second, first, then="ba") == 1
    assert overtaken(first, second, ("a", HIGH), then="ba") == 1
    assert overtaken(first, second, ("b", HIGH), then="ba") == 0
    # Its earlier facts keep no pod waiting.
    assert overtaken(("a", HIGH), ("a", LOW), then="a") == 0
    assert overtaken(("a", pod(cpu=1)), ("a", LOW), ("b", pod(cpu=1)), then="ba") == 0


def test_equal_facts_are_alike_though_they_are_read_apart():
    assert overtaken(("a", pod(cpu=7)), ("b", pod(cpu=7)), then="ba") == 1


@pytest.mark.parametrize("kind", [RecordKind.DELETE, RecordKind.LOAD])
def test_a_pod_that_is_gone_or_runs_already_waits_no_more(kind):
    history = started().accept("a").accept("b")
    node_name = "n1" if kind is RecordKind.LOAD else ""
    history.add(kind, "a", node_name, facts=pod()).bind("b")

    assert history.broken() == []
    assert check(history.records).counts == {}


def test_a_pod_that_was_updated_waits_among_those_that_are_like_it_now():
    gated, opened = pod(scheduling_gates=("g",)), pod()
    history = started().accept("a", gated).accept("b", opened).accept("a", opened)

    assert check(history.bind("b").bind("a").records).counts == {}
