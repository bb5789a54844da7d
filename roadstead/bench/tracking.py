"""Tracker: when each pod of a benchmark was bound, from the binder's commits in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadstead.bench.series import PodSeries
from roadstead.facts.pod import Labels


@dataclass(slots=True, eq=False)
class SubmittedSeries:
    """A series of pods, which is submitted in parts.

    bound_s: time at which each pod was bound, float64[count]; NaN for pods that are not bound.
    bound_processor_s: processor time of the binder's process then, float64[count].
    parts: (index after the part's last pod, submission time). removed: indices of removed pods.
    bound: number of pods with a time in bound_s.
    """

    series: PodSeries
    bound_s: NDArray[np.float64]
    bound_processor_s: NDArray[np.float64]
    parts: list[tuple[int, float]] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)
    bound: int = 0
    _removed_unbound: set[int] = field(default_factory=set)

    @property
    def submitted(self) -> int:
        """The number of pods in the parts submitted so far."""
        return self.parts[-1][0] if self.parts else 0

    @property
    def missing(self) -> int:
        """The number of submitted pods that are neither bound nor removed."""
        return self.submitted - self.bound - len(self._removed_unbound)

    def remove(self, index: int) -> None:
        """Record that a pod was removed."""
        self.removed.add(index)
        if np.isnan(self.bound_s[index]):
            self._removed_unbound.add(index)

    def record_bound(self, index: int, time_s: float, processor_s: float) -> None:
        """Record that a pod was bound; only the first report counts."""
        if np.isnan(self.bound_s[index]):
            self.bound_s[index] = time_s
            self.bound_processor_s[index] = processor_s
            self._removed_unbound.discard(index)
            self.bound += 1

    def submitted_s(self) -> NDArray[np.float64]:
        """The submission time of each pod, float64[submitted]."""
        times = np.empty(self.submitted)
        start = 0
        for stop, time_s in self.parts:
            times[start:stop] = time_s
            start = stop
        return times

    def matches(self, namespaces: Sequence[str], labels: Labels) -> bool:
        """Whether the pods are in one of these namespaces (none: any) and have these labels."""
        if namespaces and self.series.namespace not in namespaces:
            return False
        classes = self.series.classes
        return all(set(labels) <= set(facts.labels) for facts in classes) if labels else True


class Tracker:
    """All submitted series, in order. commits: number of the binder's commits so far."""

    def __init__(self) -> None:
        self.followed: list[SubmittedSeries] = []
        self.commits = 0

    def follow(self, series: PodSeries) -> SubmittedSeries:
        """Register a series before its pods are submitted."""
        found = SubmittedSeries(
            series, np.full(series.count, np.nan), np.full(series.count, np.nan)
        )
        self.followed.append(found)
        return found

    def record_commits(
        self, uids: Sequence[str], times: Iterable[tuple[int, float, float]]
    ) -> None:
        """Record the next commits; those of pods of no series are only counted.

        times: (number of uids, their time, processor time), in the order of `uids`.
        """
        start = 0
        # The next commit is most likely of the same series as the one before.
        latest = self.followed[-1] if self.followed else None
        for count, time_s, processor_s in times:
            for uid in uids[start : start + count]:
                index = latest.series.index_of(uid) if latest is not None else None
                if index is None:
                    latest, index = self._find(uid)
                if latest is not None and index is not None:
                    latest.record_bound(index, time_s, processor_s)
            start += count
        self.commits += len(uids)

    def _find(self, uid: str) -> tuple[SubmittedSeries | None, int | None]:
        """Return a pod's series and its index in it; (None, None) for a pod of no series."""
        for each in reversed(self.followed):
            index = each.series.index_of(uid)
            if index is not None:
                return each, index
        return None, None

    def of(self, namespaces: Sequence[str] = (), labels: Labels = ()) -> list[SubmittedSeries]:
        """Return the series of these namespaces (none: all) with these labels."""
        return [each for each in self.followed if each.matches(namespaces, labels)]

    def remaining(self, namespace: str, labels: Labels) -> list[tuple[SubmittedSeries, int]]:
        """Return the submitted pods of a namespace that were not removed, as (series, index)."""
        return [
            (each, index)
            for each in self.of((namespace,), labels)
            for index in range(each.submitted)
            if index not in each.removed
        ]
