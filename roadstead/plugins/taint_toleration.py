"""TaintToleration: hard taints refuse pods; PreferNoSchedule taints lower a node's score.

    raw = number of PreferNoSchedule taints that the pod does not tolerate
    normalized = 100 - 100 * raw / max(raw), all 100 when max is 0

A table numbers the distinct sets of taints of its nodes, so a pod is compared with each set once.
Upstream: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.taints import Taint, Toleration, tolerated
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
    Extremes,
    Feasible,
    FilterPlugin,
    FilterResult,
    PreScorePlugin,
    Reads,
    ScorePlugin,
    default_normalize,
)
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.protocol.status import SUCCESS, Status, unresolvable

HARD_EFFECTS = ("NoSchedule", "NoExecute")
SOFT_EFFECT = "PreferNoSchedule"


class TaintToleration(FilterPlugin, PreScorePlugin, ScorePlugin, EnqueueExtensions):
    name = "TaintToleration"
    reads = Reads.NODE
    shares_by_shape = True
    normalizes = True
    unprepared_score = 'failed to read "PreScoreTaintToleration" from cycleState: not found'

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        statuses: list[Status] = []
        code_of: dict[Taint, int] = {}
        by_set = np.zeros(len(table.taint_sets), dtype=np.int32)
        for code, taints in enumerate(table.taint_sets):
            taint = _first_untolerated(taints, pod.facts.tolerations)
            if taint is None:
                continue
            if taint not in code_of:
                statuses.append(
                    unresolvable(f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}")
                )
                code_of[taint] = len(statuses)
            by_set[code] = code_of[taint]
        return FilterResult(by_set[table.taint_codes], tuple(statuses)) if statuses else ALL_PASS

    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        # An empty effect tolerates taints of every effect.
        soft = tuple(each for each in pod.facts.tolerations if each.effect in ("", SOFT_EFFECT))
        state.write(self.name, soft)
        return SUCCESS

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        soft = state.read(self.name, tuple)
        by_set = [
            sum(taint.effect == SOFT_EFFECT and not tolerated(taint, soft) for taint in taints)
            for taints in table.taint_sets
        ]
        return np.array(by_set, dtype=np.int64)[table.taint_codes]

    def normalize(self, state: CycleState, pod: PodClass, raw: I64, extremes: Extremes) -> I64:
        return default_normalize(raw, extremes.maximum, reverse=True)

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
        """Queue if a node is new or was refused, and all its hard taints are now tolerated."""
        assert change.new is not None, "deletions of nodes are not registered"
        was_tolerated = change.old is not None and not _first_untolerated(
            change.old.taints, pod.tolerations
        )
        is_tolerated = not _first_untolerated(change.new.taints, pod.tolerations)
        return QueueingHint.when(is_tolerated and not was_tolerated)

    def after_pod_toleration_change(
        self, pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the pod whose tolerations changed is this one."""
        return QueueingHint.when(change.of_waiting_pod)

    def sign(self, pod: PodFacts) -> Hashable:
        return pod.tolerations


def _first_untolerated(
    taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]
) -> Taint | None:
    for taint in taints:
        if taint.effect in HARD_EFFECTS and not tolerated(taint, tolerations):
            return taint
    return None
