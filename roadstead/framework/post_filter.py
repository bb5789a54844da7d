"""PostFilter of a profile: what follows when no node is feasible.

Upstream: pkg/scheduler/framework/runtime/framework.go (RunPostFilterPlugins).
"""

from __future__ import annotations

from roadstead.facts.pod import PodFacts
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.plugin import PostFilterView
from roadstead.framework.profile import Profile
from roadstead.protocol.status import Code, Status


def run_post_filter(profile: Profile, pod: PodFacts, diagnosis: Diagnosis) -> Status:
    """The first Success or failure, or all refusals joined; its message ends the pod's message.

    Raises UnsupportedError where a plugin that is not there yet would be needed.
    """
    helpful, with_victims = diagnosis.helpful()
    failed = PostFilterView(
        diagnosis.node_count, helpful, with_victims, diagnosis.pre_filter, diagnosis.unreached
    )
    reasons: list[str] = []
    first = ""
    for plugin in profile.post_filter:
        status = plugin.post_filter(pod, failed)
        named = Status(status.code, status.reasons, plugin.name)
        if status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return named
        if not status.is_rejected:
            return Status(Code.ERROR, status.reasons, plugin.name)
        reasons += status.reasons
        first = first or plugin.name
    return Status(Code.UNSCHEDULABLE, (", ".join(reasons),) if reasons else (), first)
