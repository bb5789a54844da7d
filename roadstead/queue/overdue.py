"""OverduePods: the pods of expired leases, by the scheduler that leased them.

Such a scheduler may still bind these pods: when it is replaced, the binder is asked for them, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from roadstead.queue.core import QueueCore
from roadstead.queue.nominator import MAX_GONE
from roadstead.queue.pods import EndedLease, EventT


class OverduePods:
    """Owner → UID → epoch of the lease that expired.

    For each owner, at most 2 × (pods in the queue) + MAX_GONE pods; beyond that, pods that left the
    queue are removed.
    """

    def __init__(self) -> None:
        self._epochs: dict[str, dict[str, int]] = {}

    def add(self, ended: Iterable[EndedLease], core: QueueCore[EventT]) -> None:
        """Add the pods of expired leases."""
        for lease in ended:
            epochs = self._epochs.setdefault(lease.owner, {})
            epochs.update(dict.fromkeys(lease.uids, lease.epoch))
            if len(epochs) > MAX_GONE + 2 * core.counts().queued:
                for uid in epochs.keys() - core.known_uids(epochs):
                    del epochs[uid]

    def before(self, owner: str, epoch: int) -> set[str]:
        """Return the pods that an owner leased before this epoch."""
        epochs = self._epochs.get(owner, {})
        return {uid for uid, leased_in in epochs.items() if leased_in < epoch}

    def end(self, owner: str, epoch: int) -> None:
        """Remove the pods that an owner leased before this epoch.

        Those of the current incarnation stay: it may still commit them, and then end.
        """
        epochs = self._epochs.pop(owner, {})
        if current := {uid: at for uid, at in epochs.items() if at >= epoch}:
            self._epochs[owner] = current
