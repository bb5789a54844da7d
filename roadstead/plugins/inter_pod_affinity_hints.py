"""Which events may help a pod that InterPodAffinity keeps from every node.

Upstream: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go (EventsToRegister and the hints
that it names).
"""

from __future__ import annotations

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.events import (
    ActionType,
    Change,
    EventResource,
    QueueingHint,
    RegisteredEvent,
    SeenPod,
    on,
)
from roadstead.framework.plugin import EnqueueExtensions
from roadstead.plugins.inter_pod_terms import WaitingTerms, labels_of_namespaces


class AffinityHints(EnqueueExtensions):
    """What the plugin does of it."""

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (
            on(
                EventResource.POD,
                ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL,
                self.after_pod_change,
                concerns=_is_wanted,
                # Upstream looks at the pod's terms whichever plugin rejected the pod.
                whoever_rejected=True,
            ),
            on(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_LABEL,
                self.after_node_change,
            ),
        )

    def after_pod_change(
        self, pod: PodFacts, change: Change[SeenPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """A pod on a node came to match all affinity terms, or no longer matches the others.

        HintError where a term does not parse.
        """
        old, new = change.old, change.new
        if not all(each.assigned for each in (old, new) if each is not None):
            return QueueingHint.QUEUE_SKIP
        if change.thorough and old is not None and new is None and old.facts.pod_anti_affinity:
            # It may have refused the pod; upstream looks at the pod's own terms alone.
            return QueueingHint.QUEUE
        terms = WaitingTerms(pod, labels_of_namespaces(cluster))
        if change.thorough and old is not None and terms.is_avoided_by_some(old.facts):
            return QueueingHint.QUEUE
        was_near, is_near = (each is not None and terms.is_near(each.facts) for each in (old, new))
        was_avoided, is_avoided = (
            each is not None and terms.is_avoided(each.facts) for each in (old, new)
        )
        return QueueingHint.when((is_near and not was_near) or (was_avoided and not is_avoided))

    def after_node_change(
        self, pod: PodFacts, change: Change[NodeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """A node came to a place that an affinity term may want, or left one that is avoided.

        HintError where a term does not parse.
        """
        assert change.new is not None
        if change.thorough:
            # Other pods' terms may have refused the other nodes; upstream leaves them out.
            return QueueingHint.QUEUE
        terms = WaitingTerms(pod, {})
        new = dict(change.new.labels)
        if change.old is None:
            near = any(term.topology_key in new for term in terms.affinity)
            return QueueingHint.when(near or bool(terms.anti_affinity))
        old = dict(change.old.labels)
        moved = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
        return QueueingHint.when(
            any(term.topology_key in moved and term.topology_key in new for term in terms.affinity)
            or any(
                term.topology_key in moved and term.topology_key in old
                for term in terms.anti_affinity
            )
        )


def _is_wanted(pod: PodFacts, assigned: PodFacts, cluster: ClusterFacts) -> bool:
    """Whether a required affinity term of a waiting pod means a pod on a node.

    Upstream: getUnschedulablePodsWithCrossTopologyTerm of scheduling_queue.go.
    """
    if not pod.pod_affinity:
        return False
    of_namespace = dict(dict(cluster.namespaces).get(assigned.namespace, ()))
    labels = dict(assigned.labels)
    return any(term.means(assigned.namespace, labels, of_namespace) for term in pod.pod_affinity)
