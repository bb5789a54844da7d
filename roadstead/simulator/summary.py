"""The figures of one simulated run, for people and for `summary.json`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from roadstead.simulator.simulated_pods import Ending, SimulatedPod
from roadstead.simulator.times import NEVER_US

QUANTILES: Final = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits of pods from creation to bind. quantiles_us: by name, see QUANTILES."""

    pods: int
    mean_us: float
    quantiles_us: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The figures of a run up to its horizon.

    bound: pods that were ever bound. pending, running: pods at the horizon. endings: number of pods
    by `Ending`. waits: of bound pods; waits_of: the same by owner. unplaced_attempts: that bound no
    pod. nodes: at the horizon. processor_s: of the run, the only figure that differs between runs.
    """

    scenario: str
    config: str
    seed: int
    horizon_us: int
    created: int
    bound: int
    pending: int
    running: int
    endings: Mapping[str, int]
    waits: Waits
    waits_of: Mapping[str, Waits]
    unplaced_attempts: int
    nodes: int
    processor_s: float

    def as_json(self) -> dict[str, object]:
        """Return the summary as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RunSummary:
        """Return the summary that `as_json` returned. Raises KeyError, TypeError or ValueError."""
        waits_of = {owner: Waits(**each) for owner, each in document["waits_of"].items()}
        return cls(**{**document, "waits": Waits(**document["waits"]), "waits_of": waits_of})


@dataclass(slots=True)
class SummaryCounts:
    """Counts of a run so far. waits_us: by owner, of bound pods."""

    endings: Counter[Ending] = field(default_factory=Counter)
    waits_us: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    unplaced_attempts: int = 0

    def add(self, pod: SimulatedPod, owner: str, *, has_ended: bool) -> None:
        """Add a pod at its end, or at the horizon."""
        if has_ended:
            self.endings[pod.ends_as] += 1
        if pod.bound_us != NEVER_US:
            self.waits_us[owner].append(pod.bound_us - pod.created_us)

    def waits(self) -> tuple[Waits, dict[str, Waits]]:
        """Return the waits of all pods, and those by owner."""
        by_owner = {owner: waits_of(self.waits_us[owner]) for owner in sorted(self.waits_us)}
        all_us = [wait_us for waits_us in self.waits_us.values() for wait_us in waits_us]
        return waits_of(all_us), by_owner


def waits_of(waits_us: Sequence[int]) -> Waits:
    """Return mean and quantiles of waiting times; each quantile is a wait that occurred."""
    if not waits_us:
        return Waits(0, 0.0, {name: 0 for name, _ in QUANTILES})
    array = np.array(waits_us, dtype=np.int64)
    values = np.quantile(array, [fraction for _, fraction in QUANTILES], method="higher")
    names = (name for name, _ in QUANTILES)
    return Waits(
        len(array), float(array.mean()), dict(zip(names, map(int, values.tolist()), strict=True))
    )
