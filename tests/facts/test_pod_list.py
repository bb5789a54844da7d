"""Batches of pods in messages: the identity and facts of each pod, each class encoded once."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadstead.facts.pod import PodFacts, PodIdentity, identity_of
from roadstead.facts.pod_list import NO_PODS, ClassColumn, PodList, pod_list, pod_list_of_columns
from roadstead.protocol.codec import from_wire, to_wire
from roadstead.protocol.plain_data import CodecError, pack, unpack
from tests import strategies
from tests.builders import pod

NAMESPACES = ("red", "red", "red", "blue", "blue", "red")

KINDS = st.builds(
    lambda facts, namespace, nominated: replace(
        facts, namespace=namespace, nominated_node_name=nominated
    ),
    strategies.pods,
    st.sampled_from(["default", "prod"]),
    st.sampled_from(["", "n1"]),
)


@st.composite
def pods(draw):
    """Draw pods of a few classes; some have a start, some a UID that is their key."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=3))
    found = []
    for number in range(draw(st.integers(0, 8))):
        facts = draw(st.sampled_from(kinds))
        key = f"{facts.namespace}/p{number}"
        uid = draw(st.sampled_from([key, f"u{number}"]))
        started_s = draw(st.sampled_from([None, 0.0, 12.5]))
        found.append((PodIdentity(uid, facts.namespace, f"p{number}", started_s), facts))
    return found


def test_each_pod_keeps_its_facts_when_temporary_objects_reuse_an_id():
    """A new object may have the memory address, and so the id, of a freed one."""
    pods = [PodIdentity(f"u{n}", namespace, f"p{n}") for n, namespace in enumerate(NAMESPACES)]

    batch = pod_list((who, PodFacts(who.namespace)) for who in pods)

    assert [facts.namespace for _, facts in batch.pods()] == list(NAMESPACES)
    assert len(batch.classes) == 2


@settings(max_examples=20)
@given(pods(), st.integers(0, 9))
def test_a_batch_returns_the_pods_from_which_it_was_made(given_pods, revision):
    batch = pod_list(given_pods, revision)
    received = from_wire(PodList, unpack(pack(to_wire(batch))))

    assert received == batch, "also after encoding and decoding"
    assert received.revision == revision
    assert [(who.uid, who.key, facts) for who, facts in received.pods()] == [
        (who.uid, who.key, facts) for who, facts in given_pods
    ]
    assert received.starts() == {
        who.uid: who.started_s for who, _ in given_pods if who.started_s is not None
    }


@settings(max_examples=20)
@given(pods())
def test_the_cheaper_form_by_key_has_the_same_pods(given_pods):
    batch = pod_list(given_pods)

    by_key = list(batch.keyed())

    assert by_key == [(who.uid, who.key, facts) for who, facts in batch.pods()]
    for uid, key, _ in by_key:
        assert (key is uid) == (key == uid), "a UID that is the key is not stored twice"


@settings(max_examples=20)
@given(pods())
def test_columns_of_running_pods_have_no_nominated_node(given_pods):
    uids = [who.uid for who, _ in given_pods]
    keys = [who.key for who, _ in given_pods]

    batch = pod_list_of_columns(uids, keys, [facts for _, facts in given_pods])

    wanted = [
        (who.uid, who.key, replace(facts, nominated_node_name="")) for who, facts in given_pods
    ]
    assert list(batch.keyed()) == wanted
    assert not batch.started_s


@settings(max_examples=20)
@given(pods())
def test_each_class_is_encoded_once_and_classes_are_in_order_of_first_use(given_pods):
    batch = pod_list(given_pods)

    classes = list(dict.fromkeys(facts for _, facts in given_pods))
    assert len(batch.classes) == len(set(batch.classes)) == len(classes)
    assert list(batch.class_of) == [classes.index(facts) for _, facts in given_pods]


@settings(max_examples=20)
@given(pods(), st.integers(1, 3))
def test_split_lists_have_all_pods_in_order_and_few_classes(given_pods, classes_max):
    batch = pod_list(given_pods, revision=3)

    parts = list(batch.split(classes_max))

    assert [pod for part in parts for pod in part.pods()] == list(batch.pods())
    starts = [part.starts() for part in parts]
    assert {uid: time_s for each in starts for uid, time_s in each.items()} == batch.starts()
    for part in parts:
        assert len(part.classes) <= classes_max
        assert part.revision == 3
        assert set(part.class_of) == set(range(len(part.classes)))
    for part, later in pairwise(parts):
        assert later.classes[0] not in part.classes, "no part ends early"
        assert len(part.classes) == classes_max


def test_a_thousand_pods_of_a_class_need_little_more_than_their_names():
    labels = {f"label-{number}": "x" * 60 for number in range(20)}
    facts = [pod(cpu=100, labels=labels) for _ in range(1000)]
    identities = [identity_of(f"ns/p{number}", f"ns/p{number}") for number in range(1000)]

    data = pack(to_wire(pod_list(zip(identities, facts, strict=True))))

    assert len(data) < 1000 * len("ns/p999 p999 0") + 3000, "bytes of the message"


def test_a_pod_of_a_class_that_the_table_lacks_is_no_pod():
    batch = pod_list([(PodIdentity("u", "default", "p"), PodFacts())])

    for wrong in (replace(batch, class_of=(1,)), replace(batch, classes=())):
        with pytest.raises(IndexError):
            list(wrong.pods())
    with pytest.raises(ValueError, match="zip"):
        list(replace(batch, names=()).pods())
    with pytest.raises(CodecError):
        list(replace(batch, classes=(b"\xc1",)).pods())


def test_no_pods_are_an_empty_batch():
    assert pod_list([]) == NO_PODS == pod_list_of_columns([], [], [])
    assert list(NO_PODS.pods()) == list(NO_PODS.keyed()) == []
    assert ClassColumn().table == ()
