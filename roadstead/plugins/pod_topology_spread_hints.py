"""Which events may help a pod that PodTopologySpread keeps from every node.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go (EventsToRegister and the
hints that it names).
"""

from __future__ import annotations

from collections.abc import Iterable

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.events import (
    ActionType,
    Change,
    EventResource,
    HintError,
    QueueingHint,
    RegisteredEvent,
    SeenPod,
    on,
)
from roadstead.framework.plugin import EnqueueExtensions
from roadstead.plugins.pod_topology_spread_constraints import Spread, SpreadSource


class SpreadHints(EnqueueExtensions):
    """What the plugin does of it. _source: the constraints of pods."""

    _source: SpreadSource

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        pod = ActionType.ADD | ActionType.DELETE
        pod |= ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
        node = ActionType.ADD | ActionType.DELETE
        node |= ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return (
            on(EventResource.POD, pod, self.after_pod_change, concerns=_is_in_namespace_of),
            on(EventResource.NODE, node, self.after_node_change),
        )

    def after_pod_change(
        self, pod: PodFacts, change: Change[SeenPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """A pod on a node came, left, or matches other constraints than before.

        Only pods of the same namespace count. Or this very pod changed so, or tolerates more where
        taints say which nodes count. HintError where a selector does not parse.
        """
        seen = [each for each in (change.old, change.new) if each is not None]
        if not change.own and any(_is_elsewhere(each, pod) for each in seen):
            return QueueingHint.QUEUE_SKIP
        hard = self._hard(pod)
        labels = [dict(each.facts.labels) for each in seen]
        if len(seen) == 1:
            return QueueingHint.when(any(each.matches(labels[0]) for each in hard))
        retolerates = change.own and seen[0].facts.tolerations != seen[1].facts.tolerations
        return QueueingHint.when(
            (retolerates and any(each.honors_taints for each in hard))
            or any(each.matches(labels[0]) != each.matches(labels[1]) for each in hard)
        )

    def after_node_change(
        self, pod: PodFacts, change: Change[NodeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """A node that has all topology keys came, left, moved, or has other taints.

        Or a node has them all now, or no longer. HintError where a selector does not parse.
        """
        keys = {each.topology_key for each in self._hard(pod)}
        old, new = change.old, change.new
        was, now = (_places(keys, each) for each in (old, new))
        retainted = old is not None and new is not None and old.taints != new.taints
        return QueueingHint.when(was != now or (now is not None and retainted))

    def _hard(self, pod: PodFacts) -> tuple[Spread, ...]:
        spread = self._source.of(pod)
        if spread.hard_error:
            raise HintError(spread.hard_error)
        return spread.hard


def _is_elsewhere(seen: SeenPod, pod: PodFacts) -> bool:
    """Whether a pod cannot be one of those that `pod` is spread with."""
    return not seen.assigned or seen.facts.namespace != pod.namespace


def _is_in_namespace_of(pod: PodFacts, assigned: PodFacts, cluster: object) -> bool:
    """Whether a pod on a node may be one of those that `pod` is spread with.

    Upstream: getUnschedulablePodsWithCrossTopologyTerm of scheduling_queue.go.
    """
    return assigned.namespace == pod.namespace


def _places(keys: Iterable[str], node: NodeFacts | None) -> dict[str, str] | None:
    """The node's values of some topology keys; None if it lacks one, or there is no node."""
    labels = dict(node.labels) if node is not None else {}
    if node is None or any(key not in labels for key in keys):
        return None
    return {key: labels[key] for key in keys}
