"""PendingReasons: why each pod of the queue is pending."""

from __future__ import annotations

from collections.abc import Iterable

from roadstead.facts.pod import PodFacts, PodIdentity
from roadstead.protocol.status import Status
from roadstead.queue.pods import QueueState
from roadstead.queue.reports import PendingReason


class PendingReasons:
    """The reasons by UID: of the last attempt, and of PreEnqueue, which counts while it gates."""

    def __init__(self) -> None:
        self._of_attempts: dict[str, PendingReason] = {}
        self._of_gates: dict[str, PendingReason] = {}

    def record(self, reasons: Iterable[PendingReason]) -> None:
        """Record the reasons that attempts found."""
        for reason in reasons:
            self._of_attempts[reason.uid] = reason
            # Of an earlier gate: PreEnqueue may gate the pod again for another reason.
            self._of_gates.pop(reason.uid, None)

    def record_gated(self, identity: PodIdentity, facts: PodFacts, status: Status) -> None:
        """Record why PreEnqueue gates a pod. The message for a terminating pod has its name."""
        # As upstream.
        message = f"{status.message}: {identity.key}" if facts.is_terminating else status.message
        plugins = (status.plugin,) if status.plugin else ()
        reason = PendingReason(identity.uid, identity.key, message, (), plugins)
        self._of_gates[identity.uid] = reason

    def forget(self, uid: str) -> None:
        """Drop the reasons of a pod that was bound or deleted."""
        self._of_attempts.pop(uid, None)
        self._of_gates.pop(uid, None)

    def of(self, identity: PodIdentity, state: QueueState) -> PendingReason:
        """Return why a pod in this state is pending."""
        gated = self._of_gates.get(identity.uid) if state is QueueState.GATED else None
        return (
            gated
            or self._of_attempts.get(identity.uid)
            or PendingReason(identity.uid, identity.key, "has not been tried yet", (), ())
        )
