"""NodeUnschedulable: refuses cordoned nodes for pods that do not tolerate the unschedulable taint.

Upstream: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go.
"""

from __future__ import annotations

from collections.abc import Hashable

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.taints import Taint, tolerated
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import (
    ActionType,
    EventPod,
    EventResource,
    ObjectChange,
    QueueingHint,
    RegisteredEvent,
    on,
)
from roadstead.framework.plugin import (
    ALL_PASS,
    EnqueueExtensions,
    FilterPlugin,
    FilterResult,
    Reads,
)
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.protocol.status import unresolvable

UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_REFUSED = unresolvable("node(s) were unschedulable")


class NodeUnschedulable(FilterPlugin, EnqueueExtensions):
    name = "NodeUnschedulable"
    reads = Reads.NODE
    shares_by_shape = True

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        if tolerated(UNSCHEDULABLE_TAINT, pod.facts.tolerations):
            return ALL_PASS
        return FilterResult.refuse(table.unschedulable, _REFUSED)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (
            on(
                EventResource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_TAINT,
                self.after_node_change,
            ),
            on(
                EventResource.POD,
                ActionType.UPDATE_POD_TOLERATION,
                self.after_pod_toleration_change,
            ),
        )

    def after_node_change(
        self, pod: PodFacts, change: ObjectChange[NodeFacts], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if a node that is not cordoned was added, or a node was uncordoned."""
        assert change.new is not None, "deletions of nodes are not registered"
        was_schedulable = change.old is not None and not change.old.unschedulable
        return QueueingHint.when(not was_schedulable and not change.new.unschedulable)

    def after_pod_toleration_change(
        self, pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if this pod now tolerates the taint; it was rejected because it did not."""
        assert change.new is not None
        return QueueingHint.when(
            change.of_waiting_pod and tolerated(UNSCHEDULABLE_TAINT, change.new.facts.tolerations)
        )

    def sign(self, pod: PodFacts) -> Hashable:
        return pod.tolerations
