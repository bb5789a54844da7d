import pytest

from roadstead.config.plugin_args import NodeLabelArgs
from roadstead.framework.events import ActionType, EventResource
from roadstead.framework.plugin import Reads
from roadstead.plugins.node_label import NodeLabel
from tests.builders import filter_with, hopeless, node, pod, score_with, table_of

REFUSED = hopeless("node(s) didn't have the requested labels")
NODES = table_of(
    node("bare"),
    node("foo", labels={"foo": "any"}),
    node("bar", labels={"bar": ""}),
    node("both", labels={"foo": "x", "bar": "y"}),
)


def filtered(**args):
    return filter_with(NodeLabel(NodeLabelArgs(**args)), pod(), NODES)


def scored(**args):
    return score_with(NodeLabel(NodeLabelArgs(**args)), pod(), NODES)


@pytest.mark.parametrize(
    ("args", "fitting"),
    [
        ({}, {"bare", "foo", "bar", "both"}),
        ({"present_labels": ("foo",)}, {"foo", "both"}),
        ({"present_labels": ("foo", "bar")}, {"both"}),
        ({"absent_labels": ("foo",)}, {"bare", "bar"}),
        ({"absent_labels": ("foo", "bar")}, {"bare"}),
        ({"present_labels": ("foo",), "absent_labels": ("bar",)}, {"foo"}),
        ({"present_labels": ("nobody",)}, set()),
    ],
)
def test_a_node_fits_with_all_present_labels_and_no_absent_one_at_any_values(args, fitting):
    result = filtered(**args)

    assert result == [None if name in fitting else REFUSED for name in NODES.names]


@pytest.mark.parametrize(
    ("args", "scores"),
    [
        ({"present_labels_preference": ("foo",)}, [0, 100, 0, 100]),
        ({"absent_labels_preference": ("foo",)}, [100, 0, 100, 0]),
        ({"present_labels_preference": ("foo", "bar")}, [0, 50, 50, 100]),
        (
            {"present_labels_preference": ("foo",), "absent_labels_preference": ("bar",)},
            [50, 100, 0, 50],
        ),
        ({"present_labels_preference": ("foo", "bar", "nobody")}, [0, 33, 33, 66]),
    ],
)
def test_the_score_is_the_share_of_satisfied_preferences(args, scores):
    assert scored(**args) == scores


def test_without_preferences_scores_are_never_requested():
    with pytest.raises(AssertionError, match="refused without labels"):
        scored(present_labels=("foo",))


def test_no_fact_of_a_pod_matters():
    plugin = NodeLabel(NodeLabelArgs())

    assert plugin.sign(pod()) == plugin.sign(pod(cpu=5, labels={"a": "b"})) == ()
    assert plugin.reads is Reads.NODE


def test_new_nodes_and_changed_labels_requeue_rejected_pods():
    (registered,) = NodeLabel(NodeLabelArgs()).events_to_register()

    assert registered.event.resource is EventResource.NODE
    assert registered.event.action == ActionType.ADD | ActionType.UPDATE_NODE_LABEL
