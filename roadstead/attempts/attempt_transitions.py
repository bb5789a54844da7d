"""AttemptTransitions: the transitions of one attempt, from placement to its end.

The base class of AttemptsCore: it changes single records, which AttemptsCore selects. `out`
collects the commands of a call.
"""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.attempts import steps
from roadstead.attempts.attempt_results import conflict, failed, no_node, refused_on_node
from roadstead.attempts.attempt_store import AttemptStore
from roadstead.attempts.commands import AttemptResult, Outbox
from roadstead.attempts.pods import (
    ENDED_UNBOUND,
    RESERVED,
    Attempt,
    AttemptEvent,
    AttemptRecord,
    AttemptState,
    BindResult,
    PermitWait,
)
from roadstead.cycle.batch import Decision
from roadstead.protocol.status import Status


class AttemptTransitions:
    """Transitions of single records of one store."""

    def __init__(self, store: AttemptStore) -> None:
        self._store = store

    def _result(self, decision: Decision) -> AttemptResult:
        if decision.error:
            return failed(decision.error)
        assert decision.diagnosis is not None, f"{decision.pod.key}: no node and no reason"
        profile = self._store.pods.present[decision.pod.uid].profile
        return no_node(profile, decision.pod, decision.diagnosis, decision.post_filter)

    def _place(
        self, node_of: Mapping[str, str], read_versions: Mapping[str, int], out: Outbox
    ) -> None:
        """Begin attempts of undecided pods. node_of: by UID. read_versions: of rows, by node."""
        undecided = self._store.undecided
        records = [undecided[uid] for uid in node_of]
        tokens = self._store.next_tokens(len(records))
        for record, node_name, token in zip(records, node_of.values(), tokens, strict=True):
            # Unpacked, which is faster than attribute access: this runs for each placed pod.
            uid, key, pod_class, _, attempt_number, _, _ = record.pod
            version = read_versions.get(node_name, 0)
            record.refusal, record.decided = None, (attempt_number, node_name, "")
            record.attempt = attempt = Attempt(token, uid, key, node_name, pod_class.facts, version)
            out.assume.append(attempt)
        self._store.transition_all(records, AttemptEvent.PLACE)

    def _apply_assumption(
        self, record: AttemptRecord, status: Status, now_s: float, out: Outbox
    ) -> None:
        if record.state is AttemptState.ASSUMING:
            if status.is_success:
                self._reserve(record, now_s, out)
            else:
                self._end(record, AttemptEvent.REFUSE, out, conflict(status.message))
        elif status.is_success and record.state in ENDED_UNBOUND:
            # The attempt ended before the cache accepted it, so the cache must forget it. A late or
            # repeated answer repeats Forget, which then changes nothing.
            out.forget.append(record.placed_attempt)

    def _reserve(self, record: AttemptRecord, now_s: float, out: Outbox) -> None:
        self._store.transition(record, AttemptEvent.ACCEPT)
        target = record.target
        waits: dict[str, float] = {}
        status = record.refusal or steps.reserve(record.profile, target)
        if status.is_success:
            status, waits = steps.permit(record.profile, target)
        if not status.is_success:
            self._end_refused(record, status, out)
        elif waits:
            record.waits = {
                plugin: PermitWait(wait_s, now_s + wait_s) for plugin, wait_s in waits.items()
            }
            self._store.transition(record, AttemptEvent.PARK)
        else:
            self._bind_permitted(record, out)

    def _bind_permitted(self, record: AttemptRecord, out: Outbox) -> None:
        self._store.transition(record, AttemptEvent.PERMIT)
        status = steps.pre_bind_and_bind(record.profile, record.target)
        if status.is_success:
            self._store.transition(record, AttemptEvent.BIND)
            out.bind.append(record.placed_attempt)
        else:
            self._end(record, AttemptEvent.FAIL, out, failed(status.message, status.plugin))

    def _end_refused(self, record: AttemptRecord, status: Status, out: Outbox) -> None:
        """End an attempt that Reserve or Permit refused."""
        if status.is_rejected:
            self._end(record, AttemptEvent.REJECT, out, refused_on_node(status))
        else:
            self._end(record, AttemptEvent.FAIL, out, failed(status.message))

    def _apply_answer(self, record: AttemptRecord, answer: BindResult, out: Outbox) -> None:
        """Apply an answer of the binder: confirm the bind, or end the attempt."""
        event = answer.event
        if event is AttemptEvent.COMMIT:
            self._store.transition(record, event)
            out.warn(record, steps.post_bind(record.profile, record.target))
            out.confirm.append(record.placed_attempt)
            out.add_done([record])
        elif event is AttemptEvent.REFUSE:
            self._end(record, event, out, conflict(answer.message))
        elif event is AttemptEvent.FAIL:
            self._end(record, event, out, failed(answer.message))
        else:
            is_bound_elsewhere = event is AttemptEvent.BOUND_ELSEWHERE
            self._end(record, event, out, AttemptResult(is_bound_elsewhere=is_bound_elsewhere))

    def _end(
        self, record: AttemptRecord, event: AttemptEvent, out: Outbox, result: AttemptResult
    ) -> None:
        """End an attempt without a bind: Unreserve in reverse order, Forget, RequeuePods."""
        state = record.state
        self._store.transition(record, event)
        if state in RESERVED:
            out.warn(record, steps.unreserve(record.profile, record.target))
        # The cache may have assumed a pod that is deleted before its answer arrives.
        if state in RESERVED or (state is AttemptState.ASSUMING and event is AttemptEvent.DELETE):
            out.forget.append(record.placed_attempt)
        out.add_result(record, result)
