"""NodeUnschedulable: cordoned nodes take only pods that tolerate the unschedulable taint.

Upstream: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go.
"""

from __future__ import annotations

from collections.abc import Hashable

from roadstead.facts.pod import PodFacts
from roadstead.facts.taints import Taint, tolerated
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import ALL_PASS, FilterPlugin, FilterResult, Reads
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.table import Table
from roadstead.protocol.status import unresolvable

UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_REFUSED = unresolvable("node(s) were unschedulable")


class NodeUnschedulable(FilterPlugin):
    name = "NodeUnschedulable"
    reads = Reads.NODE

    def filter(self, state: CycleState, pod: PodInfo, table: Table) -> FilterResult:
        if tolerated(UNSCHEDULABLE_TAINT, pod.facts.tolerations):
            return ALL_PASS
        return FilterResult.refuse(table.unschedulable, _REFUSED)

    def sign(self, pod: PodFacts) -> Hashable:
        return pod.tolerations
