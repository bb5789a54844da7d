"""Which lines a class has, and what placed pods add to them: see `relation_arrays`.

What is counted so far comes from the summaries of the class; the table must hold all nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from roadstead.facts.selectors import LabelSelector
from roadstead.framework.evaluation import Evaluation, Summaries
from roadstead.framework.plugin import Plugin
from roadstead.kernel.relation_arrays import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI,
    HARD,
    HOST,
    SCORE,
    SOFT,
)
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.table import NodeTable
from roadstead.plugins.inter_pod_affinity import InterPodAffinity, PodCounts, TopologyScores
from roadstead.plugins.inter_pod_counts import Family, Relation
from roadstead.plugins.pod_topology_spread import DomainCounts, PodTopologySpread, SpreadCounts
from roadstead.plugins.pod_topology_spread_constraints import (
    HOSTNAME,
    Spread,
    included,
    is_counted,
    with_all_keys,
)

HANDLED: tuple[type[Plugin], ...] = (PodTopologySpread, InterPodAffinity)
"""Plugins whose answers the kernel finds for itself where it holds all nodes."""

KINDS = {
    Family.EXISTING_ANTI: EXISTING_ANTI,
    Family.AFFINITY: AFFINITY,
    Family.ANTI_AFFINITY: ANTI_AFFINITY,
    Family.SCORE: SCORE,
}


@dataclass(frozen=True, slots=True)
class Face:
    """What others see of a pod. info: one of the classes with it."""

    info: PodInfo

    @staticmethod
    def key(info: PodInfo) -> Hashable:
        facts = info.facts
        return (
            *(facts.namespace, facts.labels, facts.is_terminating),
            *(facts.pod_affinity, facts.pod_anti_affinity),
            *(facts.preferred_pod_affinity, facts.preferred_pod_anti_affinity),
        )


@dataclass(slots=True)
class Line:
    """One count by domain. counted: rows whose pods count, None for all.

    selector: of a spread constraint. before: what is counted so far, by topology value, or by row.
    """

    kind: int
    key: str
    before: Mapping[str, int] | I64
    counted: Bools | None = None
    skew: int = 0
    min_domains: int = 0
    selector: LabelSelector | None = None


@dataclass(slots=True)
class RelationOf:
    """All lines of some classes. scored: rows that spread scores, None for all."""

    info: PodInfo
    lines: list[Line] = field(default_factory=list)
    scored: Bools | None = None
    near_itself: bool = False
    near: InterPodAffinity | None = None
    spread_weight: int = 0
    near_weight: int = 0

    def effects(self, face: Face) -> list[tuple[int, int]]:
        """(line, amount) of what one pod of a face adds."""
        other, facts = face.info, face.info.facts
        amounts = dict(self._relation(other))
        found = []
        for place, line in enumerate(self.lines):
            if line.selector is not None:
                same = facts.namespace == self.info.facts.namespace and not facts.is_terminating
                if same and is_counted(line.selector) and line.selector.matches(other.labels):
                    found.append((place, 1))
            elif line.kind not in (HARD, SOFT, HOST):
                amount = amounts.get((line.kind, line.key), 0)
                if amount:
                    found.append((place, amount))
        return found

    def _relation(self, other: PodInfo) -> list[tuple[tuple[int, str], int]]:
        relation: Relation = () if self.near is None else self.near.relation(self.info, other)
        return [((KINDS[f], key), n) for (f, key), n in relation if f in KINDS]


def relation_key(evaluation: Evaluation) -> Hashable:
    """Equal for classes all of whose lines are the same."""
    facts = evaluation.pod.facts
    signs = tuple(
        plugin.sign(facts) for plugin in evaluation.profile.cross_node if type(plugin) in HANDLED
    )
    where = facts.node_selector, facts.required_node_terms, facts.tolerations
    return id(evaluation.profile), signs, where


def relation_of(
    evaluation: Evaluation, filters: Summaries, scores: Summaries, faces: Sequence[Face]
) -> RelationOf:
    """The lines of a class, after PreFilter and PreScore."""
    found = RelationOf(evaluation.pod)
    profile, skipped = evaluation.profile, evaluation.state.skip_score
    for plugin in profile.filter:
        if isinstance(plugin, PodTopologySpread):
            _add_hard(found, plugin, evaluation.table, filters)
        elif isinstance(plugin, InterPodAffinity):
            found.near = plugin
            _add_required(found, plugin, filters, faces)
    for each in profile.score:
        if isinstance(each.plugin, PodTopologySpread) and each.plugin.name not in skipped:
            _add_soft(found, each.plugin, evaluation.table, scores)
            found.spread_weight = each.weight
        elif isinstance(each.plugin, InterPodAffinity) and each.plugin.scores(found.info):
            found.near = each.plugin
            _add_preferred(found, each.plugin, scores, faces)
            found.near_weight = each.weight
    return found


def _add_hard(
    found: RelationOf, plugin: PodTopologySpread, table: NodeTable, filters: Summaries
) -> None:
    hard = plugin.constraints(found.info).hard
    if not hard:
        return
    summary = filters.get(plugin.name)
    counts = summary.counts if isinstance(summary, DomainCounts) else ({},) * len(hard)
    rows = included(found.info.facts, hard, table, with_all_keys(hard, table))
    for spread, before, counted in zip(hard, counts, rows, strict=True):
        skew = spread.max_skew - int(spread.matches(found.info.labels))
        line = Line(HARD, spread.topology_key, before, counted, skew, spread.min_domains)
        line.selector = _selector(spread)
        found.lines.append(line)


def _add_soft(
    found: RelationOf, plugin: PodTopologySpread, table: NodeTable, scores: Summaries
) -> None:
    constraints = plugin.constraints(found.info)
    soft = constraints.soft
    summary = scores.get(plugin.name)
    counts = summary.pods if isinstance(summary, SpreadCounts) else ({},) * len(soft)
    counted = np.ones(len(table), dtype=np.bool_)
    if constraints.needs_all_keys:
        counted = found.scored = with_all_keys(soft, table)
    rows = included(found.info.facts, soft, table, counted)
    for spread, by_value, here in zip(soft, counts, rows, strict=True):
        is_host = spread.topology_key == HOSTNAME
        line = Line(
            HOST if is_host else SOFT,
            spread.topology_key,
            plugin.on_nodes(found.info, spread, table) if is_host else by_value,
            None if is_host else here,
            spread.max_skew - 1,
            selector=_selector(spread),
        )
        found.lines.append(line)


def _selector(spread: Spread) -> LabelSelector:
    """A constraint without a selector matches nothing."""
    return spread.selector if spread.selector is not None else LabelSelector(())


def _add_required(
    found: RelationOf, plugin: InterPodAffinity, filters: Summaries, faces: Sequence[Face]
) -> None:
    summary = filters.get(plugin.name)
    before = summary if isinstance(summary, PodCounts) else PodCounts({}, {}, {})
    near, away = plugin.required_keys(found.info)
    found.near_itself = plugin.is_near_itself(found.info)
    others = _keys(found, faces, EXISTING_ANTI)
    for kind, keys, counts in (
        (EXISTING_ANTI, (*before.existing_anti, *others), before.existing_anti),
        (AFFINITY, near, before.affinity),
        (ANTI_AFFINITY, away, before.anti_affinity),
    ):
        found.lines += [Line(kind, key, counts.get(key, {})) for key in dict.fromkeys(keys)]


def _add_preferred(
    found: RelationOf, plugin: InterPodAffinity, scores: Summaries, faces: Sequence[Face]
) -> None:
    summary = scores.get(plugin.name)
    before = summary.scores if isinstance(summary, TopologyScores) else {}
    keys = dict.fromkeys((*before, *_keys(found, faces, SCORE)))
    found.lines += [Line(SCORE, key, before.get(key, {})) for key in keys]


def _keys(found: RelationOf, faces: Sequence[Face], kind: int) -> list[str]:
    """Topology keys of a kind to which pods of some face may add."""
    return [key for face in faces for (each, key), _ in found._relation(face.info) if each == kind]
