"""NodeLabel: labels that nodes must have or lack, and labels that they should have or lack.

Neither the pod nor the values of labels matter, only their keys.

    Filter   refuses a node unless it has all presentLabels and no absentLabels
    Score    100 * (preferences that the node satisfies) // (preferences)

Off by default: kube-scheduler removed it in 1.23.
Upstream: pkg/scheduler/framework/plugins/nodelabel/node_label.go of 1.22.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from roadstead.config.plugin_args import NodeLabelArgs
from roadstead.facts.pod import PodFacts
from roadstead.facts.selectors import Requirement
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.events import ActionType, EventResource, RegisteredEvent, on
from roadstead.framework.plugin import (
    MAX_NODE_SCORE,
    EnqueueExtensions,
    FilterPlugin,
    FilterResult,
    Reads,
    ScorePlugin,
)
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.protocol.status import unresolvable

_REFUSED = unresolvable("node(s) didn't have the requested labels")


class NodeLabel(FilterPlugin, ScorePlugin, EnqueueExtensions):
    name = "NodeLabel"
    reads = Reads.NODE
    shares_by_shape = True

    def __init__(self, args: NodeLabelArgs) -> None:
        self._required = _requirements(args.present_labels, args.absent_labels)
        self._preferred = _requirements(
            args.present_labels_preference, args.absent_labels_preference
        )

    def filter(self, state: CycleState, pod: PodClass, table: Table) -> FilterResult:
        refused = np.zeros(len(table), dtype=np.bool_)
        for requirement in self._required:
            refused |= ~table.match(requirement)
        return FilterResult.refuse(refused, _REFUSED)

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        assert self._preferred, "the configuration is refused without labels to score by"
        score = np.zeros(len(table), dtype=np.int64)
        for requirement in self._preferred:
            score += MAX_NODE_SCORE * table.match(requirement)
        return score // len(self._preferred)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),)

    def sign(self, pod: PodFacts) -> Hashable:
        return ()


def _requirements(present: tuple[str, ...], absent: tuple[str, ...]) -> tuple[Requirement, ...]:
    return (
        *(Requirement(key, "Exists") for key in present),
        *(Requirement(key, "DoesNotExist") for key in absent),
    )
