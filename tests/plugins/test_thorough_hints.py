"""Hints of InterPodAffinity for a run that cannot wait for upstream's retry after five minutes."""

from dataclasses import replace

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.events import ActionType, EventPod, ObjectChange, QueueingHint
from roadstead.plugins import affinity_hints
from roadstead.queue.events import pod_events
from roadstead.queue.reports import PodChange
from tests.builders import node, pod
from tests.plugins.test_pod_hints import DB, WEB, near

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.QUEUE_SKIP
LOUD = pod(labels={"app": "loud"}, pod_anti_affinity=(near(app="web"),))
WITHOUT_BOTH = pod(pod_anti_affinity=(near(app="web"), near(app="db")))


def left(facts, waiting, *, thorough):
    change = ObjectChange(old=EventPod(facts, assigned=True), thorough=thorough)
    return affinity_hints.after_pod_change(waiting, change, ClusterFacts())


@pytest.mark.parametrize(("thorough", "hint"), [(True, QUEUE), (False, SKIP)])
def test_a_deleted_pod_with_matching_anti_affinity_helps(thorough, hint):
    assert left(LOUD, WEB, thorough=thorough) is hint


@pytest.mark.parametrize(("thorough", "hint"), [(True, QUEUE), (False, SKIP)])
def test_a_deleted_pod_that_some_terms_matched_helps(thorough, hint):
    assert left(DB, WITHOUT_BOTH, thorough=thorough) is hint


def test_a_deleted_pod_that_no_term_matched_does_not_help():
    assert left(DB, WEB, thorough=True) is SKIP


@pytest.mark.parametrize(("thorough", "hint"), [(True, QUEUE), (False, SKIP)])
def test_a_new_node_helps_where_others_had_to_repel_the_pod(thorough, hint):
    change = ObjectChange(new=node("n1"), thorough=thorough)

    assert affinity_hints.after_node_change(WEB, change, ClusterFacts()) is hint


def test_a_changed_pod_that_some_terms_matched_helps_as_reported_to_the_queue():
    (seen,) = pod_events([PodChange(DB, replace(DB, labels=(("app", "other"),)))])

    assert seen.event.action is ActionType.UPDATE_POD_LABEL
    assert affinity_hints.after_pod_change(WITHOUT_BOTH, seen.change, ClusterFacts()) is QUEUE
    plain = replace(seen.change, thorough=False)
    assert affinity_hints.after_pod_change(WITHOUT_BOTH, plain, ClusterFacts()) is SKIP
