"""NodePorts: two pods cannot use the same host port of a node.

Ports conflict when protocol and number are equal and the addresses are equal or one is 0.0.0.0.
Upstream: pkg/scheduler/framework/plugins/nodeports/node_ports.go and HostPortInfo in
staging/src/k8s.io/kube-scheduler/framework/types.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import HostPort, PodFacts
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
    EnqueueExtensions,
    FilterPlugin,
    FilterResult,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
)
from roadstead.nodes.columns import PortSet
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Rows, Table
from roadstead.protocol.status import SKIP, unschedulable

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - an address of a manifest, nothing listens here
_REFUSED = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    name = "NodePorts"
    reads = Reads.ROW
    shares_by_shape = True
    unprepared = 'reading "PreFilterNodePorts" from cycleState: not found'

    def pre_filter(self, state: CycleState, pod: PodClass, table: Table) -> PreFilterResult:
        return PreFilterResult() if pod.facts.host_ports else PreFilterResult(SKIP)

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        # A view of few rows must not compare every port set that the table ever had.
        present, codes = np.unique(table.port_codes, return_inverse=True)
        conflicting = [conflicts(pod.facts.host_ports, table.port_sets[code]) for code in present]
        return FilterResult.refuse(np.array(conflicting, dtype=np.bool_)[codes], _REFUSED)

    def count_passing(self, pods: Sequence[PodClass], table: Table, rows: Rows) -> int:
        code_of_row, port_sets = table.columns.port_set, table.columns.port_sets.values
        with_ports: set[int] = set()
        for index, pod in enumerate(pods):
            if ports := pod.facts.host_ports:
                row = int(rows[index])
                # Of several pods with ports on one row, only the first is counted: its ports are
                # not in the row's set yet, and the others may conflict with them.
                if row in with_ports or conflicts(ports, port_sets[code_of_row[row]]):
                    return index
                with_ports.add(row)
        return len(pods)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (
            on(EventResource.POD, ActionType.DELETE, self.after_pod_deleted),
            on(EventResource.NODE, ActionType.ADD),
        )

    def after_pod_deleted(
        self, pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the deleted pod had a node or a nomination, and a conflicting port."""
        assert change.old is not None
        deleted = change.old.facts
        if not (change.old.assigned or deleted.nominated_node_name):
            return QueueingHint.QUEUE_SKIP
        in_use = tuple((port, 1) for port in deleted.host_ports)
        return QueueingHint.when(conflicts(pod.host_ports, in_use))

    def sign(self, pod: PodFacts) -> Hashable:
        return pod.host_ports


def conflicts(wanted: tuple[HostPort, ...], in_use: PortSet) -> bool:
    """Whether any wanted port conflicts with one in use. in_use: (port, number of its pods)."""
    return any(_conflict(want, used) for want in wanted for used, _ in in_use)


def _conflict(want: HostPort, used: HostPort) -> bool:
    if (want.port, want.protocol) != (used.port, used.protocol):
        return False
    return want.ip == used.ip or ANY_ADDRESS in (want.ip, used.ip)
