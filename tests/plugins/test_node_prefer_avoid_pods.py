import pytest

from roadstead.facts.pod import Owner
from roadstead.framework.plugin import Reads
from roadstead.plugins.node_prefer_avoid_pods import NodePreferAvoidPods
from tests.builders import node, pod, score_with, table_of

AVOIDS = (("ReplicaSet", "rs-1"), ("ReplicationController", "rc-1"))
NODES = table_of(node("free"), node("picky", avoids=AVOIDS), node("other", avoids=AVOIDS[1:]))


def owned(kind, uid):
    return pod(owner=Owner(kind, "owner", uid))


@pytest.mark.parametrize(
    ("facts", "scores"),
    [
        (pod(), [100, 100, 100]),
        (owned("ReplicaSet", "rs-1"), [100, 0, 100]),
        (owned("ReplicationController", "rc-1"), [100, 0, 0]),
        (owned("ReplicaSet", "rc-1"), [100, 100, 100]),
        (owned("ReplicaSet", "rs-2"), [100, 100, 100]),
        (owned("StatefulSet", "rs-1"), [100, 100, 100]),
    ],
)
def test_a_node_that_avoids_the_controller_scores_zero_and_others_the_maximum(facts, scores):
    assert score_with(NodePreferAvoidPods(), facts, NODES) == scores


def test_pods_are_distinguished_by_relevant_controllers():
    sign = NodePreferAvoidPods().sign

    assert sign(pod()) == sign(owned("StatefulSet", "s")) == sign(owned("Job", "j"))
    assert sign(owned("ReplicaSet", "a")) == sign(owned("ReplicaSet", "a"))
    assert len({sign(pod()), sign(owned("ReplicaSet", "a")), sign(owned("ReplicaSet", "b"))}) == 3


def test_the_plugin_reads_the_node_alone():
    assert NodePreferAvoidPods.reads is Reads.NODE
    assert not NodePreferAvoidPods.normalizes
