"""DefaultPreemption, as far as it goes without victims.

Where no node holds a pod of lower priority upstream finds no candidate, nominates nothing, and only
says so; that is answered here word for word. Where victims exist the dry run is needed, and the pod
is refused with this plugin's name.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go and
pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Hashable

from roadstead.facts.pod import PodFacts
from roadstead.framework.plugin import (
    PostFilterPlugin,
    PostFilterResult,
    PostFilterView,
    PreEnqueuePlugin,
    Reads,
)
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SUCCESS, Code, Status, unschedulable

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
_NEVER = "preemption: not eligible due to preemptionPolicy=Never."


class DefaultPreemption(PostFilterPlugin, PreEnqueuePlugin):
    name = "DefaultPreemption"
    reads = Reads.NODE

    def pre_enqueue(self, pod: PodFacts) -> Status:
        return SUCCESS

    def post_filter(self, pod: PodFacts, failed: PostFilterView) -> PostFilterResult:
        if pod.preemption_policy == "Never":
            return PostFilterResult(unschedulable(_NEVER))
        hopeless_pod = failed.pre_filter.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        helpful = 0 if hopeless_pod else failed.helpful
        if helpful and failed.helpful_with_victims:
            raise UnsupportedError(self.name, "", f"spec.priority: {pod.priority}")
        nodes = failed.node_count
        counts = {NO_VICTIMS: helpful, NOT_HELPFUL: nodes - helpful}
        reasons = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
        text = f"preemption: 0/{nodes} nodes are available: {', '.join(reasons)}."
        return PostFilterResult(unschedulable(text), nominated_node="")

    def sign(self, pod: PodFacts) -> Hashable:
        return (pod.priority, pod.preemption_policy)
