"""ReleaseReports: reports released pods to the queue, if no scheduler reports them."""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.actors.interface import Directory, ResendingRef
from roadstead.actors.messages import pod_list
from roadstead.actors.messages.changes import OBSERVE, ClusterChanges
from roadstead.actors.names import QUEUE
from roadstead.facts.pod import PodFacts, PodIdentity


class ReleaseReports:
    """Sender of reports to the queue; it sends none without pods."""

    def __init__(self, directory: Directory, call_s: float) -> None:
        self._directory, self._call_s = directory, call_s

    async def report(self, pods: Sequence[tuple[PodIdentity, PodFacts]]) -> None:
        """Report pods that are no longer counted on their nodes."""
        if not pods:
            return
        queue = ResendingRef(self._directory.find(QUEUE))
        changes = ClusterChanges(gone=pod_list(pods))
        await queue.call(OBSERVE, changes, timeout_s=self._call_s)
