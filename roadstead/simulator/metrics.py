"""Metrics of one simulated run, for comparisons: from a run while it goes, or its tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

from roadstead.simulator.recorder import owner_of
from roadstead.simulator.recording import RecordedWorld, Recorder
from roadstead.simulator.samples import sample_rows
from roadstead.simulator.scenario import CompiledScenario
from roadstead.simulator.simulated_pods import NEVER_US, Ending, SimulatedPod
from roadstead.simulator.summary import waits_of

SECOND_US: Final = 1e6
HOUR_US: Final = 3.6e9
COUNTED: Final = (Ending.PREEMPTED, Ending.EVICTED, Ending.LOST)
WAITS: Final = ("p50", "p99")


class RunMetrics:
    """Collects the pods and samples of one run."""

    def __init__(self, horizon_us: int) -> None:
        self._horizon_us = horizon_us
        self._waits_us: defaultdict[str, list[int]] = defaultdict(list)
        self._endings: Counter[str] = Counter()
        self._pods = self._pending_us = self._pending = 0
        self._sums: defaultdict[tuple[str, str], float] = defaultdict(float)

    def pod(
        self,
        owner: str,
        created_us: int,
        bound_us: int | None,
        ended_us: int | None,
        ending: str | None,
    ) -> None:
        """Add a pod; None: it was not bound, or has not ended."""
        self._pods += 1
        if ending is not None:
            self._endings[ending] += 1
        if bound_us is not None:
            self._waits_us[owner].append(bound_us - created_us)
            self._pending_us += bound_us - created_us
            return
        self._pending += ended_us is None
        self._pending_us += (self._horizon_us if ended_us is None else ended_us) - created_us

    def sample(self, zone: str, metric: str, resource: str, value: float) -> None:
        """Add a row of a sample; those of single zones are left out."""
        if not zone:
            self._sums[metric, resource] += value

    def result(self) -> dict[str, float]:
        """Return the metrics by name; those of an owner or a resource have its name at the end.

        utilization, fragmentation: shares of what is allocatable, averaged over the samples.
        """
        all_us = [each for one in self._waits_us.values() for each in one]
        found = {
            "placed_share": len(all_us) / self._pods if self._pods else 0.0,
            "pending": float(self._pending),
            "pending_pod_hours": self._pending_us / HOUR_US,
            **_waits(all_us, ""),
        }
        found |= {str(each): float(self._endings[str(each)]) for each in COUNTED}
        for (metric, resource), total in sorted(self._sums.items()):
            if metric == "allocatable" and total:
                requested = self._sums.get(("requested", resource), 0.0)
                found[f"utilization {resource}"] = requested / total
                fragments = self._sums.get(("fragmentation", resource))
                if fragments is not None:
                    found[f"fragmentation {resource}"] = fragments / total
        for owner in sorted(self._waits_us):
            found |= _waits(self._waits_us[owner], f" {owner}")
        return found


def _waits(waits_us: list[int], end: str) -> dict[str, float]:
    if not waits_us:
        return {}
    waits = waits_of(waits_us)
    quantiles = {f"wait_{name}_s{end}": waits.quantiles_us[name] / SECOND_US for name in WAITS}
    return {f"wait_mean_s{end}": waits.mean_us / SECOND_US, **quantiles}


class MetricsRecorder(Recorder):
    """A recorder that collects metrics."""

    def __init__(self, plan: CompiledScenario) -> None:
        self._plan = plan
        self.metrics = RunMetrics(plan.horizon_us)
        self._world: RecordedWorld | None = None

    def finish(self) -> dict[str, float]:
        """Return the metrics, with the pods that have not ended. Call it once, after the run."""
        assert self._world is not None, "a run ends with a sample"
        for life in self._world.pods.values():
            self._pod(life, is_over=False)
        return self.metrics.result()

    def pod_ended(self, life: SimulatedPod) -> None:
        """Add a pod whose life is over."""
        self._pod(life, is_over=True)

    def sample(self, world: RecordedWorld) -> None:
        """Add the rows of a sample."""
        self._world = world
        for row in sample_rows(world):
            self.metrics.sample(*row)

    def _pod(self, life: SimulatedPod, *, is_over: bool) -> None:
        self.metrics.pod(
            owner_of(self._plan, life) or "",
            life.created_us,
            None if life.bound_us == NEVER_US else life.bound_us,
            life.ended_us if is_over else None,
            str(life.ends_as) if is_over else None,
        )
