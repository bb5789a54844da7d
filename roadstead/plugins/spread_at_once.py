"""Hard topology spread of pods that come one after another: whether each keeps the skew.

    domains of each constraint, counted once  ──►  pod by pod: is there room?  ──►  count it

What PodTopologySpread would say of each pod after those before it had come, without evaluating
anything anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.table import Rows, Table
from roadstead.plugins.pod_topology_spread_constraints import (
    Spread,
    included,
    label_codes,
    with_all_keys,
)

OnNodes = Callable[[PodInfo, Spread, Table], I64]
"""How many pods on each row a constraint of a pod counts: int64[row]."""


class _Domains:
    """The domains of one constraint of a class, by label code, as pods come to them.

    counts: int64[code]. present: the codes that some counted row has.
    """

    def __init__(self, spread: Spread, table: Table, counted: Bools, pods: I64) -> None:
        codes = label_codes(table, spread.topology_key)
        size = int(codes.max(initial=-1)) + 1
        self._spread = spread
        self._codes = codes
        self._counted = counted
        self.present = np.bincount(codes[counted], minlength=size) > 0
        weights = np.bincount(codes[counted], weights=pods[counted], minlength=size)
        self.counts = weights.astype(np.int64)
        self._is_enough = np.count_nonzero(self.present) >= spread.min_domains
        self._find_lowest()

    def _find_lowest(self) -> None:
        counts = self.counts[self.present]
        self._lowest = int(counts.min()) if len(counts) else 0
        self._at_lowest = int(np.count_nonzero(counts == self._lowest))

    def has_room(self, row: int, own: int) -> bool:
        """Whether a pod that counts `own` for itself keeps the skew on a row."""
        lowest = self._lowest if self._is_enough else 0
        return int(self.counts[self._codes[row]]) + own - lowest <= self._spread.max_skew

    def come(self, row: int) -> None:
        """A pod that counts came to a row."""
        if not self._counted[row]:
            return
        code = self._codes[row]
        was = int(self.counts[code])
        self.counts[code] = was + 1
        if was == self._lowest:
            self._at_lowest -= 1
            if not self._at_lowest:
                self._find_lowest()


class _Class:
    """A class with hard constraints: its domains, and whether each counts the pod itself."""

    def __init__(
        self, pod: PodInfo, hard: Sequence[Spread], table: Table, on_nodes: OnNodes
    ) -> None:
        self._keys = with_all_keys(hard, table)
        rows = included(pod.facts, hard, table, self._keys)
        self.domains = [
            _Domains(spread, table, counted, on_nodes(pod, spread, table))
            for spread, counted in zip(hard, rows, strict=True)
        ]
        self._own = [int(spread.matches(pod.labels)) for spread in hard]

    def has_room(self, row: int) -> bool:
        if not self._keys[row]:
            return False
        pairs = zip(self.domains, self._own, strict=True)
        return all(each.has_room(row, own) for each, own in pairs)


def keep_skew(
    pods: Sequence[PodInfo],
    rows: Rows,
    table: Table,
    hard_of: Mapping[PodInfo, Sequence[Spread]],
    on_nodes: OnNodes,
) -> bool:
    """Whether each of the pods, which come to `rows` in this order, keeps its constraints.

    hard_of: by class, of all classes of the pods.
    """
    classes = {info: _Class(info, hard, table, on_nodes) for info, hard in hard_of.items() if hard}
    counted_by = {
        info: [
            domains
            for other, found in classes.items()
            for spread, domains in zip(hard_of[other], found.domains, strict=True)
            if other.facts.namespace == info.facts.namespace and spread.matches(info.labels)
        ]
        for info in hard_of
    }
    for info, row in zip(pods, rows.tolist(), strict=True):
        found = classes.get(info)
        if found is not None and not found.has_room(row):
            return False
        for domains in counted_by[info]:
            domains.come(row)
    return True
