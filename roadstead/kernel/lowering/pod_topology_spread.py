"""PodTopologySpread as counters: one for each constraint, with the pods that it counts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.evaluation import Evaluation
from roadstead.kernel.counter_arrays import HARD, HOST, SOFT, ClassCounters, TermCounter
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable
from roadstead.plugins.matching_pods import included, with_all_keys
from roadstead.plugins.pod_topology_spread import DomainCounts, PodTopologySpread, SpreadCounts
from roadstead.plugins.pod_topology_spread_constraints import HOSTNAME, Spread, is_counted


def add_counters(counter_set: ClassCounters, evaluation: Evaluation) -> None:
    """Add the counters of a class, after PreFilter and PreScore."""
    first, spreads = len(counter_set.counters), list[Spread]()
    for plugin in evaluation.profile.filter:
        if isinstance(plugin, PodTopologySpread):
            spreads += _add_hard(counter_set, plugin, evaluation.table, evaluation.state)
    for each in evaluation.profile.score:
        is_skipped = each.plugin.name in evaluation.score_state.skipped
        if isinstance(each.plugin, PodTopologySpread) and not is_skipped:
            spreads += _add_soft(counter_set, each.plugin, evaluation.table, evaluation.score_state)
            counter_set.spread_weight = each.weight
    namespace = counter_set.pod_class.facts.namespace

    def additions_of(other: PodClass) -> Iterable[tuple[int, int]]:
        if other.facts.namespace == namespace and not other.facts.is_terminating:
            for counter, spread in enumerate(spreads, first):
                if is_counted(spread.selector) and spread.matches(other.labels):
                    yield counter, 1

    counter_set.additions_of.append(additions_of)


def _add_hard(
    counter_set: ClassCounters, plugin: PodTopologySpread, table: NodeTable, state: CycleState
) -> tuple[Spread, ...]:
    hard = plugin.constraints(counter_set.pod_class).hard
    if not hard:
        return ()
    counts = state.read(plugin.name, DomainCounts).counts
    # `included`: of each constraint, the rows whose pods it counts.
    rows = included(counter_set.pod_class.facts, hard, table, with_all_keys(hard, table))
    for spread, current, counted_rows in zip(hard, counts, rows, strict=True):
        # Upstream compares count + (1 if the pod itself counts) - minimum with maxSkew.
        skew = spread.max_skew - int(spread.matches(counter_set.pod_class.labels))
        counter = TermCounter(
            HARD, spread.topology_key, current, counted_rows, skew, spread.min_domains
        )
        counter_set.counters.append(counter)
    return hard


def _add_soft(
    counter_set: ClassCounters, plugin: PodTopologySpread, table: NodeTable, state: CycleState
) -> tuple[Spread, ...]:
    constraints = plugin.constraints(counter_set.pod_class)
    soft = constraints.soft
    counts = state.read(plugin.name, SpreadCounts).pods
    scored_rows = np.ones(len(table), dtype=np.bool_)
    if constraints.needs_all_keys:
        scored_rows = counter_set.scored_rows = with_all_keys(soft, table)
    rows = included(counter_set.pod_class.facts, soft, table, scored_rows)
    for spread, by_value, of_rows in zip(soft, counts, rows, strict=True):
        key, skew = spread.topology_key, spread.max_skew - 1
        if key == HOSTNAME:
            by_row = plugin.on_nodes(counter_set.pod_class, spread, table)
            counter_set.counters.append(TermCounter(HOST, key, by_row, None, skew))
        else:
            counter_set.counters.append(TermCounter(SOFT, key, by_value, of_rows, skew))
    return soft
