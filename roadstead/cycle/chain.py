"""Chain: batches that are decided one after another on a table that nothing else changes.

    batch ──► a pod tried to preempt, or a nominated one was placed ──► the table shows it ──► batch
      └── ended by anything else ──► the chain ends

A pod that preempts, or a nominated one that is placed, ends its batch, since results for the pods
behind it are out of date. The outcome of a preemption is known before the cache reports it: the
victims leave, and the pod is nominated. So the next batch begins immediately, and the messages of
all batches to the cache (pods to assume and to nominate, victims) are sent in one group
(docs/decisions, record 42).

No pod is evicted for pods that are not assumed yet: behind a placed pod, no pod preempts.

Upstream: pkg/scheduler/framework/preemption/executor.go (evictions run during the next cycle).
"""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.cycle.batch import Decision, PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.tentative import Tentative

MAX_BATCHES = 64
MAX_CHAIN_S = 1.0
"""Limits of a chain, in batches and (approximately) seconds: leases and changes of the cluster wait
for its end, and plugins may be slow."""


class Chain:
    """Choose the pods of each batch. decisions: those of all batches so far.

    processed: number of pods that these batches decided or, if no own node was feasible, passed on
    to all nodes (`partitions.py`). pods: those of the next batch; empty once the chain has ended.
    has_placed: a batch placed a pod, so that no later pod may preempt. first: the pods of the first
    batch. chain_pods: the first batch's pods and the pods that may follow; if empty, no other pods
    follow.
    """

    def __init__(
        self,
        builder: BatchBuilder,
        tentative: Tentative,
        first: Sequence[PodInCycle],
        chain_pods: Sequence[PodInCycle] = (),
    ) -> None:
        self.pods = first
        self.decisions: list[Decision] = []
        self.processed = 0
        self.has_placed = False
        self._builder = builder
        self._tentative = tentative
        self._chain_pods = chain_pods or first
        self._batches = 0
        self._first_pause_s: float | None = None

    def pause(self, now_s: float) -> None:
        """End the chain if it takes too long. Called between batches, while other messages wait."""
        if self._first_pause_s is None:
            self._first_pause_s = now_s
        elif now_s - self._first_pause_s > MAX_CHAIN_S:
            self.pods = ()

    def record_batch(self, decisions: Sequence[Decision], processed: int) -> None:
        """Record the outcome of `pods` and choose the next batch."""
        # 0: the first pod fits nowhere on a state that was read for an earlier batch (`scopes.py`).
        # The same pods are decided again after a new reading.
        if processed:
            self._builder.record_length(len(self.pods), processed)
        self._batches += 1
        self.decisions += decisions
        self.processed += processed
        self.has_placed |= any(each.node_name is not None for each in decisions)
        self.pods = self._following(decisions[-1]) if decisions else ()

    def _following(self, last: Decision) -> Sequence[PodInCycle]:
        chain_pods = self._chain_pods[self.processed :]
        if not chain_pods or self._batches == MAX_BATCHES or not self._show_consequences(last):
            return ()
        if self._builder.searches_nodes(chain_pods[0]):
            return ()
        return self._builder.next_batch(chain_pods)

    def _show_consequences(self, last: Decision) -> bool:
        """Apply the decision that ended a batch to the table; return whether all of it shows there.

        Only a preemption has to be applied: a placed pod is on the table already.
        """
        if self._builder.searches_nodes(last.pod):
            return False
        if last.node_name is not None:
            facts = last.pod.pod_class.facts
            return bool(facts.nominated_node_name) and not facts.may_bind_claims
        result, facts = last.post_filter, last.pod.pod_class.facts
        if result is None or result.deallocated:
            return False
        if result.chosen is None:
            # Without a nomination, before or after, the decision changes nothing on the table.
            return not (result.nominated_node or facts.nominated_node_name)
        chosen = result.chosen
        return self._tentative.preempt(last.pod, chosen.node_name, chosen.victims)
