"""PostFilter of a profile: what follows when no node is feasible.

Upstream: pkg/scheduler/framework/runtime/framework.go (RunPostFilterPlugins).
"""

from __future__ import annotations

from roadstead.facts.pod import PodFacts
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.plugin import PostFilterResult, PostFilterView
from roadstead.framework.profile import Profile
from roadstead.protocol.status import Code, Status


def run_post_filter(profile: Profile, pod: PodFacts, diagnosis: Diagnosis) -> PostFilterResult:
    """The first Success or failure, or all refusals joined; its message ends the pod's message.

    Raises UnsupportedError where a plugin that is not there yet would be needed.
    """
    helpful, with_victims = diagnosis.helpful()
    failed = PostFilterView(
        diagnosis.node_count, helpful, with_victims, diagnosis.pre_filter, diagnosis.unreached
    )
    reasons: list[str] = []
    first = ""
    nominated: str | None = None
    for plugin in profile.post_filter:
        result = plugin.post_filter(pod, failed)
        status = Status(result.status.code, result.status.reasons, plugin.name)
        if status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PostFilterResult(status, result.nominated_node)
        if not status.is_rejected:
            return PostFilterResult(Status(Code.ERROR, status.reasons, plugin.name))
        reasons += status.reasons
        first = first or plugin.name
        nominated = nominated if result.nominated_node is None else result.nominated_node
    joined = (", ".join(reasons),) if reasons else ()
    return PostFilterResult(Status(Code.UNSCHEDULABLE, joined, first), nominated)
