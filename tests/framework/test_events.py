import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.framework.events import (
    ASSIGNED_POD_ADD,
    EVERYTHING,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
    QueueingHint,
    on,
)

POD, NODE = EventResource.POD, EventResource.NODE
WILDCARD = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (NODE_ADD, "NodeAdd"),
        (ClusterEvent(NODE, ActionType.UPDATE_NODE_TAINT), "NodeUpdateNodeTaint"),
        (ClusterEvent(NODE, ActionType.UPDATE), "NodeUpdate"),
        (ASSIGNED_POD_ADD, "AssignedPodAdd"),
        (
            ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCALE_DOWN),
            "UnschedulablePodUpdatePodScaleDown",
        ),
        (ClusterEvent(EventResource.CSI_NODE, ActionType.ADD), "storage.k8s.io/CSINodeAdd"),
        (WILDCARD, "*All"),
        (ClusterEvent(NODE, ActionType.ADD | ActionType.DELETE), "Node"),
    ],
)
def test_an_event_has_upstreams_label(event, label):
    assert event.label == label


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        (ClusterEvent(NODE, ActionType.ADD), NODE_ADD, True),
        (ClusterEvent(NODE, ActionType.ADD), ClusterEvent(NODE, ActionType.DELETE), False),
        (ClusterEvent(NODE, ActionType.ADD | ActionType.DELETE), NODE_ADD, True),
        (ClusterEvent(POD, ActionType.ADD), ASSIGNED_POD_ADD, True),
        (ASSIGNED_POD_ADD, ClusterEvent(POD, ActionType.ADD), False),
        (ClusterEvent(POD, ActionType.ADD), NODE_ADD, False),
        (WILDCARD, NODE_ADD, True),
        (NODE_ADD, WILDCARD, False),
        (
            ClusterEvent(NODE, ActionType.UPDATE),
            ClusterEvent(NODE, ActionType.UPDATE_NODE_LABEL),
            True,
        ),
        (
            ClusterEvent(NODE, ActionType.UPDATE_NODE_LABEL),
            ClusterEvent(NODE, ActionType.UPDATE),
            False,
        ),
        (ClusterEvent(EventResource.WILDCARD, ActionType.ADD), NODE_ADD, True),
    ],
)
def test_a_registered_event_matches_equal_and_more_specific_events(registered, incoming, matches):
    assert registered.matches(incoming) is matches


@given(st.sampled_from(list(EventResource)[:-1]), st.sampled_from(list(ActionType)))
def test_a_wildcard_matches_everything_and_is_matched_only_by_itself(resource, action):
    event = ClusterEvent(resource, action)

    assert WILDCARD.matches(event)
    assert not event.matches(WILDCARD)
    assert WILDCARD.is_wildcard
    assert not event.is_wildcard


def test_every_update_type_is_neither_add_nor_delete():
    finer = [each for each in ActionType if each not in (ActionType.ADD, ActionType.DELETE)]

    assert all(each in ActionType.UPDATE for each in finer)
    assert not ActionType.UPDATE & (ActionType.ADD | ActionType.DELETE)
    assert ActionType.UPDATE | ActionType.ADD | ActionType.DELETE == ActionType.ALL


def test_a_plugin_without_registration_gets_events_of_pods_nodes_and_storage():
    received = [each.event for each in EVERYTHING]

    assert all(each.hint is None for each in EVERYTHING)
    assert any(each.matches(ASSIGNED_POD_ADD) for each in received)
    assert any(each.matches(NODE_ADD) for each in received)


def test_a_hint_is_queue_when_its_condition_holds():
    assert QueueingHint.when(True) is QueueingHint.QUEUE
    assert QueueingHint.when(False) is QueueingHint.QUEUE_SKIP


def test_an_event_is_registered_with_its_hint():
    def hint(pod, change, cluster):
        return QueueingHint.QUEUE

    assert on(NODE, ActionType.ADD, hint).hint is hint
    assert on(NODE, ActionType.ADD).event == NODE_ADD
