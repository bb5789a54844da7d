"""Comparing facts to find the changes of updates."""

import pytest

from roadstead.framework.change_events import node_change_events, pod_change_events
from roadstead.framework.events import NODE_ADD, NODE_DELETE, ObjectChange
from tests.builders import node, pod, taint, tolerate


def test_an_added_or_removed_node_is_one_event():
    (came,), (left,) = node_change_events(None, node()), node_change_events(node(), None)

    assert (came.event, came.change) == (NODE_ADD, ObjectChange(None, node()))
    assert (left.event, left.change) == (NODE_DELETE, ObjectChange(node(), None))


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        (node(), node(), []),
        (node(unschedulable=True), node(), ["NodeUpdateNodeTaint"]),
        (node(), node(unschedulable=True), []),
        (
            node(unschedulable=True),
            node(pods=1, taints=(taint("a"),)),
            ["NodeUpdateNodeTaint", "NodeUpdateNodeAllocatable", "NodeUpdateNodeTaint"],
        ),
        (node(), node(taints=(taint("a"),)), ["NodeUpdateNodeTaint"]),
        (node(), node(cpu=1), ["NodeUpdateNodeAllocatable"]),
        (node(), node(pods=1), ["NodeUpdateNodeAllocatable"]),
        (
            node(),
            node(pods=1, labels={"a": "b"}),
            ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"],
        ),
        (node(), node(images={"a:1": 5}), []),
    ],
)
def test_the_changes_of_a_node_are_found_by_comparing_facts(old, new, labels):
    seen = node_change_events(old, new)

    assert [each.event.label for each in seen] == labels
    assert all(each.change == ObjectChange(old, new) for each in seen)


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (pod(priority=1), pod(priority=2), ["Update"]),
        (pod(), pod(labels={"a": "b"}), ["UpdatePodLabel"]),
        (pod(cpu=2), pod(cpu=1), ["UpdatePodScaleDown"]),
        (pod(cpu=2), pod(), ["UpdatePodScaleDown"]),
        (pod(cpu=1), pod(cpu=2), ["Update"]),
        (pod(scheduling_gates=("a",)), pod(), ["UpdatePodSchedulingGatesEliminated"]),
        (pod(scheduling_gates=("a", "b")), pod(scheduling_gates=("a",)), ["Update"]),
        (pod(), pod(tolerations=(tolerate("a"),)), ["UpdatePodToleration"]),
        (pod(tolerations=(tolerate("a"),)), pod(tolerations=(tolerate("b"),)), ["Update"]),
        (pod(cpu=1), pod(others={"memory": 1}), ["UpdatePodScaleDown"]),
    ],
)
def test_the_changes_of_a_waiting_pod_are_found_by_comparing_facts(old, new, actions):
    seen = pod_change_events(old, new, is_assigned=False)

    assert [each.event.label for each in seen] == [f"UnschedulablePod{each}" for each in actions]
    assert all(each.change.of_waiting_pod for each in seen)
