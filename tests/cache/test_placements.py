"""Placements: deltas without gaps, pods of unknown nodes kept aside, a store with the same
contents.
"""

from collections import Counter
from unittest.mock import patch

import pytest

from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import PodFacts
from roadstead.placements import DeltaKind, Placements, TableStore
from tests.inside import kept_by

SMALL = PodFacts(requests=(("cpu", 100),))
LARGE = PodFacts(requests=(("cpu", 900),))


class FakeStore:
    """Nodes with the number of pods by facts; strict about both."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeFacts] = {}
        self.pods: dict[str, Counter[PodFacts]] = {}

    def add_node(self, facts: NodeFacts) -> None:
        assert facts.name not in self.nodes
        self.nodes[facts.name], self.pods[facts.name] = facts, Counter()

    def add_nodes(self, nodes: NodeList) -> None:
        for facts in nodes:
            self.add_node(facts)

    def update_node(self, facts: NodeFacts) -> None:
        assert facts.name in self.nodes
        self.nodes[facts.name] = facts

    def remove_node(self, name: str) -> None:
        assert not self.pods.pop(name), f"{name} is removed with pods on it"
        del self.nodes[name]

    def missing(self, names) -> set[str]:
        return set(names) - set(self.nodes)

    def add_pod(self, node_name: str, facts: PodFacts, count: int = 1) -> None:
        self.pods[node_name][facts] += count

    def add_pods(self, node_names: list[str], pods: list[PodFacts]) -> list[str]:
        for node_name, facts in zip(node_names, pods, strict=True):
            self.add_pod(node_name, facts)
        return node_names

    def remove_pod(self, node_name: str, facts: PodFacts) -> None:
        pods = self.pods[node_name]
        assert pods[facts] > 0, f"no such pod on {node_name}"
        pods[facts] -= 1
        if not pods[facts]:
            del pods[facts]

    def node_names(self) -> list[str]:
        return list(self.nodes)


def placements_with(*node_names: str) -> tuple[Placements, FakeStore]:
    store = FakeStore()
    placements = Placements(store)
    for name in node_names:
        placements.add_node(NodeFacts(name))
    return placements, store


def kinds(deltas) -> list[tuple[str, str]]:
    return [(delta.kind.value, delta.uid or delta.node_name) for delta in deltas]


def test_a_placed_pod_is_counted_and_returned_as_a_delta():
    placements, store = placements_with("n1")
    (delta,) = placements.place("u1", "n1", SMALL)
    assert (delta.kind, delta.node_name, delta.uid, delta.pod) == ("add_pod", "n1", "u1", SMALL)
    assert store.pods["n1"] == {SMALL: 1}
    assert placements.node_of("u1") == "n1"
    assert placements.facts_of("u1") == SMALL


def test_versions_of_deltas_grow_by_one():
    placements, _ = placements_with("n1", "n2")
    deltas = placements.place("u1", "n1", SMALL)
    deltas += placements.replace("u1", "n2", LARGE)
    deltas += placements.remove_node("n2")
    assert [delta.version for delta in deltas] == [3, 4, 5, 6, 7]
    assert placements.version == 7


def test_a_pod_is_placed_once():
    placements, _ = placements_with("n1")
    placements.place("u1", "n1", SMALL)
    with pytest.raises(AssertionError, match="u1 is placed on n1 already"):
        placements.place("u1", "n1", SMALL)


def test_a_store_that_raises_leaves_the_nomination_of_the_pod():
    placements, store = placements_with("n1", "n2")
    placements.nominate("u1", "n2", SMALL)
    version = placements.version

    with patch.object(store, "add_pod", side_effect=OverflowError), pytest.raises(OverflowError):
        placements.place("u1", "n1", SMALL)

    assert placements.nominated == {"u1": ("n2", SMALL)}
    assert (placements.version, placements.node_of("u1")) == (version, None)
    assert kinds(placements.place("u1", "n1", SMALL)) == [("withdraw", "u1"), ("add_pod", "u1")]


def test_a_removed_pod_leaves_no_trace():
    placements, store = placements_with("n1")
    placements.place("u1", "n1", SMALL)
    assert kinds(placements.remove_pod("u1")) == [("remove_pod", "u1")]
    assert store.pods["n1"] == {}
    assert placements.node_of("u1") is None
    assert len(placements) == 0
    placements.validate()


def test_a_pod_of_an_unknown_node_is_kept_aside_until_the_node_is_added():
    placements, store = placements_with()
    assert placements.place("u1", "n1", SMALL) == []
    assert placements.node_of("u1") == "n1"
    deltas = placements.add_node(NodeFacts("n1"))
    assert kinds(deltas) == [("add_node", "n1"), ("add_pod", "u1")]
    assert store.pods["n1"] == {SMALL: 1}


def test_a_pod_aside_may_be_removed_before_its_node_is_added():
    placements, store = placements_with()
    placements.place("u1", "n1", SMALL)
    assert placements.remove_pod("u1") == []
    placements.add_node(NodeFacts("n1"))
    assert store.pods["n1"] == {}


def test_a_removed_node_releases_its_pods_first_and_gets_them_back():
    placements, store = placements_with("n1")
    placements.place("u1", "n1", SMALL)
    placements.place("u2", "n1", LARGE)
    removed = placements.remove_node("n1")
    assert kinds(removed) == [("remove_pod", "u1"), ("remove_pod", "u2"), ("remove_node", "n1")]
    assert "n1" not in store.node_names()
    placements.add_node(NodeFacts("n1"))
    assert store.pods["n1"] == {SMALL: 1, LARGE: 1}


def test_a_removed_node_without_pods_is_one_delta():
    placements, _ = placements_with("n1")
    assert kinds(placements.remove_node("n1")) == [("remove_node", "n1")]


def test_a_node_added_again_with_other_facts_is_updated():
    placements, store = placements_with("n1")
    cordoned = NodeFacts("n1", unschedulable=True)
    (delta,) = placements.add_node(cordoned)
    assert (delta.kind, delta.node) == (DeltaKind.UPDATE_NODE, cordoned)
    assert store.nodes["n1"] == cordoned


def test_a_repeated_node_is_no_delta():
    placements, _ = placements_with("n1")
    assert placements.add_node(NodeFacts("n1")) == []
    assert placements.version == 1


def test_an_update_of_an_unknown_node_adds_it():
    placements, _ = placements_with()
    assert kinds(placements.update_node(NodeFacts("n1"))) == [("add_node", "n1")]


def test_a_replacement_with_the_same_facts_is_no_delta():
    placements, _ = placements_with("n1")
    placements.place("u1", "n1", SMALL)
    assert placements.replace("u1", "n1", PodFacts(requests=(("cpu", 100),))) == []


def test_a_replacement_with_other_facts_counts_them():
    placements, store = placements_with("n1")
    placements.place("u1", "n1", SMALL)
    assert kinds(placements.replace("u1", "n1", LARGE)) == [
        ("remove_pod", "u1"),
        ("add_pod", "u1"),
    ]
    assert store.pods["n1"] == {LARGE: 1}


def test_a_snapshot_builds_a_copy_without_pods_aside():
    placements, store = placements_with("n1", "n2")
    placements.place("u1", "n1", SMALL)
    placements.place("u2", "gone", SMALL)
    snapshot = placements.snapshot()
    assert kinds(snapshot) == [("add_node", "n1"), ("add_node", "n2"), ("add_pod", "u1")]
    assert {delta.version for delta in snapshot} == {placements.version}
    copy = FakeStore()
    for delta in snapshot:
        if delta.node is not None:
            copy.add_node(delta.node)
        else:
            copy.add_pod(delta.node_name, delta.pod)
    assert (copy.nodes, copy.pods) == (store.nodes, store.pods)


def test_compare_names_each_difference():
    ours, _ = placements_with("n1", "n2")
    theirs, _ = placements_with("n2", "n3")
    ours.update_node(NodeFacts("n2", unschedulable=True))
    for uid, here, there in (("u1", "n1", None), ("u2", "n1", "n2"), ("u3", "n2", "n2")):
        ours.place(uid, here, SMALL)
        if there:
            theirs.place(uid, there, LARGE)
    assert ours.compare(theirs) == [
        "node n1: facts differ or it is only on one side",
        "node n2: facts differ or it is only on one side",
        "node n3: facts differ or it is only on one side",
        "pod u1: on n1, not on None",
        "pod u2: on n1, not on n2",
        "pod u3: facts differ",
    ]
    assert ours.compare(ours) == []


def test_placements_start_on_an_empty_store():
    store = FakeStore()
    store.add_node(NodeFacts("n1"))
    with pytest.raises(AssertionError, match="start with an empty store"):
        Placements(store)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda kept, placements: kept.node_of.popitem(), "without a node"),
        (lambda kept, placements: kept.facts_of.popitem(), "without facts"),
        (lambda kept, placements: kept.pods_on.clear(), "disagree"),
        (lambda kept, placements: kept.pods_on.update(n9={}), "empty list"),
        (lambda kept, placements: setattr(placements, "counted", 1), "counted on an unknown node"),
    ],
)
def test_validate_finds_damage(damage, message):
    placements, _ = placements_with("n1")
    placements.place("u1", "n1", SMALL)
    placements.place("u2", "n1", SMALL)
    placements.remove_node("n1")
    damage(kept_by(placements), placements)
    with pytest.raises(AssertionError, match=message):
        placements.validate()


def test_table_store_counts_pods_of_the_node_table_by_their_facts():
    store = TableStore()
    placements = Placements(store)
    placements.add_node(NodeFacts("n1", allocatable=(("cpu", 4000),)))
    placements.place("u1", "n1", SMALL)
    placements.place("u2", "n1", LARGE)
    assert store.table.has_node("n1")
    assert store.table.requested(store.table.resource_code("cpu")).tolist() == [1000]
    placements.remove_pod("u2")
    placements.update_node(NodeFacts("n1", allocatable=(("cpu", 8000),)))
    assert store.table.requested(store.table.resource_code("cpu")).tolist() == [100]
    placements.remove_node("n1")
    assert list(store.node_names()) == []
    store.table.validate()


def test_new_nodes_added_in_bulk_equal_those_added_one_by_one():
    at_once, one_by_one = (Placements(TableStore()) for _ in range(2))
    nodes = NodeList.of([NodeFacts("n1"), NodeFacts("n2", unschedulable=True)])

    assert at_once.are_unknown(nodes)
    at_once.add_nodes(nodes)

    for facts in nodes:
        one_by_one.add_node(facts)
    assert at_once.version == one_by_one.version == 2
    assert at_once.snapshot() == one_by_one.snapshot()


def test_known_nodes_are_not_new():
    placements, _ = placements_with("n1")
    placements.place("u1", "n2", SMALL)
    placements.nominate("u2", "n3", SMALL)

    strange = [placements.are_unknown(NodeList.of([NodeFacts(f"n{i}")])) for i in range(1, 5)]

    assert strange == [False, False, False, True]
    assert not placements.are_unknown(NodeList.of([NodeFacts("n9"), NodeFacts("n9")]))


MANY = [(f"u{number}", ("n1", "n2", "away")[number % 3], SMALL) for number in range(12)]


@pytest.mark.parametrize("is_nominated", [False, True])
@pytest.mark.parametrize("pods", [MANY, MANY[:3]])
def test_pods_placed_in_bulk_equal_those_placed_one_by_one(pods, is_nominated):
    singly, ours = placements_with("n1", "n2")
    at_once, theirs = placements_with("n1", "n2")
    for each in (singly, at_once) if is_nominated else ():
        each.nominate("u1", "n1", SMALL)

    expected = [delta for pod in pods for delta in singly.place(*pod)]

    assert at_once.place_all(*zip(*pods, strict=True)) == expected
    assert (ours.nodes, singly.version) == (theirs.nodes, at_once.version)
    assert at_once.uncounted == singly.uncounted == len(pods) // 3
    at_once.validate()


@pytest.mark.parametrize("is_nominated", [False, True])
def test_pods_placed_in_bulk_without_deltas_are_counted(is_nominated):
    placements, store = placements_with("n1", "n2")
    if is_nominated:
        placements.nominate("u1", "n1", SMALL)

    placements.bulk_place(*zip(*MANY, strict=True))

    assert store.pods["n1"] == {SMALL: 4}
    assert not placements.nominated
    assert placements.node_of("u2") == "away"
    placements.validate()
