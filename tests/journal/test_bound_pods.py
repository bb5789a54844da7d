"""The pods that are bound at the end of a journal."""

from roadstead.facts.pod import PodFacts
from roadstead.journal import JournalRecord, RecordKind
from roadstead.journal.bound_pods import BoundPods


def of_pod(kind, uid, node="n1", token=""):
    return JournalRecord(1, kind, uid, f"default/{uid}", node, token, facts=PodFacts())


def bound_after(*groups):
    bound = BoundPods()
    for group in groups:
        bound.apply(group)
    return bound.pods


def test_bound_pods_are_listed_in_the_order_of_their_commits():
    found = bound_after(
        [of_pod(RecordKind.ADD, "b"), of_pod(RecordKind.ADD, "a"), of_pod(RecordKind.ADD, "c")],
        [of_pod(RecordKind.BIND, "b", "n2", "t1"), of_pod(RecordKind.BIND, "a", "n1", "t2")],
    )

    assert list(found.items()) == [("b", ("default/b", "n2")), ("a", ("default/a", "n1"))]


def test_pods_that_ran_before_the_run_are_excluded_and_those_of_a_snapshot_included():
    found = bound_after(
        [of_pod(RecordKind.LOAD, "ran"), of_pod(RecordKind.LOAD, "bound", token="t1")]
    )

    assert list(found) == ["bound"]


def test_an_evicted_or_deleted_pod_is_no_longer_bound():
    found = bound_after(
        [of_pod(RecordKind.BIND, uid, token=uid) for uid in ("evicted", "deleted", "stays")],
        [of_pod(RecordKind.EVICT, "evicted"), of_pod(RecordKind.DELETE, "deleted")],
        [of_pod(RecordKind.DELETE, "never bound")],
    )

    assert list(found) == ["stays"]


def test_an_updated_bound_pod_stays_bound():
    found = bound_after([of_pod(RecordKind.BIND, "a", token="t")], [of_pod(RecordKind.ADD, "a")])

    assert list(found) == ["a"]
