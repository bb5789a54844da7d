"""NodePreferAvoidPods: scores down nodes that want to avoid pods of the pod's controller.

The node's annotation scheduler.alpha.kubernetes.io/preferAvoidPods lists controllers by kind and
UID; only ReplicationControllers and ReplicaSets are honored.

    score = 0 on a node that avoids the pod's controller, 100 on any other

Its weight of 10000 outweighed all other scores. Off by default: kube-scheduler removed it.
Upstream: framework/plugins/nodepreferavoidpods/node_prefer_avoid_pods.go of 1.22.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import MAX_NODE_SCORE, Reads, ScorePlugin
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table

_CONTROLLER_KINDS = ("ReplicationController", "ReplicaSet")


class NodePreferAvoidPods(ScorePlugin):
    name = "NodePreferAvoidPods"
    reads = Reads.NODE
    shares_by_shape = True

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        score = np.full(len(table), MAX_NODE_SCORE, dtype=np.int64)
        controller = _controller(pod.facts)
        if controller is not None:
            avoided = [controller in table.facts(row).avoids for row in range(len(table))]
            score[np.array(avoided, dtype=np.bool_)] = 0
        return score

    def sign(self, pod: PodFacts) -> Hashable:
        return _controller(pod) or ()


def _controller(pod: PodFacts) -> tuple[str, str] | None:
    """Return (kind, UID) of the pod's controller if nodes can avoid it, else None."""
    owner = pod.owner
    return (
        (owner.kind, owner.uid) if owner is not None and owner.kind in _CONTROLLER_KINDS else None
    )
