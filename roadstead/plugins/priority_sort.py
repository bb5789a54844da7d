"""PrioritySort: higher priority first, then the pod that has waited longer.

Upstream: pkg/scheduler/framework/plugins/queuesort/priority_sort.go.
"""

from __future__ import annotations

from roadstead.facts.pod import PodFacts
from roadstead.framework.plugin import QueueSortPlugin, Reads


class PrioritySort(QueueSortPlugin):
    name = "PrioritySort"
    reads = Reads.NODE

    def sort_key(self, pod: PodFacts, queued_s: float) -> tuple[float, ...]:
        return (-pod.priority, queued_s)

    def sign(self, pod: PodFacts) -> tuple[()]:
        """Empty: the order of pods is not part of a decision."""
        return ()
