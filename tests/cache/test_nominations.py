"""Nominations in the cache: deltas like all others, and none for a counted pod."""

from roadstead.cache import Assumption, CacheCore, DeltaKind, TableStore
from tests.builders import node, pod

URGENT = pod(cpu=100, priority=5)


def cache_with(*names):
    core = CacheCore(TableStore())
    for name in names:
        core.add_node(node(name))
    return core


def summaries(deltas):
    return [(delta.kind, delta.node_name, delta.uid) for delta in deltas]


def test_a_nomination_is_a_delta_and_its_copy_is_none():
    core = cache_with("n1", "n2")
    version = core.version

    assert summaries(core.nominate("u", "n1", URGENT)) == [(DeltaKind.NOMINATE, "n1", "u")]
    assert core.nominate("u", "n1", URGENT) == []
    assert summaries(core.nominate("u", "n2", URGENT)) == [
        (DeltaKind.WITHDRAW, "n1", "u"),
        (DeltaKind.NOMINATE, "n2", "u"),
    ]
    assert summaries(core.nominate("u", "", URGENT)) == [(DeltaKind.WITHDRAW, "n2", "u")]
    assert core.nominate("u", "", URGENT) == []
    assert core.version == version + 4


def test_an_assumed_pod_is_no_longer_nominated():
    core = cache_with("n1", "n2")
    core.nominate("u", "n1", URGENT)

    answer = core.assume([Assumption("u", "d/u", URGENT, "n2", "t")], 0.0)

    assert summaries(answer.deltas) == [
        (DeltaKind.WITHDRAW, "n1", "u"),
        (DeltaKind.ADD_POD, "n2", "u"),
    ]
    assert core.nominate("u", "n1", URGENT) == []


def test_a_preemptor_clears_nominations_of_lower_priority_to_its_node():
    core = cache_with("n1", "n2")
    for uid, name, priority in (("low", "n1", 1), ("equal", "n1", 5), ("other", "n2", 1)):
        core.nominate(uid, name, pod(priority=priority))

    deltas = core.nominate("u", "n1", URGENT, preempts=True)

    assert summaries(deltas) == [(DeltaKind.WITHDRAW, "n1", "low"), (DeltaKind.NOMINATE, "n1", "u")]
    assert core.placements.nominated.keys() == {"equal", "other", "u"}


def test_nominations_to_a_node_are_added_and_removed_with_it():
    core = cache_with()
    assert core.nominate("u", "n1", URGENT) == []

    assert summaries(core.add_node(node("n1")))[-1] == (DeltaKind.NOMINATE, "n1", "u")
    assert summaries(core.snapshot())[-1] == (DeltaKind.NOMINATE, "n1", "u")
    assert summaries(core.remove_node("n1")) == [
        (DeltaKind.WITHDRAW, "n1", "u"),
        (DeltaKind.REMOVE_NODE, "n1", ""),
    ]
    assert core.nominate("u", "", URGENT) == []


def test_a_key_is_known_as_long_as_the_pod_is_remembered():
    core = cache_with("n1")
    core.assume([Assumption("u", "d/u", URGENT, "n1", "t")], 0.0)
    core.remove_pods(["u"])

    assert (core.key_of("u"), core.key_of("stranger")) == ("d/u", "stranger")
