"""`count_passing_affinity`: how many pods may be placed one after another by inter-pod affinity.

Pods are related if a term of one matches the other. A counter, for one family of terms and one
topology key (`term_relations`), counts the pods in each domain that are related to a class. A
relation of two classes is what one pod of the second adds to each counter of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from roadstead.nodes.columns import I32, I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Rows, Table
from roadstead.plugins.inter_pod_counts import InterPodCounts
from roadstead.plugins.term_relations import CounterKey, Family

ANTI_FAMILIES = (Family.EXISTING_ANTI, Family.ANTI_AFFINITY)
"""A domain admits a pod if its counters of these families are 0 and those of AFFINITY are not."""

_REQUIRED = (*ANTI_FAMILIES, Family.AFFINITY)


MAX_CLASSES = 16
"""Classes that are compared pairwise; for more the result is 0, as the work is quadratic."""


class _Sums:
    """One counter of a class by domain, updated as pods are placed.

    codes: int32[row], the label code of each row's domain. by_code: int64[code], related pods.
    related_on_row: int64[row], the counter's value on each row; None if it is 0 on all.
    """

    __slots__ = ("by_code", "codes", "is_anti")

    def __init__(self, counter: CounterKey, related_on_row: I64 | None, codes: I32) -> None:
        family, _ = counter
        self.is_anti = family in ANTI_FAMILIES
        self.codes = codes
        size = int(codes.max(initial=-1)) + 1
        self.by_code: I64 = np.zeros(size, dtype=np.int64)
        if related_on_row is not None:
            has_key = codes >= 0
            sums = np.bincount(codes[has_key], weights=related_on_row[has_key], minlength=size)
            self.by_code = sums.astype(np.int64)

    def admits(self, row: int) -> bool:
        """Whether the counter admits a pod of the class on a row.

        Filter's exception for a first pod (`FilterState.is_first`), whose affinity terms match only
        itself, is left out.
        """
        code = self.codes[row]
        has_related = code >= 0 and self.by_code[code] > 0
        return bool(not has_related if self.is_anti else has_related)

    def add(self, row: int, pods: int) -> None:
        code = self.codes[row]
        if code >= 0:
            self.by_code[code] += pods


def count_passing_affinity(
    pods: Sequence[PodClass],
    rows: Rows,
    table: Table,
    counts_of: Mapping[PodClass, InterPodCounts],
) -> int:
    """Return how many of the first pods pass Filter if placed on `rows` in this order.

    counts_of: the counters of each class of the pods (`InterPodCounts.on_rows`: their values on
    each row); no class has invalid terms. The result may be too low: there may be too many classes
    to compare, and a first pod that only matches its own affinity terms is not admitted.
    """
    # If no class has terms, none of these pods adds to a counter of another class.
    related = counts_of if any(any(each.pod.terms.groups) for each in counts_of.values()) else {}
    if len(related) > MAX_CLASSES:
        return 0
    counters: dict[PodClass, dict[CounterKey, _Sums]] = {}
    for pod_class, counts in counts_of.items():
        related_on_rows = counts.on_rows(table)
        wanted = {counter for counter in related_on_rows if counter[0] in _REQUIRED}
        for other in related:
            wanted |= {
                counter for counter, _ in counts.relation_to(other) if counter[0] in _REQUIRED
            }
        # Also affinity terms that match no pod: their sum of 0 refuses the node.
        wanted |= {(Family.AFFINITY, each.topology_key) for each in counts.pod.terms.affinity}
        counters[pod_class] = {
            counter: _Sums(counter, related_on_rows.get(counter), table.label_codes(counter[1]))
            for counter in wanted
        }
    if not any(counters.values()):
        return len(pods)
    added_by = {pod_class: _added_by(pod_class, related, counters) for pod_class in counts_of}
    for index, (pod_class, row) in enumerate(zip(pods, rows.tolist(), strict=True)):
        if not all(sums.admits(row) for sums in counters[pod_class].values()):
            return index
        for sums, amount in added_by[pod_class]:
            sums.add(row, amount)
    return len(pods)


def _added_by(
    pod_class: PodClass,
    counts_of: Mapping[PodClass, InterPodCounts],
    counters: Mapping[PodClass, Mapping[CounterKey, _Sums]],
) -> list[tuple[_Sums, int]]:
    """Return what one pod of a class adds to the sums of all classes: (sums, amount)."""
    return [
        (counters[other][counter], amount)
        for other, counts in counts_of.items()
        for counter, amount in counts.relation_to(pod_class)
        if counter in counters[other]
    ]
