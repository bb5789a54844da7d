"""Job: pods until so many have succeeded, or too many have failed.

Upstream: pkg/controller/job (job_controller.go, backoff_utils.go). A pod that ends in another way
than by success has failed, also one that was evicted, preempted, deleted or lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from roadstead.simulator.component import ClusterView, Command, CreatePods, NewPod, WakeAt
from roadstead.simulator.controllers.core import ControllerCore
from roadstead.simulator.scenario import ControllerPlan
from roadstead.simulator.simulated_pods import Ending, LifeState, SimulatedPod
from roadstead.simulator.times import NEVER_US, SECOND_US

BACKOFF_US: Final = 10 * SECOND_US
"""After the first failure; it doubles with each further one in a row."""

BACKOFF_MAX_US: Final = 600 * SECOND_US
"""As in upstream's code; six minutes in its documentation."""


class JobCore(ControllerCore):
    """A Job.

    replicas: its completions. succeeded, failed: number of pods so far. failed_since_success:
    failures after the last success. `_failed_us`, `_succeeded_us`: times of the last failure and
    success. `_wakes_us`: the end of the backoff for which a `WakeAt` was returned last. `_active`:
    pods that neither terminate nor have ended, by UID.
    """

    replaces_at_once = True

    def __init__(self, plan: ControllerPlan, seed: int) -> None:
        super().__init__(plan, seed)
        self.succeeded = self.failed = self.failed_since_success = 0
        self._failed_us = self._succeeded_us = self._wakes_us = NEVER_US
        self._active: dict[str, SimulatedPod] = {}

    def pod_created(self, pod: SimulatedPod) -> None:
        self._active[pod.uid] = pod

    def pod_leaves(self, pod: SimulatedPod, now_us: int) -> bool:
        if self._active.pop(pod.uid, None) is None:
            return False
        if pod.state is LifeState.ENDED and pod.ends_as is Ending.DONE:
            self.succeeded += 1
            self.failed_since_success, self._succeeded_us = 0, now_us
        else:
            self.failed += 1
            self._count_failure(now_us)
        return True

    def remaining(self) -> Iterable[SimulatedPod]:
        return self._active.values()

    def _count_failure(self, now_us: int) -> None:
        # A success at the same time counts as later than the failure (newBackoffRecord).
        if self._succeeded_us != now_us:
            self.failed_since_success += 1
            self._failed_us = now_us

    def sync(self, world: ClusterView) -> list[Command]:
        if self.failed > self.plan.backoff_limit:
            self.note("job failed", f"{self.failed:,} pods failed: BackoffLimitExceeded")
            return self._stop()
        if self.succeeded >= self.replicas:
            self.note("job completed", f"{self.succeeded:,} pods succeeded")
            return self._stop()
        wanted = min(self.plan.parallelism, self.replicas - self.succeeded) - len(self._active)
        if wanted <= 0:
            return []
        until_us = self._failed_us + backoff_us(self.failed_since_success)
        if self.failed_since_success and world.now_us < until_us:
            if self._wakes_us == until_us:
                return []
            self._wakes_us = until_us
            return [WakeAt(until_us, ("sync", self.plan.index))]
        pods = tuple(self._new_pod() for _ in range(wanted))
        return [CreatePods(pods, controller=self.plan.index)]

    def _new_pod(self) -> NewPod:
        number = self.created_pods
        name, facts = self.plan.pod(self.template, number)
        return self.new_pod(name, facts, self.plan.templates[self.template].lifecycle, number)

    def validate(self) -> None:
        ended = self.succeeded + self.failed
        if self.is_live:
            assert ended + len(self._active) == self.created_pods, f"{self.subject} lost a pod"
            assert self.succeeded + len(self._active) <= self.replicas, f"{self.subject}: too many"
            assert len(self._active) <= self.plan.parallelism, f"{self.subject}: too many at once"


def backoff_us(failures: int) -> int:
    """Return the time from the last of a number of failures in a row to the next creation."""
    if not failures:
        return 0
    # BACKOFF_MAX_US is reached long before 16 doublings; more would only make a huge number.
    return min(BACKOFF_US << min(failures - 1, 16), BACKOFF_MAX_US)
