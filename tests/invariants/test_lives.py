"""Pods, tokens and owners: each rule passes one history and refuses another."""

from roadstead.facts.run_mark import EPOCH, VOID
from roadstead.invariants.checker import check
from roadstead.journal import RecordKind
from tests.builders import pod
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


def test_a_pod_that_was_updated_waits_among_those_that_are_like_it_now():
    gated, opened = pod(scheduling_gates=("g",)), pod()
    history = started().accept("a", gated).accept("b", opened).accept("a", opened)

    assert check(history.bind("b").bind("a").records).counts == {}
