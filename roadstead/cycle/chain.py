"""Chain: batches that are decided one after another on a table that is held all the while.

    batch ──► a pod tried to preempt, or a nominated one was placed ──► the table shows it ──► batch
      └── ended by anything else ──► the chain ends

Such a pod ends its batch, since what was found of the pods behind it is out of date. What follows
from it is known before the cache says so: its victims leave, and it is nominated. So the next batch
begins at once, and the messages about all of them are sent together.

Nobody is evicted for pods that are not assumed yet: behind a placed pod none preempts.

Upstream: pkg/scheduler/framework/preemption/executor.go (evictions go on beside the next cycle).
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.cycle.table_cycle import TableCycle
from roadstead.cycle.tentative import Tentative

MOST_BATCHES = 64
LONGEST_S = 1.0
"""So many are decided before their messages are sent, and for about so long: leases and changes of
the cluster wait for the end of a chain, and plugins may be slow."""


class Chain:
    """Decides which pods come next. decisions: of all batches so far, which settled so many pods.

    pods: those of the batch that is to be decided; empty once the chain has ended. coming: pods
    that may be decided, the first batch's first of all; none where nothing may follow these.
    """

    def __init__(
        self,
        cycle: TableCycle,
        tentative: Tentative,
        first: Sequence[PodInCycle],
        coming: Sequence[PodInCycle] = (),
    ) -> None:
        self.pods = first
        self.decisions: list[Decision] = []
        self.settled = 0
        self.has_placed = False
        self._cycle = cycle
        self._tentative = tentative
        self._coming = coming or first
        self._batches = 0
        self._paused_s: float | None = None

    def pause(self, now_s: float) -> None:
        """It is so late between two batches. The chain ends if it has taken long."""
        if self._paused_s is None:
            self._paused_s = now_s
        elif now_s - self._paused_s > LONGEST_S:
            self.pods = ()

    def take(self, decisions: Sequence[Decision], settled: int) -> None:
        """What came of `pods`. The cycle learns from it."""
        if settled:
            self._cycle.settled(len(self.pods), settled)
        self._batches += 1
        self.decisions += decisions
        self.settled += settled
        self.has_placed |= any(each.node_name is not None for each in decisions)
        self.pods = self._following(decisions[-1]) if decisions else ()

    def _following(self, last: Decision) -> Sequence[PodInCycle]:
        coming = self._coming[self.settled :]
        if not coming or self._batches == MOST_BATCHES or not self._goes_on(last):
            return ()
        if self._cycle.searches_nodes(coming[0]):
            return ()
        return self._cycle.together(coming)

    def _goes_on(self, last: Decision) -> bool:
        """Whether the table shows all that follows from the decision that ended a batch."""
        if self._cycle.searches_nodes(last.pod):
            return False
        if last.node_name is not None:
            return bool(last.pod.info.facts.nominated_node_name)
        result, facts = last.post_filter, last.pod.info.facts
        if result is None:
            return False
        if result.chosen is None:
            # Nothing follows for a pod that stays without a nomination.
            return not (result.nominated_node or facts.nominated_node_name)
        chosen = result.chosen
        return self._tentative.preempt(last.pod, chosen.node_name, chosen.victims)
