"""Traces: classes and names reproduce every node and pod; inconsistent traces are refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.node import NodeFacts, class_of_node, named_node
from roadstead.facts.pod import PodFacts
from roadstead.facts.taints import Taint
from roadstead.fleet.trace import NEVER_MS, NEVER_S, TraceBuilder
from roadstead.protocol.errors import InputError

NAMES = st.text("abcdefgh", min_size=1, max_size=3)
LABELS = st.dictionaries(
    st.sampled_from(["kubernetes.io/hostname", "zone", "disk"]), NAMES, max_size=3
).map(lambda labels: tuple(sorted(labels.items())))
NODES = st.lists(
    st.builds(
        NodeFacts,
        name=NAMES,
        labels=LABELS,
        allocatable_pods=st.integers(0, 2),
        taints=st.sampled_from([(), (Taint("a", "b", "NoSchedule"),)]),
    ),
    max_size=12,
    unique_by=lambda node: node.name,
)


def node(name="n-0", **changes):
    labels = (("kubernetes.io/hostname", name), ("zone", "z"))
    return NodeFacts(**({"name": name, "labels": labels, "allocatable_pods": 10} | changes))


def small_trace():
    builder = TraceBuilder("test", {"default": ()})
    builder.add_node(node("n-0"))
    builder.add_node(node("n-1"))
    builder.add_pod("p-0", "u-0", PodFacts(priority=1), creation_s=5, deletion_s=9)
    builder.add_pod("p-1", "u-1", PodFacts(priority=1), creation_s=6)
    return builder.build()


@given(NODES)
def test_nodes_are_returned_as_added(nodes):
    builder = TraceBuilder("test")
    for facts in nodes:
        builder.add_node(facts)
    assert builder.build().nodes() == nodes


@given(st.lists(st.integers(0, 3), max_size=30))
def test_pods_are_returned_as_added_and_share_their_facts(priorities):
    builder = TraceBuilder("test")
    for index, priority in enumerate(priorities):
        builder.add_pod(f"p-{index}", f"u-{index}", PodFacts(priority=priority), index)
    trace = builder.build()
    assert [facts.priority for _, facts in trace.pods()] == priorities
    assert len({id(facts) for _, facts in trace.pods()}) == len(set(priorities))


def test_nodes_that_differ_only_in_names_are_one_class():
    trace = small_trace()
    assert len(trace.node_classes) == 1
    assert trace.node_classes[0].name == ""


def test_a_hostname_label_of_another_name_is_kept():
    odd = node("n-0", labels=(("kubernetes.io/hostname", "elsewhere"),))
    assert named_node(class_of_node(odd), "n-0") == odd


def test_identities_have_uid_namespace_and_name():
    (first, _), _ = small_trace().pods()
    assert (first.uid, first.key) == ("u-0", "default/p-0")


def test_a_pod_without_deletion_is_never_deleted():
    assert small_trace().deletion_s.tolist() == [9, NEVER_S]


def test_pods_of_the_same_name_in_two_namespaces_are_two_pods():
    builder = TraceBuilder("test")
    builder.add_pod("p", "u-0", PodFacts(namespace="a"))
    builder.add_pod("p", "u-1", PodFacts(namespace="b"))
    assert len(builder.build().pod_names) == 2


INT32, INT64 = np.int32, np.int64
BROKEN = {
    "node classes missing": ({"node_class": np.array([0], INT32)}, "nodes.class: has 1 entries"),
    "pod classes missing": ({"pod_class": np.array([], INT32)}, "pods.class: has 0 entries"),
    "uids missing": ({"pod_uids": ("u-0",)}, "pods.uid: has 1 entries for 2 pods"),
    "creations missing": ({"creation_ms": np.array([1], INT64)}, "pods.creation_ms: has 1 entries"),
    "deletions missing": ({"deletion_ms": np.array([1], INT64)}, "pods.deletion_ms: has 1 entries"),
    "node class unknown": (
        {"node_class": np.array([0, 1], INT32)},
        "nodes.class: 1 is not one of the 1 classes",
    ),
    "pod class negative": (
        {"pod_class": np.array([0, -1], INT32)},
        "pods.class: -1 is not one of the 1 classes",
    ),
    "creation negative": (
        {"creation_ms": np.array([5, -6], INT64)},
        "pods.creation_ms: -6 must not be negative",
    ),
    "deletion before creation": (
        {"deletion_ms": np.array([4, NEVER_MS], INT64)},
        "pods.deletion_ms: must not be before the creation",
    ),
    "node twice": ({"node_names": ("n", "n")}, 'nodes.name: "n" is there twice'),
    "pod twice": ({"pod_names": ("p", "p")}, 'pods.name: "default/p" is there twice'),
    "uid twice": ({"pod_uids": ("u", "u")}, 'pods.uid: "u" is there twice'),
}


@pytest.mark.parametrize(("changes", "text"), BROKEN.values(), ids=BROKEN)
def test_inconsistent_columns_are_refused(changes, text):
    with pytest.raises(InputError, match=text):
        replace(small_trace(), **changes).validate()
