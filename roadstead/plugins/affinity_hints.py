"""Queueing hints of InterPodAffinity: whether a change may make a rejected pod schedulable.

A thorough hint (`ObjectChange.thorough`) also queues pods for which upstream waits until it retries
all of them, after five minutes.

Upstream: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go.
"""

from __future__ import annotations

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.events import EventPod, ObjectChange, QueueingHint
from roadstead.plugins.affinity_terms import WaitingTerms, labels_of_namespaces


def is_affinity_target(pod: PodFacts, assigned: PodFacts, cluster: ClusterFacts) -> bool:
    """Whether a required affinity term of a waiting pod matches the pod on a node of an event.

    Upstream: getUnschedulablePodsWithCrossTopologyTerm of scheduling_queue.go.
    """
    if not pod.pod_affinity:
        return False
    namespace_labels = dict(dict(cluster.namespaces).get(assigned.namespace, ()))
    labels = dict(assigned.labels)
    return any(
        term.matches_labels(assigned.namespace, labels, namespace_labels)
        for term in pod.pod_affinity
    )


def after_pod_change(
    pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
) -> QueueingHint:
    """Queue if a pod on a node now matches all affinity terms of `pod`, and did not before.

    Also if a pod that matched all anti-affinity terms of `pod` is gone or no longer matches them
    all. A thorough hint also queues if a pod with required anti-affinity terms is gone, or if a pod
    that matched any anti-affinity term of `pod` is gone or changed. HintError if a term does not
    parse.
    """
    old, new = change.old, change.new
    if not all(each.assigned for each in (old, new) if each is not None):
        return QueueingHint.QUEUE_SKIP
    if change.thorough and old is not None and new is None and old.facts.pod_anti_affinity:
        # The terms of the deleted pod may have refused the node; upstream's hint reads only those
        # of `pod`.
        return QueueingHint.QUEUE
    terms = WaitingTerms(pod, labels_of_namespaces(cluster))
    if change.thorough and old is not None and terms.matches_any_anti_affinity(old.facts):
        return QueueingHint.QUEUE
    was_matched, is_matched = (
        each is not None and terms.matches_affinity(each.facts) for each in (old, new)
    )
    was_anti_matched, is_anti_matched = (
        each is not None and terms.matches_anti_affinity(each.facts) for each in (old, new)
    )
    return QueueingHint.when(
        (is_matched and not was_matched) or (was_anti_matched and not is_anti_matched)
    )


def after_node_change(
    pod: PodFacts, change: ObjectChange[NodeFacts], cluster: ClusterFacts
) -> QueueingHint:
    """Queue if a node joined a domain of an affinity term, or left one of anti-affinity.

    Also for a new node, if the pod has anti-affinity terms. A thorough hint always queues.
    HintError if a term does not parse.
    """
    assert change.new is not None, "deletions of nodes are not registered"
    if change.thorough:
        # Terms of other pods may have refused the other nodes; upstream's hint ignores them.
        return QueueingHint.QUEUE
    # Only topology keys are read below, so the labels of namespaces do not matter.
    terms = WaitingTerms(pod, {})
    new = dict(change.new.labels)
    if change.old is None:
        is_in_domain = any(term.topology_key in new for term in terms.affinity)
        return QueueingHint.when(is_in_domain or bool(terms.anti_affinity))
    old = dict(change.old.labels)
    changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    joined, left = changed & new.keys(), changed & old.keys()
    return QueueingHint.when(
        any(term.topology_key in joined for term in terms.affinity)
        or any(term.topology_key in left for term in terms.anti_affinity)
    )
