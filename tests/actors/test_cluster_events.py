"""Reactions of the queue to reported changes of the cluster."""

from roadstead.framework.events import EventPod, ObjectChange
from roadstead.queue import events as cluster_events
from roadstead.queue.events import PodEvents, node_events
from roadstead.queue.reports import NodeChange
from tests.builders import node, pod

WEB, DB = pod(labels={"app": "web"}), pod(labels={"app": "db"})


def test_pods_of_one_class_in_any_order_are_one_event():
    events = PodEvents()

    first = events.assigned([WEB, DB, WEB])
    again = events.assigned([DB])

    assert [each.change.new.facts for each in first] == [WEB, DB]
    assert again == [first[1]]


def test_pods_are_reported_as_assigned_deleted_or_waiting():
    events = PodEvents()
    (assigned,), (gone,), (waiting,) = (
        events.assigned([WEB]),
        events.unassigned([WEB]),
        events.added([WEB]),
    )

    assert (assigned.event.label, assigned.change) == (
        "AssignedPodAdd",
        ObjectChange(new=EventPod(WEB, True)),
    )
    assert (gone.event.label, gone.change) == (
        "AssignedPodDelete",
        ObjectChange(old=EventPod(WEB, True), thorough=True),
    )
    assert (waiting.event.label, waiting.change) == (
        "UnschedulablePodAdd",
        ObjectChange(new=EventPod(WEB, False)),
    )


def test_the_memory_of_events_is_bounded(monkeypatch):
    monkeypatch.setattr(cluster_events, "MAX_CACHED_EVENTS", 1)
    events = PodEvents()
    (first,) = events.assigned([WEB])
    events.assigned([DB])
    events.unassigned([DB])

    (second,) = events.assigned([WEB])

    assert second != first
    assert second.change == first.change


def test_a_changed_node_gives_an_event_for_each_type_of_change():
    changes = [
        NodeChange(None, node("a")),
        NodeChange(node("b"), node("b", cpu=1, labels={"x": "y"})),
        NodeChange(node("c"), None),
    ]

    assert [each.event.label for each in node_events(changes)] == [
        "NodeAdd",
        "NodeUpdateNodeAllocatable",
        "NodeUpdateNodeLabel",
        "NodeDelete",
    ]
