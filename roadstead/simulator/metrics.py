"""Metrics of one simulated run, for comparisons: while it runs, or from its tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from roadstead.framework.failures import is_plugin_error
from roadstead.queue.reports import PendingReason
from roadstead.simulator.recorder import owner_of
from roadstead.simulator.recording import RecordedWorld, Recorder
from roadstead.simulator.samples import sample_rows
from roadstead.simulator.scenario import CompiledScenario
from roadstead.simulator.simulated_pods import Ending, SimulatedPod
from roadstead.simulator.summary import waits_of
from roadstead.simulator.times import HOUR_US, NEVER_US, SECOND_US

COUNTED_ENDINGS: Final = (Ending.PREEMPTED, Ending.EVICTED, Ending.LOST)
"""Endings whose numbers of pods are metrics: those that a scheduler or a fault causes."""

COMPARED_QUANTILES: Final = ("p50", "p99")
"""Quantiles of waits that are metrics, of those in `Waits.quantiles_us`."""


class RunMetrics:
    """Collect the pods and samples of one run."""

    def __init__(self, horizon_us: int) -> None:
        self._horizon_us = horizon_us
        # By owner, of bound pods.
        self._waits_us: defaultdict[str, list[int]] = defaultdict(list)
        self._endings: Counter[str] = Counter()
        self._pods = self._pending_us = self._pending = self._plugin_errors = 0
        # By metric and resource: the sum over the samples of the whole fleet.
        self._sums: defaultdict[tuple[str, str], float] = defaultdict(float)

    def add_pod(
        self,
        owner: str,
        created_us: int,
        bound_us: int | None,
        ended_us: int | None,
        ending: str | None,
    ) -> None:
        """Add a pod. bound_us: None if it was never bound. ended_us, ending: None until it ends."""
        self._pods += 1
        if ending is not None:
            self._endings[ending] += 1
        if bound_us is not None:
            self._waits_us[owner].append(bound_us - created_us)
            self._pending_us += bound_us - created_us
            return
        self._pending += ended_us is None
        self._pending_us += (self._horizon_us if ended_us is None else ended_us) - created_us

    def add_failed_attempts(self, message: str, attempts: int = 1) -> None:
        """Add attempts that bound no pod. message: their reason."""
        if is_plugin_error(message):
            self._plugin_errors += attempts

    def add_sample(self, zone: str, metric: str, resource: str, value: float) -> None:
        """Add a row of a sample, if it is of the whole fleet; rows of zones are left out."""
        if not zone:
            self._sums[metric, resource] += value

    def result(self) -> dict[str, float]:
        """Return the metrics by name; those of an owner or a resource have its name at the end.

        utilization: requested amount, divided by the allocatable one; fragmentation: the same of
        fragments. All amounts are summed over the samples before the division.
        """
        all_us = [wait_us for waits_us in self._waits_us.values() for wait_us in waits_us]
        metrics = {
            "placed_share": len(all_us) / self._pods if self._pods else 0.0,
            "pending": float(self._pending),
            "pending_pod_hours": self._pending_us / HOUR_US,
            **_waits(all_us, ""),
        }
        metrics |= {str(each): float(self._endings[str(each)]) for each in COUNTED_ENDINGS}
        metrics["plugin_errors"] = float(self._plugin_errors)
        for (metric, resource), total in sorted(self._sums.items()):
            if metric == "allocatable" and total:
                requested = self._sums.get(("requested", resource), 0.0)
                metrics[f"utilization {resource}"] = requested / total
                fragments = self._sums.get(("fragmentation", resource))
                if fragments is not None:
                    metrics[f"fragmentation {resource}"] = fragments / total
        for owner in sorted(self._waits_us):
            metrics |= _waits(self._waits_us[owner], f" {owner}")
        return metrics


def _waits(waits_us: list[int], suffix: str) -> dict[str, float]:
    """Return the metrics of some waits. suffix: of the metrics' names."""
    if not waits_us:
        return {}
    waits = waits_of(waits_us)
    quantiles = {
        f"wait_{name}_s{suffix}": waits.quantiles_us[name] / SECOND_US
        for name in COMPARED_QUANTILES
    }
    return {f"wait_mean_s{suffix}": waits.mean_us / SECOND_US, **quantiles}


class MetricsRecorder(Recorder):
    """A recorder that collects metrics."""

    def __init__(self, scenario: CompiledScenario) -> None:
        self._scenario = scenario
        self.metrics = RunMetrics(scenario.horizon_us)
        self._world: RecordedWorld | None = None

    def finish(self) -> dict[str, float]:
        """Add the pods that have not ended, and return the metrics. Call it once, after the run."""
        assert self._world is not None, "a run ends with a sample"
        for pod in self._world.pods.values():
            self._add_pod(pod, has_ended=False)
        return self.metrics.result()

    def pod_ended(self, pod: SimulatedPod) -> None:
        """Add a pod that has ended."""
        self._add_pod(pod, has_ended=True)

    def not_bound(
        self,
        now_us: int,
        pod: SimulatedPod,
        reason: PendingReason,
        nominated: str,
        victims: Sequence[str],
    ) -> None:
        """Add an attempt that bound no pod."""
        self.metrics.add_failed_attempts(reason.message)

    def sample(self, world: RecordedWorld) -> None:
        """Add the rows of a sample."""
        self._world = world
        for row in sample_rows(world):
            self.metrics.add_sample(*row)

    def _add_pod(self, pod: SimulatedPod, *, has_ended: bool) -> None:
        self.metrics.add_pod(
            owner_of(self._scenario, pod) or "",
            pod.created_us,
            None if pod.bound_us == NEVER_US else pod.bound_us,
            pod.ended_us if has_ended else None,
            str(pod.ends_as) if has_ended else None,
        )
