"""When each pod of a benchmark is bound, from the binder's commits in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roadstead.bench.series import PodSeries
from roadstead.facts.pod import Labels


@dataclass(slots=True, eq=False)
class SubmittedSeries:
    """A submitted series. bound_s: float64[count], NaN for pods that are not bound.

    parts: for each part (index after its last pod, submission time). gone: indices of removed pods.
    """

    series: PodSeries
    bound_s: NDArray[np.float64]
    parts: list[tuple[int, float]] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    bound: int = 0

    @property
    def submitted(self) -> int:
        return self.parts[-1][0] if self.parts else 0

    @property
    def missing(self) -> int:
        """The number of submitted pods that are neither bound nor removed."""
        lost = sum(1 for place in self.gone if np.isnan(self.bound_s[place]))
        return self.submitted - self.bound - lost

    def note(self, place: int, time_s: float) -> None:
        """Record that a pod was bound; only the first report counts."""
        if np.isnan(self.bound_s[place]):
            self.bound_s[place] = time_s
            self.bound += 1

    def submitted_s(self) -> NDArray[np.float64]:
        """The submission time of each pod, float64[submitted]."""
        times = np.empty(self.submitted)
        start = 0
        for stop, time_s in self.parts:
            times[start:stop] = time_s
            start = stop
        return times

    def is_of(self, namespaces: Sequence[str], labels: Labels) -> bool:
        """Whether the pods are in one of these namespaces (none: any) and have these labels."""
        if namespaces and self.series.namespace not in namespaces:
            return False
        classes = self.series.classes
        return all(set(labels) <= set(facts.labels) for facts in classes) if labels else True


class Tracker:
    """All submitted series, in order."""

    def __init__(self) -> None:
        self.followed: list[SubmittedSeries] = []
        self.commits = 0

    def follow(self, series: PodSeries) -> SubmittedSeries:
        """Register a series before its pods are submitted."""
        found = SubmittedSeries(series, np.full(series.count, np.nan))
        self.followed.append(found)
        return found

    def committed(self, uids: Sequence[str], times: Iterable[tuple[int, float]]) -> None:
        """Record the next commits. times: (number of uids, time), in order. Ignores other pods."""
        start = 0
        last = self.followed[-1] if self.followed else None
        for count, time_s in times:
            for uid in uids[start : start + count]:
                place = last.series.place_of(uid) if last is not None else None
                if place is None:
                    last, place = self._find(uid)
                if last is not None and place is not None:
                    last.note(place, time_s)
            start += count
        self.commits += len(uids)

    def _find(self, uid: str) -> tuple[SubmittedSeries | None, int | None]:
        for each in reversed(self.followed):
            place = each.series.place_of(uid)
            if place is not None:
                return each, place
        return None, None

    def of(self, namespaces: Sequence[str] = (), labels: Labels = ()) -> list[SubmittedSeries]:
        """The series of these namespaces (none: all) with these labels."""
        return [each for each in self.followed if each.is_of(namespaces, labels)]

    def present(self, namespace: str, labels: Labels) -> list[tuple[SubmittedSeries, int]]:
        """The pods of a namespace that are not removed, bound or not, in order of submission."""
        return [
            (each, place)
            for each in self.of((namespace,), labels)
            for place in range(each.submitted)
            if place not in each.gone
        ]
