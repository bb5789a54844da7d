"""OverduePods: the pods of expired leases, by the scheduler that leased them.

A scheduler may bind a pod after its lease expired. So when a scheduler is replaced, the supervisor
asks the binder on which nodes these pods are, as it does for the pods that are still leased.
"""

from __future__ import annotations

from collections.abc import Iterable

from roadstead.queue.core import QueueCore
from roadstead.queue.nominator import MAX_GONE
from roadstead.queue.pods import EndedLease, EventT


class OverduePods:
    """Owner of the lease (a scheduler) → UID → epoch of the lease that expired.

    For each owner, at most 2 × (pods in the queue) + MAX_GONE pods; beyond that, gone pods (which
    left the queue) are removed.
    """

    def __init__(self) -> None:
        self._epochs: dict[str, dict[str, int]] = {}

    def add(self, ended: Iterable[EndedLease], core: QueueCore[EventT]) -> None:
        """Add the pods of expired leases."""
        for lease in ended:
            epochs = self._epochs.setdefault(lease.owner, {})
            epochs.update(dict.fromkeys(lease.uids, lease.epoch))
            if len(epochs) > MAX_GONE + 2 * core.counts().queued:
                # Known pods wait or are in flight; all others are gone.
                for uid in epochs.keys() - core.known_uids(epochs):
                    del epochs[uid]

    def before(self, owner: str, epoch: int) -> set[str]:
        """Return the pods that an owner leased before this epoch."""
        epochs = self._epochs.get(owner, {})
        return {uid for uid, leased_in in epochs.items() if leased_in < epoch}

    def end(self, owner: str, epoch: int) -> None:
        """Remove the pods that an owner leased before this epoch.

        Those that the current incarnation leased stay until it is replaced, too.
        """
        epochs = self._epochs.pop(owner, {})
        if current := {uid: leased_in for uid, leased_in in epochs.items() if leased_in >= epoch}:
            self._epochs[owner] = current
