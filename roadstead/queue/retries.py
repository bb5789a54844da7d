"""Retries: races that pods lost, and attempts of them that failed, until they are given up."""

from __future__ import annotations

from dataclasses import replace

from roadstead.framework.hint_map import WITHOUT_NODES
from roadstead.queue.pods import Requeue, RequeueReason
from roadstead.queue.reports import GivenBack

MAX_FAILURES = 3
"""A pod whose attempts failed so often waits like an unschedulable one: a run must end."""

MAX_CONFLICTS = 10
"""A pod that lost so many races backs off before the next: pods that each count on another one that
is assumed, and not bound either, would lose to each other for ever."""

FAILS_AGAIN = "fails again and again"
"""Stands for the plugin that rejected such a pod; no event is known to help it."""

_UNSCHEDULABLE, _CONFLICT = RequeueReason.UNSCHEDULABLE, RequeueReason.CONFLICT


class Retries:
    """By pod, the leases in which it lost a race or failed."""

    def __init__(self) -> None:
        self._failures: dict[str, dict[int, int]] = {}
        self._conflicts: dict[str, dict[int, int]] = {}

    def forget(self, uid: str) -> None:
        """A pod is bound or gone."""
        self._failures.pop(uid, None)
        self._conflicts.pop(uid, None)

    def requeue(self, lease_id: int, back: GivenBack) -> Requeue:
        """How a pod of a lease goes back to the queue."""
        reason = RequeueReason(back.reason)
        as_told = Requeue(
            back.uid,
            reason,
            back.rejected_by,
            back.pending,
            nominated_node=back.nominated_node,
            preempts=back.preempts,
        )
        if back.rejected_by and reason is _UNSCHEDULABLE:
            return as_told
        # By lease, so that a report that comes twice counts once and says the same again.
        if reason is _CONFLICT:
            races = self._conflicts.setdefault(back.uid, {})
            if races.setdefault(lease_id, len(races) + 1) <= MAX_CONFLICTS:
                return as_told
            # Races that are lost without end are failures: a run must end.
            as_told = replace(as_told, reason=RequeueReason.ERROR)
        failures = self._failures.setdefault(back.uid, {})
        if failures.setdefault(lease_id, len(failures) + 1) < MAX_FAILURES:
            return as_told
        # That no plugin rejected it, and nothing failed either, is said of a cluster without nodes.
        by = WITHOUT_NODES if reason is _UNSCHEDULABLE else FAILS_AGAIN
        return replace(as_told, reason=_UNSCHEDULABLE, rejected_by=(by,))
