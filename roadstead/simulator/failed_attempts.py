"""FailedAttempts: attempts that bound nothing, from the scheduler's report until they are recorded.

A report arrives before the evictions that the attempt caused are applied. An attempt is recorded
with its victims, so it waits here until they are known, which is at the same virtual time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from roadstead.queue.reports import PendingReason
from roadstead.scheduler.needs import ReportPods
from roadstead.simulator.recording import Recorder
from roadstead.simulator.simulated_pods import SimulatedPod
from roadstead.simulator.times import NEVER_US


class FailedAttempt(NamedTuple):
    """An attempt. nominated: the node to which the pod was nominated, or ""."""

    pod: SimulatedPod
    reason: PendingReason
    nominated: str


class FailedAttempts:
    """The attempts to record. pods: those of the run that have not ended, by UID."""

    def __init__(self, pods: Mapping[str, SimulatedPod], recorder: Recorder) -> None:
        self._pods, self._recorder = pods, recorder
        self.attempts: list[FailedAttempt] = []

    def add(self, report: ReportPods, now_us: int) -> None:
        """Count and store the attempts of a scheduler's report that bound nothing."""
        # Pods that go back to the queue, with the node to which preemption nominated them.
        nominated = {each.uid: each.nominated_node or "" for each in report.returned}
        for reason in report.pending_reasons:
            pod = self._pods.get(reason.uid)
            if pod is None:
                continue
            pod.attempts += 1
            if pod.first_tried_us == NEVER_US:
                pod.first_tried_us = now_us
            self.attempts.append(FailedAttempt(pod, reason, nominated.get(reason.uid, "")))

    def record(
        self, now_us: int, bound: Mapping[str, str], evicted: Iterable[tuple[str, str]]
    ) -> None:
        """Record the stored attempts, each with the pods that it preempted.

        bound: nodes, by UID, of pods that are about to be bound. evicted: UIDs of victims, each
        with the key of its preemptor.
        """
        # By the preemptor's key and the node on which it preempted: UIDs of the victims.
        victims: dict[tuple[str, str], list[str]] = {}
        for uid, preemptor in evicted:
            node = bound.get(uid) or self._pods[uid].node
            victims.setdefault((preemptor, node), []).append(uid)
        for each in self.attempts:
            # A pod may preempt on one node and then on another, all at one time.
            uids = victims.pop((each.reason.key, each.nominated), ())
            self._recorder.not_bound(now_us, each.pod, each.reason, each.nominated, uids)
        self.attempts.clear()
