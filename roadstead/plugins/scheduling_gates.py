"""SchedulingGates: a pod with gates does not enter activeQ.

Upstream: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go.
"""

from __future__ import annotations

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.events import (
    ActionType,
    EventPod,
    EventResource,
    ObjectChange,
    QueueingHint,
    RegisteredEvent,
    on,
)
from roadstead.framework.plugin import EnqueueExtensions, PreEnqueuePlugin, Reads
from roadstead.protocol.status import SUCCESS, Status, unresolvable


class SchedulingGates(PreEnqueuePlugin, EnqueueExtensions):
    name = "SchedulingGates"
    reads = Reads.NODE

    def pre_enqueue(self, pod: PodFacts) -> Status:
        if not pod.scheduling_gates:
            return SUCCESS
        gates = " ".join(pod.scheduling_gates)
        return unresolvable(f"waiting for scheduling gates: [{gates}]")

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        gates_gone = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        return (on(EventResource.POD, gates_gone, self.after_gates_eliminated),)

    def after_gates_eliminated(
        self, pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """Queue if the pod whose gates were removed is this one."""
        return QueueingHint.when(change.of_waiting_pod)

    def sign(self, pod: PodFacts) -> tuple[()]:
        """Empty: a pod in a cycle has no gates."""
        return ()
