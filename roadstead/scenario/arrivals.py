"""Sources of arrivals: pods of templates at drawn times, and the pods of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, repeat
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from roadstead.facts.pod import GroupMembership, PodFacts
from roadstead.facts.pod_groups import GROUP_LABELS
from roadstead.fleet.trace import NEVER_MS, Trace
from roadstead.scenario.arrival_times import ActiveWindow, ArrivalTimes
from roadstead.scenario.durations import DurationsBase
from roadstead.scenario.random_stream import BLOCK, RandomStream, rounded
from roadstead.simulator.scenario import Arrival, PodLifecycle
from roadstead.simulator.times import NEVER_US

US_PER_MS: Final = 1_000


NamedPods = tuple[tuple[str, PodFacts], ...]
"""(name without namespace, facts) of the pods of one arrival."""

# Not `Arrival` itself, whose constructor is a Python function: a run has millions of arrivals.
_arrival = cast("Callable[[tuple[object, ...]], Arrival]", partial(tuple.__new__, Arrival))


@dataclass(frozen=True, slots=True)
class PodChoice:
    """Pods that an arrival may bring.

    prefix: of the pods' names. weight: the probability of this choice, relative to the others.
    gang: number of pods that arrive together. is_group: they form a pod group; then each gang has
    facts of its own.
    """

    prefix: str
    facts: PodFacts
    lifecycle: PodLifecycle
    weight: float = 1.0
    gang: int = 1
    is_group: bool = False

    def pods(self, number: int) -> NamedPods:
        """Return the pods of an arrival. number: of the arrival within its source, from 0."""
        if self.gang == 1:
            return ((f"{self.prefix}-{number}", self.facts),)
        # The letter keeps these names apart from those of single pods of another entry.
        name = f"{self.prefix}-g{number}"
        facts = self._grouped(name) if self.is_group else self.facts
        return tuple((f"{name}-{member}", facts) for member in range(self.gang))

    def _grouped(self, name: str) -> PodFacts:
        # A pod names its pod group by one of these labels.
        labels = dict(self.facts.labels) | {GROUP_LABELS[0]: name}
        group = GroupMembership(name, self.gang)
        return replace(self.facts, labels=tuple(sorted(labels.items())), pod_group=group)


@dataclass(frozen=True, slots=True)
class DrawnArrivals:
    """Pods of templates, at drawn times and with drawn durations.

    index: of this source in the scenario. choices: each arrival brings one of them.
    """

    index: int
    name: str
    times: ArrivalTimes
    window: ActiveWindow
    durations: DurationsBase
    choices: tuple[PodChoice, ...]

    def expected(self, horizon_us: int) -> tuple[float, float]:
        """Return the expected numbers of (arrivals, pods) before the horizon."""
        arrivals = self.window.expected(self.times, horizon_us)
        total = sum(each.weight for each in self.choices)
        return arrivals, arrivals * sum(each.weight * each.gang for each in self.choices) / total

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        stream = RandomStream(seed, self.index, "durations")
        chosen = self._chosen(seed)
        first = 0
        for block in self.window.cut(self.times.blocks(seed, self.index)):
            count = len(block)
            numbers = range(first, first + count)
            choices = list(islice(chosen, count))
            durations_us = self.durations.block(stream, count).tolist()
            pods = self._pods(choices, numbers)
            lifecycles = (each.lifecycle for each in choices)
            columns = (block.tolist(), repeat(self.index), pods, durations_us, lifecycles)
            # Not strict: `repeat` has no end.
            rows = zip(*columns, strict=False)
            yield from map(_arrival, rows)
            first += count

    def _pods(self, choices: list[PodChoice], numbers: range) -> Iterator[NamedPods]:
        """Yield the pods of arrivals with these numbers, without a call for each of them."""
        if any(each.gang > 1 for each in self.choices):
            return map(PodChoice.pods, choices, numbers)
        names = map("%s-%d".__mod__, zip((each.prefix for each in choices), numbers, strict=True))
        # `zip` of one iterator makes tuples of one element.
        return zip(zip(names, (each.facts for each in choices), strict=True), strict=True)

    def _chosen(self, seed: int) -> Iterator[PodChoice]:
        if len(self.choices) == 1:
            return repeat(self.choices[0])
        return self._drawn_choices(RandomStream(seed, self.index, "choices"))

    def _drawn_choices(self, stream: RandomStream) -> Iterator[PodChoice]:
        bounds = np.cumsum([each.weight for each in self.choices])
        while True:
            points = stream.uniform(BLOCK) * bounds[-1]
            indices = np.searchsorted(bounds, points, side="right")
            # Rounding may put a point onto the last bound.
            for index in np.minimum(indices, len(bounds) - 1).tolist():
                yield self.choices[index]


@dataclass(frozen=True, slots=True)
class TraceArrivals:
    """The pods of a trace.

    rate: factor by which the rate of arrivals is multiplied. sample: fraction of the pods that
    arrive. start_from_us: time in the trace; pods created earlier do not arrive. shift_us: time in
    the scenario that corresponds to it. suffix: of the pods' names. lifecycles: of each class of
    the trace. order: rows of the trace to play, by creation.
    """

    index: int
    name: str
    trace: Trace
    lifecycles: tuple[PodLifecycle, ...]
    rate: float = 1.0
    sample: float = 1.0
    start_from_us: int = 0
    shift_us: int = 0
    suffix: str = ""
    order: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        begin_ms = -(-self.start_from_us // US_PER_MS)
        order = np.argsort(self.trace.creation_ms, kind="stable")
        played = order[np.searchsorted(self.trace.creation_ms[order], begin_ms) :]
        object.__setattr__(self, "order", played.astype(np.int64))

    def expected(self, horizon_us: int) -> tuple[float, float]:
        """Return the expected numbers of (arrivals, pods) before the horizon."""
        # From a time of the scenario to one of the trace; sources end at the horizon.
        end_ms = (self.start_from_us + (horizon_us - self.shift_us) * self.rate) / US_PER_MS
        created_ms = self.trace.creation_ms[self.order]
        pods = float(np.searchsorted(created_ms, end_ms)) * self.sample
        return pods, pods

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        stream = RandomStream(seed, self.index, "sample")
        for first in range(0, len(self.order), BLOCK):
            rows = self.order[first : first + BLOCK]
            if self.sample < 1:
                rows = rows[stream.uniform(len(rows)) < self.sample]
            yield from self._block(rows)

    def _block(self, rows: NDArray[np.int64]) -> Iterator[Arrival]:
        trace, suffix = self.trace, self.suffix
        duration_ms = trace.duration_ms[rows]
        since_us = trace.creation_ms[rows] * US_PER_MS - self.start_from_us
        at_us = self.shift_us + rounded(since_us / self.rate)
        duration_us = np.where(duration_ms == NEVER_MS, NEVER_US, duration_ms * US_PER_MS)
        codes = trace.pod_class[rows].tolist()
        names = (trace.pod_names[row] + suffix for row in rows.tolist())
        facts = (trace.pod_classes[each] for each in codes)
        # `zip` of one iterator makes tuples of one element: one pod for each arrival.
        pods = zip(zip(names, facts, strict=True), strict=True)
        lifecycles = (self.lifecycles[each] for each in codes)
        columns = (at_us.tolist(), repeat(self.index), pods, duration_us.tolist(), lifecycles)
        # Not strict: `repeat` has no end.
        yield from map(_arrival, zip(*columns, strict=False))
