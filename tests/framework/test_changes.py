"""Updates told from manifests, and what facts tell of them."""

import pytest

from roadstead.framework.changes import node_update_events, pod_update_events
from roadstead.framework.events import NODE_ADD, NODE_DELETE, Change
from roadstead.framework.fact_changes import seen_node, seen_pod
from roadstead.protocol import objects
from tests.builders import node, pod, taint, tolerate


def node_of(spec=None, status=None, **meta):
    return objects.Node.read(
        {"metadata": {"name": "n", **meta}, "spec": spec or {}, "status": status or {}}
    )


def pod_of(spec=None, status=None, **meta):
    return objects.Pod.read(
        {"metadata": {"name": "p", **meta}, "spec": spec or {}, "status": status or {}}
    )


def asking(**requests):
    return {"containers": [{"name": "c", "resources": {"requests": requests}}]}


def labels_of(events):
    return [each.label for each in events]


SOFT = {"key": "a", "effect": "PreferNoSchedule"}
READY = {"type": "Ready", "status": "True"}
CPU = {"allocatable": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        (node_of(), node_of(), []),
        (node_of(CPU), node_of(CPU), []),
        (node_of({"unschedulable": True}), node_of(), ["NodeUpdateNodeTaint"]),
        (node_of(), node_of({"unschedulable": True}), []),
        (
            node_of({"unschedulable": True}),
            node_of({"taints": [SOFT]}),
            ["NodeUpdateNodeTaint", "NodeUpdateNodeTaint"],
        ),
        (node_of(status=CPU), node_of(status={"allocatable": {"cpu": "1000m"}}), []),
        (
            node_of(status=CPU),
            node_of(status={"allocatable": {"cpu": "2"}}),
            ["NodeUpdateNodeAllocatable"],
        ),
        (
            node_of(status=CPU),
            node_of(status={"allocatable": {"cpu": "1", "x.io/y": "0"}}),
            ["NodeUpdateNodeAllocatable"],
        ),
        (node_of(), node_of(labels={"a": "b"}), ["NodeUpdateNodeLabel"]),
        (node_of(), node_of({"taints": [SOFT]}), ["NodeUpdateNodeTaint"]),
        (
            node_of({"taints": [SOFT]}),
            node_of({"taints": [SOFT | {"timeAdded": "2025-01-01T00:00:00Z"}]}),
            ["NodeUpdateNodeTaint"],
        ),
        (node_of(), node_of(status={"conditions": [READY]}), ["NodeUpdateNodeCondition"]),
        (
            node_of(status={"conditions": [READY]}),
            node_of(status={"conditions": [READY | {"reason": "KubeletReady"}]}),
            [],
        ),
        (node_of(), node_of(annotations={"a": "b"}), ["NodeUpdateNodeAnnotation"]),
        (
            node_of(),
            node_of(status=CPU, labels={"a": "b"}, annotations={"c": "d"}),
            ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel", "NodeUpdateNodeAnnotation"],
        ),
    ],
)
def test_an_update_of_a_node_is_one_event_per_kind_of_change(old, new, labels):
    assert labels_of(node_update_events(old, new)) == labels


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (pod_of(), pod_of(), ["Update"]),
        (pod_of(), pod_of(annotations={"a": "b"}), ["Update"]),
        (pod_of(), pod_of(labels={"a": "b"}), ["UpdatePodLabel"]),
        (pod_of(asking(cpu="2")), pod_of(asking(cpu="1")), ["UpdatePodScaleDown"]),
        (pod_of(asking(cpu="1")), pod_of(asking(cpu="2")), ["Update"]),
        (pod_of(asking(cpu="1")), pod_of(asking(memory="1")), ["UpdatePodScaleDown"]),
        (pod_of(asking(other="1")), pod_of(asking()), ["UpdatePodScaleDown"]),
        (
            pod_of({"schedulingGates": [{"name": "a"}, {"name": "b"}]}),
            pod_of({"schedulingGates": [{"name": "a"}]}),
            ["Update"],
        ),
        (
            pod_of({"schedulingGates": [{"name": "a"}]}),
            pod_of(),
            ["UpdatePodSchedulingGatesEliminated"],
        ),
        (pod_of(), pod_of({"tolerations": [{"key": "a"}]}), ["UpdatePodToleration"]),
        (
            pod_of({"tolerations": [{"key": "a"}]}),
            pod_of({"tolerations": [{"key": "b"}]}),
            ["Update"],
        ),
        (
            pod_of(),
            pod_of(status={"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "b"}]}),
            ["UpdatePodGeneratedResourceClaim"],
        ),
    ],
)
def test_an_update_of_a_pod_is_one_event_per_kind_of_change_or_a_plain_one(old, new, actions):
    expected = [f"UnschedulablePod{action}" for action in actions]
    assert labels_of(pod_update_events(old, new)) == expected


def test_the_new_pod_says_whether_it_is_assigned():
    assigned = pod_of({"nodeName": "n"})

    assert labels_of(pod_update_events(pod_of(), assigned)) == ["AssignedPodUpdate"]
    assert labels_of(pod_update_events(assigned, pod_of())) == ["UnschedulablePodUpdate"]


def test_a_node_that_came_or_left_is_one_event():
    (came,), (left,) = seen_node(None, node()), seen_node(node(), None)

    assert (came.event, came.change) == (NODE_ADD, Change(None, node()))
    assert (left.event, left.change) == (NODE_DELETE, Change(node(), None))


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        (node(), node(), []),
        (node(unschedulable=True), node(), ["NodeUpdateNodeTaint"]),
        (node(), node(unschedulable=True), []),
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
def test_facts_tell_what_changed_of_a_node(old, new, labels):
    seen = seen_node(old, new)

    assert [each.event.label for each in seen] == labels
    assert all(each.change == Change(old, new) for each in seen)


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
    ],
)
def test_facts_tell_what_changed_of_a_pod_that_waits(old, new, actions):
    seen = seen_pod(old, new, is_assigned=False)

    assert [each.event.label for each in seen] == [f"UnschedulablePod{each}" for each in actions]
    assert all(each.change.own for each in seen)
