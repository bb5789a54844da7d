"""The nominated node of a pod, which is evaluated before all others, and alone.

Upstream: pkg/scheduler/schedule_one.go (findNodesThatFitPod, evaluateNominatedNode). The node is
evaluated even if PreFilter does not name it; if a filter fails on it, all nodes are evaluated.
"""

from __future__ import annotations

import numpy as np

from roadstead.framework.evaluation import Evaluation
from roadstead.framework.profile import Profile
from roadstead.framework.row_overlay import PASSED, RowOverlay
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable


def passes_on_nominated(profile: Profile, pod: PodClass, table: NodeTable) -> bool:
    """Whether the pod passes PreFilter, and Filter on its nominated node.

    Raises UnsupportedError if a plugin does not support the pod.
    """
    name = pod.facts.nominated_node_name
    if not name or not table.has_node(name):
        return False
    evaluation = Evaluation(profile, pod, table)
    evaluation.restart(evaluation.run_pre_filter())
    if not evaluation.pre_filter.status.is_success:
        return False
    rows = np.array([table.row_of(name)], dtype=np.intp)
    codes = RowOverlay(evaluation, rows, evaluation.static_results_of(rows)).filter(np.arange(1))
    return bool(codes[0] == PASSED)
