"""NodeName: a pod that names its node is feasible only there.

Upstream: pkg/scheduler/framework/plugins/nodename/node_name.go.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import ActionType, EventResource, RegisteredEvent, on
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

_REFUSED = unresolvable("node(s) didn't match the requested node name")


class NodeName(FilterPlugin, EnqueueExtensions):
    name = "NodeName"
    reads = Reads.NODE
    shares_by_shape = True

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        wanted = pod.facts.node_name
        if not wanted:
            return ALL_PASS
        others = np.array([name != wanted for name in table.names], dtype=np.bool_)
        return FilterResult.refuse(others, _REFUSED)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (on(EventResource.NODE, ActionType.ADD),)

    def sign(self, pod: PodFacts) -> Hashable:
        return pod.node_name
