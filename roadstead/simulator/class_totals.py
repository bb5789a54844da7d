"""ClassTotals: how many pods of each class are in which state, from sample to sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from roadstead.facts.pod import PodFacts
from roadstead.simulator.simulated_pods import ClassCounts

Totals = tuple[int, int, int, int, int]
"""Created, pending, running, finished, removed; as `ClassCounts.totals`."""

_NONE: Totals = (0, 0, 0, 0, 0)


class ClassTotals:
    """The totals of the last sample. Several `ClassCounts` with equal facts are one class."""

    def __init__(self) -> None:
        # The totals of each `ClassCounts` at the last sample.
        self._recorded: dict[ClassCounts, Totals] = {}
        # Number of a class → its totals. The classes after the first `MAX_COUNTED_CLASSES` are
        # counted as one, under None.
        self._totals: dict[int | None, Totals] = {}

    def changed(
        self, counts: Iterable[ClassCounts], number_of: Callable[[PodFacts], int]
    ) -> Iterator[tuple[int | None, int, int, int, int, int]]:
        """Yield the number of each class that has changed since the last call, with its totals.

        counts: all of the run. number_of: returns the number of the class with these facts.
        """
        changed: set[int | None] = set()
        for each in counts:
            totals, before = each.totals(), self._recorded.get(each, _NONE)
            if totals == before:
                continue
            self._recorded[each] = totals
            number = None if each.facts is None else number_of(each.facts)
            last = self._totals.get(number, _NONE)
            created, pending, running, finished, removed = (
                sums + now - old for sums, now, old in zip(last, totals, before, strict=True)
            )
            self._totals[number] = created, pending, running, finished, removed
            changed.add(number)
        for number in sorted(changed, key=lambda each: -1 if each is None else each):
            yield number, *self._totals[number]
