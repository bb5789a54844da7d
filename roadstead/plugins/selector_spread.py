"""SelectorSpread: spreads pods of one service or controller over nodes, and more so over zones.

A pod's selector joins those of its Services and of its ReplicationController, ReplicaSet or
StatefulSet. count(node) and count(zone) are the matching pods there, over the feasible nodes:

    node part     100 * (max(count(node)) - count(node)) / max(count(node)), 100 when max is 0
    zone part     the same over zones
    score         1/3 node part + 2/3 zone part; for a node without zone, the node part

Pods with spread constraints of their own are skipped: PodTopologySpread scores them. There is no
NormalizeScore: the score depends on a row's zone, which a normalization of single numbers cannot
read. Off by default: PodTopologySpread's system defaults replaced it.

Upstream: framework/plugins/selectorspread/selector_spread.go of 1.22.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roadstead.config.plugin_args import PodTopologySpreadArgs
from roadstead.facts.pod import PodFacts
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import (
    MAX_NODE_SCORE,
    Effect,
    Feasible,
    Handle,
    PreScorePlugin,
    Reads,
    ScorePlugin,
)
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.plugins.matching_pods import MatchingPods
from roadstead.plugins.pod_topology_spread_constraints import SpreadSource
from roadstead.protocol.status import SKIP, SUCCESS, Status

MAX_CACHED_CLASSES = 4096
"""Pod classes whose selectors are cached; the least recently used is dropped."""
ZONE_WEIGHT = 2.0 / 3.0
"""Share of the zone part in the score (zoneWeighting)."""


@dataclass(frozen=True, slots=True)
class CountsByZone:
    """Matching pods on feasible nodes: the most on one node, and by zone, without zeros."""

    most: int
    zones: dict[str, int]


class SelectorSpread(PreScorePlugin, ScorePlugin):
    name = "SelectorSpread"
    reads = Reads.CLUSTER
    shares_by_shape = True
    unprepared_score = 'error reading "PreScoreSelectorSpread" from cycleState: not found'

    def __init__(self, handle: Handle) -> None:
        self._source = SpreadSource(PodTopologySpreadArgs(), handle.cluster)
        self._of_pod = lru_cache(MAX_CACHED_CLASSES)(self._compile)
        self._matching = MatchingPods()

    def _compile(self, pod: PodClass) -> LabelSelector | None:
        return self._selector(pod.facts)

    def _selector(self, facts: PodFacts) -> LabelSelector | None:
        """Return the pod's selector; None for a pod with spread constraints of its own."""
        return None if facts.spread_constraints else self._source.default_selector(facts)

    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        if self._of_pod(pod) is None:
            return SKIP
        rows = feasible()
        counts = self._counts(pod, table)[rows]
        sums = np.bincount(table.zone_codes[rows], weights=counts).astype(np.int64)
        zones = {table.zones[code]: int(sums[code]) for code in np.flatnonzero(sums).tolist()}
        # Nodes without a zone have the zone "".
        zones.pop("", None)
        state.write(self.name, CountsByZone(int(counts.max(initial=0)), zones))
        return SUCCESS

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        counts = state.read(self.name, CountsByZone)
        node_part = _inverse_share(self._counts(pod, table), counts.most)
        in_zones = np.array([counts.zones.get(zone, 0) for zone in table.zones], dtype=np.int64)
        most = max(counts.zones.values(), default=0)
        zone_part = _inverse_share(in_zones, most)[table.zone_codes]
        both = node_part * (1.0 - ZONE_WEIGHT) + ZONE_WEIGHT * zone_part
        has_zone = np.array([bool(zone) for zone in table.zones])[table.zone_codes]
        score: I64 = np.where(has_zone, both, node_part).astype(np.int64)
        return score

    def effect(self, placed: PodClass) -> Effect:
        """Return one effect for all pods: each may fill a node, and only feasible nodes count."""
        return Effect(None, self._has_selector)

    def _has_selector(self, pod: PodClass) -> bool:
        selector = self._of_pod(pod)
        return selector is not None and bool(selector.requirements)

    def sign(self, pod: PodFacts) -> Hashable:
        selector = self._selector(pod)
        if selector is None or not selector.requirements:
            return (selector,)
        return (selector, pod.namespace)

    def _counts(self, pod: PodClass, table: Table) -> I64:
        return self._matching.on_rows(table, pod.facts.namespace, self._of_pod(pod))


def _inverse_share(counts: I64, most: int) -> NDArray[np.float64]:
    """Map counts to scores, 0 to 100 and the highest count `most` to 0: float64[k]."""
    if not most:
        return np.full(len(counts), float(MAX_NODE_SCORE))
    return float(MAX_NODE_SCORE) * ((most - counts).astype(np.float64) / float(most))
