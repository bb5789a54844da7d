"""RoomReports: sends the queue the room on nodes that no scheduler reports as free."""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.actors.messages import pod_batch
from roadstead.actors.messages.changes import OBSERVE, ClusterChanges
from roadstead.actors.names import QUEUE
from roadstead.actors.seam import Directory, PatientRef
from roadstead.facts.pod import PodFacts, PodIdentity


class RoomReports:
    """Sends reports to the queue; nothing where no pod left room."""

    def __init__(self, directory: Directory, call_s: float) -> None:
        self._directory, self._call_s = directory, call_s

    async def report(self, pods: Sequence[tuple[PodIdentity, PodFacts]]) -> None:
        """Report pods that are counted on their nodes no more."""
        if not pods:
            return
        queue = PatientRef(self._directory.find(QUEUE))
        changes = ClusterChanges(gone=pod_batch(pods))
        await queue.call(OBSERVE, changes, timeout_s=self._call_s)
