"""Requeueing: moves pods through PreEnqueue to activeQ or backoffQ, on events and reports.

Follows moveToActiveQ, moveToBackoffQ, requeuePodWithQueueingStrategy, AddUnschedulableIfNotPresent
and movePodsToActiveOrBackoffQueue of pkg/scheduler/backend/queue/scheduling_queue.go (1.34).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic

from roadstead.facts.pod import PodFacts
from roadstead.protocol.status import Status, unresolvable
from roadstead.queue.containers import Entries
from roadstead.queue.hints import EventRules, Hints, Strategy, best_strategy
from roadstead.queue.pods import (
    EventT,
    Gate,
    PodEntry,
    QueuedPod,
    QueueEvent,
    QueueSettings,
    QueueState,
    Requeue,
    RequeueReason,
)
from roadstead.queue.queue_store import QueueStore

DELETING = unresolvable("skip schedule deleting pod")
"""Status of a pod that is being deleted; it is never tried (skipPodSchedule of schedule_one.go)."""

OWN_EVENTS_MAX = 64
"""Maximum number of `PodEntry.own_events`; more are replaced by one "any event"."""


class Requeueing(Generic[EventT]):
    """Move pods of a store to ACTIVE or BACKOFF, or to GATED if PreEnqueue refuses them.

    A nomination is in effect only while its pod is not gated, as upstream (moveToActiveQ).
    """

    def __init__(
        self,
        store: QueueStore[EventT],
        gate: Gate,
        rules: EventRules[EventT],
        settings: QueueSettings,
    ) -> None:
        self._store = store
        self._plugin_gate = gate
        self._rules = rules
        self._settings = settings
        # By UID, since the last `pop_…`: pods whose nomination ended; and pods that left GATED,
        # whose nomination is in effect again.
        self._cleared: dict[str, QueuedPod] = {}
        self._released: dict[str, QueuedPod] = {}

    def gate(self, facts: PodFacts) -> Status:
        """Return why a pod is gated; success if it is not."""
        return DELETING if facts.is_terminating else self._plugin_gate(facts)

    def hints(self, events: Sequence[EventT | None]) -> Hints[EventT]:
        """Return an object with the strategy of each pod for these events."""
        return Hints(self._rules.hint, events)

    def enter(self, entry: PodEntry[EventT], event: QueueEvent, now_s: float) -> QueueState:
        """Apply an event that leads to ACTIVE or BACKOFF, or gate the pod; return its state."""
        # A pod in BACKOFF passed PreEnqueue when it entered (upstream: moveToActiveQ).
        if entry.state is not QueueState.BACKOFF:
            status = self.gate(entry.facts)
            if not status.is_success:
                return self._gate_pod(entry, status)
        entry.gating_plugin = ""
        was_gated = entry.state is QueueState.GATED
        state = self._store.apply(entry, event)
        if was_gated and entry.facts.nominated_node_name:
            self._cleared.pop(entry.uid, None)
            self._released[entry.uid] = entry.view()
        if entry.initial_attempt_s is None and state is QueueState.ACTIVE:
            entry.initial_attempt_s = now_s
        return state

    def enter_new(self, entries: Entries[EventT], now_s: float) -> None:
        """Add new pods as `enter` does; PreEnqueue runs once for each class."""
        statuses = {id(facts): self.gate(facts) for facts in _distinct_facts(entries)}
        admitted: list[PodEntry[EventT]] = []
        for entry in entries:
            status = statuses[id(entry.facts)]
            if status.is_success:
                entry.initial_attempt_s = now_s
                admitted.append(entry)
            else:
                self._gate_pod(entry, status)
        self._store.apply_all(admitted, QueueEvent.ADD)

    def _gate_pod(self, entry: PodEntry[EventT], status: Status) -> QueueState:
        entry.gating_plugin = status.plugin
        if status.plugin and status.plugin not in entry.rejected_by:
            entry.rejected_by = (*entry.rejected_by, status.plugin)
        if entry.state is not QueueState.GATED:
            self.record_cleared(entry)
        return self._store.apply(entry, QueueEvent.GATE)

    def record_cleared(self, entry: PodEntry[EventT]) -> None:
        """Record that the nomination of a pod, if it has one, is no longer in effect."""
        if entry.facts.nominated_node_name:
            self._released.pop(entry.uid, None)
            self._cleared[entry.uid] = entry.view()

    def pop_cleared(self) -> list[QueuedPod]:
        """Return the pods of `record_cleared` since the last call, as they were at that time."""
        cleared, self._cleared = [*self._cleared.values()], {}
        return cleared

    def pop_released(self) -> list[QueuedPod]:
        """Return the nominated pods that left GATED since the last call."""
        released, self._released = [*self._released.values()], {}
        return released

    def skip_deleting(self, pods: Iterable[QueuedPod], now_s: float) -> list[QueuedPod]:
        """Gate leased pods that are being deleted; return the others."""
        others: list[QueuedPod] = []
        for pod in pods:
            if pod.facts.is_terminating:
                # `enter` gates the pod, since `gate` returns DELETING; EXPIRE is not applied.
                self.enter(self._store.pods.present[pod.identity.uid], QueueEvent.EXPIRE, now_s)
            else:
                others.append(pod)
        return others

    def retry(self, entry: PodEntry[EventT], hints: Hints[EventT], now_s: float) -> bool:
        """Requeue a waiting pod if the events may help it; return whether it was requeued."""
        strategy = hints.strategy(entry)
        if strategy is Strategy.SKIP:
            return False
        event = _event_for(entry, strategy, now_s)
        return self.enter(entry, event, now_s) is not QueueState.GATED

    def move(
        self,
        events: Sequence[EventT],
        now_s: float,
        predicate: Callable[[PodEntry[EventT]], bool] | None = None,
    ) -> list[str]:
        """Requeue the pods that any of these events may help; return their UIDs.

        Hints run once for each class of waiting pods. predicate: which pods may move.
        """
        moved: list[str] = []
        rules = self._rules
        # Build both lists before any pod moves, so that no pod is considered twice.
        groups = [*self._store.unschedulable.groups(), *self._store.gated.groups()]
        for pods in groups:
            first = pods[0]
            facts, rejected_by, plugin = first.facts, first.rejected_by, first.gating_plugin
            relevant = [
                event
                for event in events
                # As upstream: some events are only for pods that certain plugins rejected.
                if rules.concerns(event, facts, rejected_by)
                # Only events of the plugin that gated the pod can release it.
                and (not plugin or rules.registered(plugin, event))
            ]
            hints = self.hints(relevant)
            if relevant and hints.strategy(first) is not Strategy.SKIP:
                chosen = (entry for entry in pods if predicate is None or predicate(entry))
                moved += [entry.uid for entry in chosen if self.retry(entry, hints, now_s)]
        return moved

    def return_leased(
        self, entry: PodEntry[EventT], report: Requeue, hints: Hints[EventT], now_s: float
    ) -> None:
        """Return a leased pod to the queue. hints: of the events since its lease began."""
        # It is not increased after UNSCHEDULABLE or an expired lease: the number of such attempts
        # depends on time, but the choice among nodes of equal score must depend on the seed of the
        # run alone.
        entry.tie_break_number += report.reason is not RequeueReason.UNSCHEDULABLE
        if report.reason is RequeueReason.CONFLICT:
            self.enter(entry, QueueEvent.CONFLICT, now_s)
            return
        self._count_failure(entry, report, now_s)
        own = best_strategy(self._rules.hint, entry.own_events, entry)
        # SKIP < AFTER_BACKOFF < IMMEDIATELY.
        strategy = max(hints.strategy(entry), own)
        if not entry.rejected_by:
            # No plugin rejected the pod, so no event can help: only the end of its backoff.
            self.enter(entry, QueueEvent.FAIL, now_s)
        elif strategy is Strategy.SKIP:
            self._store.apply(entry, QueueEvent.REJECT)
        else:
            self.enter(entry, _event_for(entry, strategy, now_s), now_s)

    def update(
        self,
        entry: PodEntry[EventT],
        facts: PodFacts,
        now_s: float,
        events: Sequence[EventT | None],
    ) -> None:
        """Change the facts of a pod. events: the changes, for the hints."""
        if entry.state is QueueState.ACTIVE:
            self._store.stay(entry, QueueEvent.UPDATE)
            self._store.active.change(entry, facts)
            return
        entry.facts = facts
        if entry.state is QueueState.IN_FLIGHT:
            self._store.stay(entry, QueueEvent.UPDATE)
            self.add_own_events(entry, events)
            return
        # Sort key and group depend on the facts: this removes the pod from its container and adds
        # it again.
        self._store.apply(entry, QueueEvent.UPDATE)
        if entry.state is QueueState.GATED:
            # The new facts may contain a nomination, which is not in effect while the pod is gated.
            self.record_cleared(entry)
        if entry.state in (QueueState.UNSCHEDULABLE, QueueState.GATED):
            self.retry(entry, self.hints(events), now_s)

    def add_own_events(self, entry: PodEntry[EventT], events: Sequence[EventT | None]) -> None:
        """Add events that concern only this pod in flight."""
        entry.own_events = (*entry.own_events, *events)
        if len(entry.own_events) > OWN_EVENTS_MAX:
            entry.own_events = (None,)

    def _count_failure(self, entry: PodEntry[EventT], report: Requeue, now_s: float) -> None:
        if report.reason is RequeueReason.UNSCHEDULABLE:
            entry.rejected_by = tuple(dict.fromkeys((*report.rejected_by, *report.pending)))
            entry.pending = report.pending
        if entry.rejected_by:
            entry.unschedulable_count += 1
            entry.consecutive_errors = 0
        else:
            entry.consecutive_errors += 1
        failures = entry.consecutive_errors or entry.unschedulable_count
        entry.timestamp_s = now_s
        entry.backoff_until_s = self._settings.backoff_until_s(failures, now_s)


def _event_for(entry: PodEntry[EventT], strategy: Strategy, now_s: float) -> QueueEvent:
    """Return the event that requeues a pod: to backoffQ if it must wait, else to activeQ."""
    waits = strategy is Strategy.AFTER_BACKOFF and entry.backoff_until_s > now_s
    return QueueEvent.BACK_OFF if waits else QueueEvent.ACTIVATE


def _distinct_facts(entries: Entries[EventT]) -> Iterable[PodFacts]:
    return {id(entry.facts): entry.facts for entry in entries}.values()
