"""SchedulingGates: a pod with gates does not enter activeQ.

Upstream: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go.
"""

from __future__ import annotations

from roadstead.facts.pod import PodFacts
from roadstead.framework.plugin import PreEnqueuePlugin, Reads
from roadstead.protocol.status import SUCCESS, Status, unresolvable


class SchedulingGates(PreEnqueuePlugin):
    name = "SchedulingGates"
    reads = Reads.NODE

    def pre_enqueue(self, pod: PodFacts) -> Status:
        if not pod.scheduling_gates:
            return SUCCESS
        gates = " ".join(pod.scheduling_gates)
        return unresolvable(f"waiting for scheduling gates: [{gates}]")

    def sign(self, pod: PodFacts) -> tuple[()]:
        """Nothing: a pod in a cycle has no gates."""
        return ()
