"""Which classes the kernel can decide, and what it must know of one.

A class is covered where every plugin that is not skipped for it either reads NODE facts only, so
that its answers stand still while pods are placed, or is one of those that are compiled.
"""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.facts.pod import HostPort
from roadstead.facts.resources import is_scalar_resource
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.plugin import MAX_NODE_SCORE, Plugin, Reads
from roadstead.framework.profile import WeightedScore
from roadstead.kernel.arrays import LEAST, MOST, OFF, RATIO
from roadstead.nodes.columns import I64
from roadstead.nodes.interning import Interner
from roadstead.nodes.pod_info import CPU, MEMORY, PodInfo
from roadstead.plugins.node_ports import NodePorts
from roadstead.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from roadstead.plugins.node_resources_fit import NodeResourcesFit
from roadstead.plugins.resource_scoring import AllocationScorer, RatioScorer
from roadstead.protocol.status import Code

HIGHEST_TOTAL = 2**30
"""Weights that could lead above this are left to the reference: totals are int32 here."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How NodeResourcesFit scores a class.

    lines: (resource, column of nonzero or -1, asked, weight).
    shape: int64[101] of RequestedToCapacityRatio.
    """

    strategy: int = OFF
    weight: int = 0
    lines: tuple[tuple[int, int, int, int], ...] = ()
    shape: I64 | None = None


@dataclass(frozen=True, slots=True)
class ClassSpec:
    """What a class asks for, as numbers.

    wants, adds: (resource, amount). balanced: weight of BalancedAllocation, None where it does not
    score; its lines: (resource, asked).
    """

    wants: tuple[tuple[int, int], ...]
    adds: tuple[tuple[int, int], ...]
    ports: tuple[HostPort, ...]
    fit: Fit
    balanced: int | None
    balanced_lines: tuple[tuple[int, int], ...]


def why_not(evaluation: Evaluation, handled: tuple[type[Plugin], ...]) -> str:
    """Why a class, after PreFilter and PreScore, is left to the reference; "" if it is covered.

    handled: plugins that look across nodes and are found by the kernel itself.
    """
    if not evaluation.pre_filter.status.is_success:
        return "rejected by PreFilter"
    if not evaluation.pre_score.is_success:
        return "rejected by PreScore"
    profile, state = evaluation.profile, evaluation.state
    if not profile.score:
        return "no score plugins"
    for plugin in profile.filter:
        if plugin.name not in state.skip_filter and not _is_known(plugin, handled):
            return plugin.name
    for each in profile.score:
        if each.plugin.name not in state.skip_score and not _is_known(each.plugin, handled):
            return each.plugin.name
    if _has_failed(evaluation):
        return "a Filter failed"
    kinds = {type(plugin) for plugin in profile.filter}
    if NodeResourcesFit not in kinds:
        return "no NodeResourcesFit in Filter"
    if NodePorts not in kinds:
        # Pods of one signature could hold different ports then.
        return "no NodePorts in Filter"
    if evaluation.pod.facts.nominated_node_name:
        return "nominated"
    if sum(each.weight for each in profile.score) * MAX_NODE_SCORE > HIGHEST_TOTAL:
        return "weights"
    return ""


def _has_failed(evaluation: Evaluation) -> bool:
    codes = evaluation.fixed()[0]
    failed = [k for k, each in enumerate(evaluation.statuses, 1) if each.code is Code.ERROR]
    return any((codes == code).any() for code in failed)


def _is_known(plugin: Plugin, handled: tuple[type[Plugin], ...]) -> bool:
    known = (NodeResourcesFit, NodePorts, NodeResourcesBalancedAllocation, *handled)
    return type(plugin) in known or plugin.reads is Reads.NODE


class SpecMaker:
    """What classes of one evaluation ask for: all that does not hang on amounts is found once."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._resources = evaluation.table.classes.resources
        self._ignored: frozenset[int] = frozenset()
        self._fit: WeightedScore | None = None
        self._balanced: WeightedScore | None = None
        names = self._resources.values
        for plugin in evaluation.profile.filter:
            if isinstance(plugin, NodeResourcesFit):
                asked = (code for code, _ in evaluation.pod.asked)
                self._ignored = frozenset(c for c in asked if plugin.is_ignored(names[c]))
        for each in evaluation.profile.score:
            if each.plugin.name in evaluation.state.skip_score:
                continue
            if isinstance(each.plugin, NodeResourcesFit):
                self._fit = each
            elif isinstance(each.plugin, NodeResourcesBalancedAllocation):
                self._balanced = each

    def of(self, pod: PodInfo) -> ClassSpec:
        """What a class asks for, of the evaluation's kind."""
        asked = pod.asked
        wants = asked if not self._ignored else tuple(e for e in asked if e[0] not in self._ignored)
        fit = Fit() if self._fit is None else _fit(pod, self._resources, self._fit)
        weight = None if self._balanced is None else self._balanced.weight
        lines = (
            () if self._balanced is None else _balanced_lines(pod, self._resources, self._balanced)
        )
        return ClassSpec(wants, asked, pod.facts.host_ports, fit, weight, lines)


def _fit(pod: PodInfo, resources: Interner[str], each: WeightedScore) -> Fit:
    assert isinstance(each.plugin, NodeResourcesFit)
    scorer = each.plugin.scorer
    assert isinstance(scorer, (AllocationScorer, RatioScorer))
    lines = []
    for resource in scorer.resources:
        asked = pod.scored.get(resource.name, 0)
        if asked or not is_scalar_resource(resource.name):
            code = resources.code(resource.name)
            column = code if code in (CPU, MEMORY) else -1
            lines.append((code, column, asked, resource.weight))
    if isinstance(scorer, RatioScorer):
        return Fit(RATIO, each.weight, tuple(lines), scorer.score_at)
    return Fit(MOST if scorer.most else LEAST, each.weight, tuple(lines))


def _balanced_lines(
    pod: PodInfo, resources: Interner[str], each: WeightedScore
) -> tuple[tuple[int, int], ...]:
    assert isinstance(each.plugin, NodeResourcesBalancedAllocation)
    lines = []
    for resource in each.plugin.resources:
        asked = pod.request_of.get(resource.name, 0)
        if asked or not is_scalar_resource(resource.name):
            lines.append((resources.code(resource.name), asked))
    return tuple(lines)
