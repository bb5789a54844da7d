"""MatchingPods: numbers of pods on each row that a selector matches, and their sums by domain.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/common.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roadstead.facts.pod import PodFacts
from roadstead.facts.selectors import LabelSelector, Requirement
from roadstead.facts.taints import tolerated
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Table
from roadstead.plugins.pod_topology_spread_constraints import Spread, is_counted
from roadstead.plugins.taint_toleration import HARD_EFFECTS

MAX_TABLES = 4
"""Tables whose counts are cached; the least recently used is dropped."""

MAX_SELECTORS = 256
"""Selectors per table whose counts are cached; the least recently used is dropped."""


def with_all_keys(spreads: Iterable[Spread], table: Table) -> Bools:
    """Return which rows have the topology key of every constraint: bool[row]."""
    rows = np.ones(len(table), dtype=np.bool_)
    for key in {each.topology_key for each in spreads}:
        rows &= table.label_codes(key) >= 0
    return rows


def included(
    facts: PodFacts, spreads: Sequence[Spread], table: Table, rows: Bools
) -> tuple[Bools, ...]:
    """Return for each constraint which of `rows` its node inclusion policies include: bool[row]."""
    matching = rows
    if any(each.honors_affinity for each in spreads):
        matching = rows & _matches_node_affinity(facts, table)
    tolerable = np.ones_like(rows)
    if any(each.honors_taints for each in spreads):
        tolerable = _tolerates(facts, table)
    return tuple(
        (matching if each.honors_affinity else rows) & (tolerable if each.honors_taints else True)
        for each in spreads
    )


def _matches_node_affinity(facts: PodFacts, table: Table) -> Bools:
    matching = np.ones(len(table), dtype=np.bool_)
    for key, value in facts.node_selector:
        matching &= table.match(Requirement(key, "In", (value,)))
    if facts.required_node_terms is not None:
        any_term = np.zeros(len(table), dtype=np.bool_)
        for term in facts.required_node_terms:
            any_term |= table.match_term(term)
        matching &= any_term
    return matching


def _tolerates(facts: PodFacts, table: Table) -> Bools:
    by_set = [
        all(
            taint.effect not in HARD_EFFECTS or tolerated(taint, facts.tolerations)
            for taint in taints
        )
        for taints in table.taint_sets
    ]
    return np.array(by_set, dtype=np.bool_)[table.taint_codes]


def sum_by_value(table: Table, key: str, rows: Bools, amounts: I64) -> dict[str, int]:
    """Sum `amounts` over `rows` by the value of the label `key`.

    Rows without the label count under "", together with rows whose label is empty: upstream reads a
    missing label as "".
    """
    values = table.label_values(key).values
    codes = table.label_codes(key)[rows] + 1
    present = np.flatnonzero(np.bincount(codes))
    sums: list[int] = np.bincount(codes, weights=amounts[rows])[present].astype(np.int64).tolist()
    # Codes are raised by 1, so that 0 is for rows without the label.
    raised = present.tolist()
    unlabelled = sums.pop(0) if raised[:1] == [0] else None
    result = dict(zip([values[each - 1] for each in raised if each], sums, strict=True))
    if unlabelled is not None:
        result[""] = result.get("", 0) + unlabelled
    return result


def amounts_by_row(table: Table, key: str, amounts: Mapping[str, int]) -> I64:
    """Return the amount for each row's value of the label `key`: int64[row]; 0 without one."""
    values = table.label_values(key)
    codes = table.label_codes(key)
    by_code = np.zeros(len(values) + 1, dtype=np.int64)
    if len(codes) < len(amounts):
        listed = np.unique(codes[codes >= 0])
        # Fewer rows than amounts: look up only the values of these rows.
        names = values.values
        by_code[listed] = [amounts.get(names[code], 0) for code in listed.tolist()]
    else:
        # The last index is for rows without the key (code -1), and for values that no row has.
        positions = np.fromiter(map(values.find, amounts), np.intp, len(amounts))
        by_code[positions] = np.fromiter(amounts.values(), np.int64, len(amounts))
        by_code[-1] = 0
    return by_code[codes]


