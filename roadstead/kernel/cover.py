"""Which pod classes the kernel can decide.

A class is covered if every plugin that is not skipped for it either reads NODE facts only, so that
placements do not change its results, or is computed by compiled code, or is called again after
each placement (`roadstead.kernel.per_pod_filters`).
"""

from __future__ import annotations

from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import MAX_NODE_SCORE, Plugin, Reads
from roadstead.kernel.lowering import lowerings
from roadstead.protocol.status import Code

HIGHEST_TOTAL = 2**30
"""Classes whose weights allow higher totals are not covered: totals are int32."""


def why_not(evaluation: Evaluation) -> str:
    """Return why a class is not covered, after PreFilter and PreScore; "" if it is."""
    if not evaluation.pre_filter.status.is_success:
        return "rejected by PreFilter"
    if not evaluation.pre_score.is_success:
        return "rejected by PreScore"
    profile = evaluation.profile
    if not profile.score:
        return "no score plugins"
    for plugin in profile.filter:
        if plugin.name in evaluation.state.skipped or plugin.reads_current(evaluation.pod):
            continue
        if not _can_decide_by(plugin):
            return plugin.name
    for each in profile.score:
        if each.plugin.name not in evaluation.score_state.skipped and not _can_decide_by(
            each.plugin
        ):
            return each.plugin.name
    if _has_failed(evaluation):
        return "a Filter failed"
    if why := lowerings.why_not(profile, evaluation.pod):
        return why
    # As upstream, such a pod tries its nominated node first, alone.
    if evaluation.pod.facts.nominated_node_name:
        return "nominated"
    # Totals are int32, and no sum of weighted scores may overflow.
    if sum(each.weight for each in profile.score) * MAX_NODE_SCORE > HIGHEST_TOTAL:
        return "weights"
    return ""


def _has_failed(evaluation: Evaluation) -> bool:
    codes = evaluation.static_results()[0]
    failed = [k for k, each in enumerate(evaluation.statuses, 1) if each.code is Code.ERROR]
    return any((codes == code).any() for code in failed)


def _can_decide_by(plugin: Plugin) -> bool:
    return plugin.reads is Reads.NODE or lowerings.is_compiled(plugin)
