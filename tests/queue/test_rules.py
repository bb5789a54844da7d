"""The waiting pods that are checked after an event of a pod on a node."""

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import GroupMembership, PodAffinityTerm, PodIdentity
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventPod,
    EventResource,
    ObjectChange,
)
from roadstead.framework.hint_map import HintMap, OccurredEvent
from roadstead.queue.core import QueueCore
from roadstead.queue.event_rules import event_rules
from roadstead.queue.events import PodEvents
from roadstead.queue.pods import QueueSettings, QueueState, Requeue, RequeueReason
from tests.builders import node, pod, profile_of

FIT, SPREAD, AFFINITY = "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"
ASSIGNED = EventResource.ASSIGNED_POD
LABELS = ClusterEvent(ASSIGNED, ActionType.UPDATE_POD_LABEL)
SHRUNK = ClusterEvent(ASSIGNED, ActionType.UPDATE_POD_SCALE_DOWN)
TEAM_A = ClusterFacts(namespaces=(("default", (("team", "a"),)),))


def is_in(**labels):
    return LabelSelector(tuple(Requirement(k, "In", (v,)) for k, v in labels.items()))


def near(namespaces=("default",), chosen=None, selector=None):
    selector = is_in(app="web") if selector is None else selector
    return pod(pod_affinity=(PodAffinityTerm("zone", selector, namespaces, chosen),))


def rules(cluster=TEAM_A):
    profile = profile_of({"filter": [FIT, SPREAD, AFFINITY], "permit": ["Coscheduling"]})
    return event_rules(HintMap({"default-scheduler": profile}, cluster))


def happened(event, assigned, old=None):
    return OccurredEvent(event, ObjectChange(old, EventPod(assigned, True)))


WEB = pod(labels={"app": "web"})


@pytest.mark.parametrize("event", [ASSIGNED_POD_ADD, LABELS])
@pytest.mark.parametrize(
    ("waiting", "rejected_by", "looked_at"),
    [
        (pod(), (FIT,), False),
        (pod(), (FIT, SPREAD), True),
        (pod(namespace="other"), (SPREAD,), False),
        (near(), (AFFINITY,), True),
        (near(), (FIT,), True),
        (near(namespaces=("other",)), (AFFINITY,), False),
        (near(selector=is_in(app="db")), (AFFINITY,), False),
        (near(namespaces=(), chosen=is_in(team="a")), (AFFINITY,), True),
        (near(namespaces=(), chosen=is_in(team="b")), (AFFINITY,), False),
    ],
)
def test_an_assigned_pod_concerns_pods_with_spread_or_affinity_to_it(
    event, waiting, rejected_by, looked_at
):
    assert rules().concerns(happened(event, WEB), waiting, rejected_by) is looked_at


def member(group):
    return pod(pod_group=GroupMembership(group, 2))


@pytest.mark.parametrize(
    ("waiting", "rejected_by", "looked_at"),
    [
        (member("a"), ("Coscheduling",), True),
        (member("a"), (FIT,), False),
        (member("b"), ("Coscheduling",), False),
        (pod(), ("Coscheduling",), False),
    ],
)
def test_an_assigned_member_concerns_members_of_its_gang_that_gave_up(
    waiting, rejected_by, looked_at
):
    seen = happened(ASSIGNED_POD_ADD, member("a"))

    assert rules().concerns(seen, waiting, rejected_by) is looked_at


def test_one_of_several_matching_terms_is_enough():
    terms = [*near().pod_affinity, *near(selector=is_in(app="db")).pod_affinity]
    waiting = pod(pod_affinity=tuple(terms))

    assert rules().concerns(happened(ASSIGNED_POD_ADD, WEB), waiting, (AFFINITY,))


def test_a_term_without_a_selector_matches_no_pod():
    term = PodAffinityTerm("zone", None, ("default",), None)

    assert not rules().concerns(
        happened(ASSIGNED_POD_ADD, WEB), pod(pod_affinity=(term,)), (AFFINITY,)
    )


@pytest.mark.parametrize(
    "event",
    [
        happened(SHRUNK, WEB),
        OccurredEvent(ASSIGNED_POD_DELETE, ObjectChange(old=EventPod(WEB, True))),
        OccurredEvent(NODE_ADD, ObjectChange(new=node())),
    ],
)
def test_other_events_concern_all_pods(event):
    assert rules().concerns(event, pod(), (FIT,))


def test_a_changed_running_pod_concerns_pods_that_it_excluded_before():
    """Upstream uses the pod's new labels, and wakes such pods after five minutes."""
    avoided = EventPod(WEB, True), EventPod(pod(labels={"app": "x"}), True)
    away = pod(pod_anti_affinity=near().pod_affinity)

    as_upstream = OccurredEvent(LABELS, ObjectChange(*avoided))
    in_a_run = OccurredEvent(LABELS, ObjectChange(*avoided, thorough=True))

    assert not rules().concerns(as_upstream, away, (AFFINITY,))
    assert rules().concerns(in_a_run, away, (AFFINITY,))
    assert rules().hint(AFFINITY, in_a_run, away)


def test_hints_and_registered_events_are_those_of_the_profiles():
    fit = OccurredEvent(NODE_ADD, ObjectChange(new=node(cpu=100)))

    assert rules().hint(FIT, fit, pod(cpu=100))
    assert not rules().hint(FIT, fit, pod(cpu=101))
    assert rules().registered(FIT, fit)
    assert not rules().registered("Unknown", fit)


class TestAFullLogOfEvents:
    """A queue that records one event for pods in flight, of which there are two."""

    def given_back(self, facts, *events):
        """The state of a pod of these facts that is refused after these events."""
        core = QueueCore(rules=rules(), settings=QueueSettings(max_in_flight_events=1))
        core.add([(PodIdentity("uid-a", "default", "a"), facts)], 0.0)
        lease = core.lease("s", 1, 1, 0.0)
        core.move(events, 0.1)
        refused = Requeue("uid-a", RequeueReason.UNSCHEDULABLE, rejected_by=(FIT,))
        core.requeue(lease.lease_id, [refused], 0.2)
        return core.state_of("uid-a")

    def test_excludes_gangs_if_all_its_events_do(self):
        events = [*PodEvents().unassigned([pod(), WEB], spares_gangs=True)]
        assert self.given_back(member("g"), *events) is QueueState.UNSCHEDULABLE
        assert self.given_back(pod(), *events) is QueueState.BACKOFF

    @pytest.mark.parametrize("spares_gangs", [(True, False), (False, True)])
    def test_helps_gangs_if_one_of_its_events_does(self, spares_gangs):
        seen = PodEvents()
        events = [seen.unassigned([WEB], spares_gangs=spares)[0] for spares in spares_gangs]
        assert self.given_back(member("g"), *events) is QueueState.BACKOFF

    def test_may_help_any_rejected_pod(self):
        assert self.given_back(pod(), happened(LABELS, WEB), happened(LABELS, WEB)) is (
            QueueState.BACKOFF
        )
