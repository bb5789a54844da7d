"""PodTopologySpread as counters: one for each constraint, with the pods that it counts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.evaluation import Evaluation
from roadstead.kernel.relation_arrays import HARD, HOST, SOFT, RelationOf, TermCounter
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable
from roadstead.plugins.matching_pods import included, with_all_keys
from roadstead.plugins.pod_topology_spread import DomainCounts, PodTopologySpread, SpreadCounts
from roadstead.plugins.pod_topology_spread_constraints import HOSTNAME, Spread, is_counted


def add_counters(found: RelationOf, evaluation: Evaluation) -> None:
    """Add the counters of a class, after PreFilter and PreScore."""
    first, spreads = len(found.counters), list[Spread]()
    for plugin in evaluation.profile.filter:
        if isinstance(plugin, PodTopologySpread):
            spreads += _add_hard(found, plugin, evaluation.table, evaluation.state)
    for each in evaluation.profile.score:
        is_skipped = each.plugin.name in evaluation.score_state.skipped
        if isinstance(each.plugin, PodTopologySpread) and not is_skipped:
            spreads += _add_soft(found, each.plugin, evaluation.table, evaluation.score_state)
            found.spread_weight = each.weight
    namespace = found.pod_class.facts.namespace

    def adds(other: PodClass) -> Iterable[tuple[int, int]]:
        if other.facts.namespace == namespace and not other.facts.is_terminating:
            for counter, spread in enumerate(spreads, first):
                if is_counted(spread.selector) and spread.matches(other.labels):
                    yield counter, 1

    found.adds.append(adds)


def _add_hard(
    found: RelationOf, plugin: PodTopologySpread, table: NodeTable, state: CycleState
) -> tuple[Spread, ...]:
    hard = plugin.constraints(found.pod_class).hard
    if not hard:
        return ()
    counts = state.read(plugin.name, DomainCounts).counts
    rows = included(found.pod_class.facts, hard, table, with_all_keys(hard, table))
    for spread, before, counted in zip(hard, counts, rows, strict=True):
        # Upstream compares count + (1 if the pod itself counts) - minimum with maxSkew.
        skew = spread.max_skew - int(spread.matches(found.pod_class.labels))
        counter = TermCounter(HARD, spread.topology_key, before, counted, skew, spread.min_domains)
        found.counters.append(counter)
    return hard


def _add_soft(
    found: RelationOf, plugin: PodTopologySpread, table: NodeTable, state: CycleState
) -> tuple[Spread, ...]:
    constraints = plugin.constraints(found.pod_class)
    soft = constraints.soft
    counts = state.read(plugin.name, SpreadCounts).pods
    counted = np.ones(len(table), dtype=np.bool_)
    if constraints.needs_all_keys:
        counted = found.scored = with_all_keys(soft, table)
    rows = included(found.pod_class.facts, soft, table, counted)
    for spread, by_value, of_rows in zip(soft, counts, rows, strict=True):
        key, skew = spread.topology_key, spread.max_skew - 1
        if key == HOSTNAME:
            by_row = plugin.on_nodes(found.pod_class, spread, table)
            found.counters.append(TermCounter(HOST, key, by_row, None, skew))
        else:
            found.counters.append(TermCounter(SOFT, key, by_value, of_rows, skew))
    return soft
