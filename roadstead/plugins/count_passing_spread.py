"""`count_passing_spread`: how many pods meet their spread constraints, placed one after another.

domains of each constraint, counted once  ──►  for each pod: within maxSkew?  ──►  count it

Only hard constraints (DoNotSchedule) matter; `Spread` is one constraint of a pod class (pods with
equal facts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Rows, Table
from roadstead.plugins.matching_pods import included, with_all_keys
from roadstead.plugins.pod_topology_spread_constraints import Spread

PodsOnRows = Callable[[PodClass, Spread, Table], I64]
"""Returns how many pods on each row a constraint of a pod counts: int64[row]."""


class _Domains:
    """The domains of one constraint of a class, updated as pods are placed.

    A domain is named by the code (a number) of its value of the topology label. counted: bool[row],
    the rows whose nodes the constraint's inclusion policies include. pods: int64[row], number of
    pods that the constraint counts. counts: int64[code], their sum in the domain. present:
    bool[code], the codes that some counted row has; only these are domains.
    """

    def __init__(self, spread: Spread, table: Table, counted: Bools, pods: I64) -> None:
        codes = table.label_codes(spread.topology_key)
        size = int(codes.max(initial=-1)) + 1
        self._spread = spread
        self._codes = codes
        self._counted = counted
        self.present = np.bincount(codes[counted], minlength=size) > 0
        weights = np.bincount(codes[counted], weights=pods[counted], minlength=size)
        self.counts = weights.astype(np.int64)
        self._has_min_domains = np.count_nonzero(self.present) >= spread.min_domains
        self._find_lowest()

    def _find_lowest(self) -> None:
        counts = self.counts[self.present]
        self._lowest = int(counts.min()) if len(counts) else 0
        self._domains_at_lowest = int(np.count_nonzero(counts == self._lowest))

    def is_within_skew(self, row: int, own: int) -> bool:
        """Whether a pod on a row is within maxSkew. own: 1 if the constraint counts the pod."""
        lowest = self._lowest if self._has_min_domains else 0
        return int(self.counts[self._codes[row]]) + own - lowest <= self._spread.max_skew

    def add(self, row: int) -> None:
        """Count a matching pod that is placed on a row."""
        if not self._counted[row]:
            return
        code = self._codes[row]
        before = int(self.counts[code])
        self.counts[code] = before + 1
        # The minimum changes only when the last domain that has it grows.
        if before == self._lowest:
            self._domains_at_lowest -= 1
            if not self._domains_at_lowest:
                self._find_lowest()


class _ClassConstraints:
    """The hard constraints of a class: their domains, and which of them count the pod itself."""

    def __init__(
        self, pod: PodClass, hard: Sequence[Spread], table: Table, pods_on_rows: PodsOnRows
    ) -> None:
        self._has_all_keys = with_all_keys(hard, table)
        rows = included(pod.facts, hard, table, self._has_all_keys)
        self.domains = [
            _Domains(spread, table, counted, pods_on_rows(pod, spread, table))
            for spread, counted in zip(hard, rows, strict=True)
        ]
        # By constraint: 1 if it counts the pod itself.
        self._own = [int(spread.matches(pod.labels)) for spread in hard]

    def are_met(self, row: int) -> bool:
        if not self._has_all_keys[row]:
            return False
        pairs = zip(self.domains, self._own, strict=True)
        return all(each.is_within_skew(row, own) for each, own in pairs)


def count_passing_spread(
    pods: Sequence[PodClass],
    rows: Rows,
    table: Table,
    hard_of: Mapping[PodClass, Sequence[Spread]],
    pods_on_rows: PodsOnRows,
) -> int:
    """Return how many of the first pods meet their constraints if placed on `rows` in this order.

    hard_of: the hard constraints of each class of the pods.
    """
    constraints_of = {
        pod_class: _ClassConstraints(pod_class, hard, table, pods_on_rows)
        for pod_class, hard in hard_of.items()
        if hard
    }
    # By class: the domains of those constraints, of any class, that count the pods of this class.
    counted_in = {
        pod_class: [
            domains
            for other, constraints in constraints_of.items()
            for spread, domains in zip(hard_of[other], constraints.domains, strict=True)
            if other.facts.namespace == pod_class.facts.namespace
            and spread.matches(pod_class.labels)
        ]
        for pod_class in hard_of
    }
    for index, (pod_class, row) in enumerate(zip(pods, rows.tolist(), strict=True)):
        own_constraints = constraints_of.get(pod_class)
        if own_constraints is not None and not own_constraints.are_met(row):
            return index
        for domains in counted_in[pod_class]:
            domains.add(row)
    return len(pods)