def apply_moves(
    pod: PodClass,
    spreads: Sequence[Spread],
    counts: tuple[dict[str, int], ...],
    row: Table,
    moves: Mapping[PodClass, int],
) -> tuple[dict[str, int], ...]:
    """Return the counts per constraint and topology value after pods are moved to or from a row.

    moves: as in `with_pods_moved`. Returns `counts` itself if the number of matching pods stays the
    same for each selector. As upstream's updateWithPod, this also counts terminating pods and, for
    an empty selector, every pod. `MatchingPods`, from which `counts` are, counts neither.
    """
    namespace = pod.facts.namespace
    in_namespace = {other: n for other, n in moves.items() if other.facts.namespace == namespace}
    added = [
        sum(n for other, n in in_namespace.items() if each.matches(other.labels))
        for each in spreads
    ]
    if not any(added):
        return counts
    changed = []
    rows = included(pod.facts, spreads, row, with_all_keys(spreads, row))
    for spread, amount, before, counted in zip(spreads, added, counts, rows, strict=True):
        after = before
        if amount and counted[0]:
            key = spread.topology_key
            value = row.label_values(key).values[row.label_codes(key)[0]]
            after = {**before, value: before.get(value, 0) + amount}
        changed.append(after)
    return tuple(changed)


@dataclass(slots=True)
class _CachedCounts:
    """Counts by row, and the table's versions (of nodes, and of pods) for which they hold."""

    node_version: int
    version: int
    counts: I64


# By (namespace, selector).
_CountsBySelector = OrderedDict[tuple[str, LabelSelector], _CachedCounts]


class MatchingPods:
    """Cached numbers of pods on each row that a selector matches; only changed rows are recounted.

    terminating: whether terminating pods count, too. As upstream, an empty selector, which matches
    every pod, counts none.
    """

    def __init__(self, *, terminating: bool = False) -> None:
        self._terminating = terminating
        self._tables: OrderedDict[NodeTable, _CountsBySelector] = OrderedDict()

    def on_rows(self, table: Table, namespace: str, selector: LabelSelector | None) -> I64:
        """Return the matching pods of a namespace: int64[row], read-only for callers."""
        # Without a selector, or with an empty one, no pods count.
        if not is_counted(selector):
            return np.zeros(len(table), dtype=np.int64)
        assert selector is not None
        if not isinstance(table, NodeTable):
            return self._count(table, range(len(table)), namespace, selector)
        of_table = self._of_table(table)
        cached = of_table.get((namespace, selector))
        # Nodes were added, removed or changed: counts by row are outdated as a whole.
        if cached is None or cached.node_version != table.node_version:
            counts = self._count(table, range(len(table)), namespace, selector)
            cached = of_table[namespace, selector] = _CachedCounts(
                table.node_version, table.version, counts
            )
        elif cached.version != table.version:
            rows = table.rows_changed_since(cached.version)
            cached.counts[rows] = self._count(table, rows.tolist(), namespace, selector)
            cached.version = table.version
        of_table.move_to_end((namespace, selector))
        if len(of_table) > MAX_SELECTORS:
            of_table.popitem(last=False)
        return cached.counts

    def _of_table(self, table: NodeTable) -> _CountsBySelector:
        of_table = self._tables.setdefault(table, OrderedDict())
        self._tables.move_to_end(table)
        if len(self._tables) > MAX_TABLES:
            self._tables.popitem(last=False)
        return of_table

    def _count(
        self, table: Table, rows: Sequence[int], namespace: str, selector: LabelSelector
    ) -> I64:
        """Count matching pods on some rows; each class is matched once."""
        pods = [table.pods(row) for row in rows]
        classes: Iterable[PodClass] = table.class_counts
        if len(pods) < len(table.class_counts):
            classes = set().union(*pods)
        matching = {
            pod_class
            for pod_class in classes
            if pod_class.facts.namespace == namespace
            and (self._terminating or not pod_class.facts.is_terminating)
            and selector.matches(pod_class.labels)
        }
        if not matching:
            return np.zeros(len(pods), dtype=np.int64)
        # By row: class → number of pods.
        counts = [sum(map(on_row.__getitem__, on_row.keys() & matching)) for on_row in pods]
        return np.array(counts, dtype=np.int64)
