"""Retries: counts the lost races and failed attempts of pods, and bounds them.

A run of Roadstead ends when each pod is bound or unschedulable, so no pod may be tried for ever.
"""

from __future__ import annotations

from dataclasses import replace

from roadstead.framework.hint_map import WITHOUT_NODES
from roadstead.queue.pods import Requeue, RequeueReason
from roadstead.queue.reports import ReturnedPod

MAX_FAILURES = 3
"""After this number of failed attempts a pod waits as an unschedulable one."""

MAX_CONFLICTS = 10
"""After this number of lost races a pod backs off: pods that depend on each other's assumptions,
none of them bound, would otherwise lose to each other for ever."""

FAILS_AGAIN = "fails again and again"
"""Stands for the plugin that rejected a pod after `MAX_FAILURES`; no event is known to help it."""

_UNSCHEDULABLE, _CONFLICT = RequeueReason.UNSCHEDULABLE, RequeueReason.CONFLICT


class Retries:
    """The leases in which each pod lost a race or failed."""

    def __init__(self) -> None:
        # By UID and lease: the number of the failure, or of the lost race.
        self._failures: dict[str, dict[int, int]] = {}
        self._conflicts: dict[str, dict[int, int]] = {}

    def forget(self, uid: str) -> None:
        """Drop the counts of a pod that was bound or deleted."""
        self._failures.pop(uid, None)
        self._conflicts.pop(uid, None)

    def requeue(self, lease_id: int, report: ReturnedPod) -> Requeue:
        """Return how a pod of a lease returns to the queue, according to its earlier failures."""
        reason = RequeueReason(report.reason)
        as_reported = Requeue(
            report.uid,
            reason,
            report.rejected_by,
            report.pending,
            nominated_node=report.nominated_node,
            preempts=report.preempts,
        )
        if report.rejected_by and reason is _UNSCHEDULABLE:
            return as_reported
        # By lease, so that a repeated report counts once and has the same result.
        if reason is _CONFLICT:
            races = self._conflicts.setdefault(report.uid, {})
            if races.setdefault(lease_id, len(races) + 1) <= MAX_CONFLICTS:
                return as_reported
            # From here on a lost race counts as a failure, and failures are bounded.
            as_reported = replace(as_reported, reason=RequeueReason.ERROR)
        failures = self._failures.setdefault(report.uid, {})
        if failures.setdefault(lease_id, len(failures) + 1) < MAX_FAILURES:
            return as_reported
        # UNSCHEDULABLE without a rejecting plugin is reported for a cluster without nodes.
        by = WITHOUT_NODES if reason is _UNSCHEDULABLE else FAILS_AGAIN
        return replace(as_reported, reason=_UNSCHEDULABLE, rejected_by=(by,))
