"""The parts of an explanation that terminal and page share: headline, ranks, scores, refusals.

An `Explanation` (`roadstead.cycle.explain`) has the names of all nodes; the feasible ones as
indices into `names`; scores and totals of the feasible nodes, in their order; and the names of the
best. If scoring failed (`score_error`), there are no totals, and the attempt fails, too
(`cycle_error`), unless only one node is feasible. `details` are added by plugins about the nodes
that they refused.

Of preemption, it has the candidates; the acceptable ones are equally good, and any of them may be
chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from roadstead.cycle.explain import Explanation, PluginScores
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.victims import Candidate
from roadstead.protocol.status import Code, Status

Mark = Literal["good", "wait", "bad", ""]


@dataclass(frozen=True, slots=True)
class HeadlineLine:
    """A line of the headline. mark: whether the pod can be scheduled, waits, or fails."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """The weighted scores of one plugin, by index into `Explanation.feasible`.

    is_constant: all feasible nodes have the same score, so the plugin does not affect the choice.
    """

    plugin: str
    weighted: tuple[int, ...]
    is_constant: bool


@dataclass(frozen=True, slots=True)
class RejectedNodes:
    """The nodes that one plugin filtered out for the same reasons; names sorted bytewise.

    plugin: "" if PreFilter excluded the nodes. may_preempt: preemption may help.
    """

    plugin: str
    reason: str
    may_preempt: bool
    nodes: tuple[str, ...]

    @property
    def text(self) -> str:
        text = ": ".join(part for part in (self.plugin, self.reason) if part)
        return f"{text} (preemption may help)" if self.may_preempt else text


def headline(explanation: Explanation) -> list[HeadlineLine]:
    """Return lines on whether the pod can be scheduled and where, or why not; obstacles first."""
    lines = []
    if explanation.is_terminating:
        lines.append(HeadlineLine("is being deleted: the scheduler skips it", "wait"))
    if not explanation.pre_enqueue.is_success:
        gate = status_text(explanation.pre_enqueue)
        lines.append(HeadlineLine(f"does not enter the queue: {gate}", "wait"))
    nodes, feasible = len(explanation.names), len(explanation.feasible)
    if explanation.cycle_error:
        lines.append(HeadlineLine(f"scheduling it fails: {explanation.cycle_error}", "bad"))
    elif feasible:
        # "Would be": a pod that is gated or being deleted is not attempted.
        verb = "would be" if lines else "are"
        lines.append(HeadlineLine(f"{feasible:,} of {nodes:,} nodes {verb} feasible", "good"))
        lines.append(HeadlineLine(_best(explanation)))
    else:
        lines.append(HeadlineLine("no node is feasible", "wait"))
        lines.append(HeadlineLine(explanation.message))
        lines += map(HeadlineLine, explanation.details)
        lines += _preemption(explanation.post_filter)
    if explanation.unsupported:
        why = explanation.unsupported
        lines.append(HeadlineLine(f"Whether preemption would help is not known: {why}"))
    return lines


def _best(explanation: Explanation) -> str:
    best = explanation.best
    if explanation.nominated:
        return f"{best[0]} is chosen: it is nominated, and other nodes are not compared"
    # Scoring failed; the attempt did not, so there is only one feasible node.
    if explanation.score_error:
        return f"{best[0]} is chosen: it is the only feasible node, and needs no score"
    if len(best) == 1:
        return f"{best[0]} has the highest total"
    return f"{len(best):,} nodes have the highest total; {best[0]} is the first of them by name"


def _preemption(result: PostFilterResult | None) -> list[HeadlineLine]:
    if result is None or result.chosen is None:
        return []
    pods = len(result.chosen.victims)
    equally_good = len(result.acceptable)
    victims = "1 pod is evicted" if pods == 1 else f"{pods:,} pods are evicted"
    choice = f", one of {equally_good:,} equally good nodes" if equally_good > 1 else ""
    return [
        HeadlineLine(f"Preemption would make room on {result.nominated_node}: {victims}{choice}")
    ]


def ranked(explanation: Explanation) -> list[int]:
    """Indices into `feasible` of the nodes with a total: the best first, equal ones by name."""
    best = set(explanation.best)
    totals = explanation.total.tolist()
    # The nominated node comes first even if its total is lower.
    names = [explanation.names[row] for row in explanation.feasible]
    return sorted(range(len(totals)), key=lambda index: (names[index] not in best, -totals[index]))


def score_columns(explanation: Explanation) -> list[ScoreColumn]:
    """Score columns of the plugins; the plugin whose scores differ most comes first."""
    columns = []
    for line in explanation.scores:
        if (weighted := weighted_scores(line)) is not None:
            columns.append(ScoreColumn(line.plugin, weighted, len(set(weighted)) == 1))
    return sorted(columns, key=lambda each: min(each.weighted) - max(each.weighted))


def weighted_scores(line: PluginScores) -> tuple[int, ...] | None:
    """The plugin's part of the total of each feasible node; None if it was skipped."""
    if line.normalized is None:
        return None
    scores: list[int] = (np.int64(line.weight) * line.normalized).tolist()
    return tuple(scores)


def refusals(explanation: Explanation) -> list[RejectedNodes]:
    """Filtered nodes grouped by plugin and reasons; the largest group comes first."""
    if not explanation.pre_filter.status.is_success:
        # PreFilter rejected the pod, so nodes have no statuses of their own.
        return [_refusal(explanation.pre_filter.status, explanation.names)]
    nodes: dict[Status, list[str]] = {}
    for name, status in zip(explanation.names, explanation.statuses, strict=True):
        if status is not None:
            # Plugins may return the same reasons in another order.
            ordered = Status(status.code, tuple(sorted(status.reasons)), status.plugin)
            nodes.setdefault(ordered, []).append(name)
    found = [_refusal(status, names) for status, names in nodes.items()]
    return sorted(found, key=lambda each: (-len(each.nodes), each.plugin, each.reason))


def _refusal(status: Status, names: Iterable[str]) -> RejectedNodes:
    may_preempt = status.code is Code.UNSCHEDULABLE
    return RejectedNodes(status.plugin, status.message, may_preempt, tuple(names))


def preemption_candidates(result: PostFilterResult) -> list[Candidate]:
    """The nodes that preemption considers: the acceptable ones first, then by name."""
    good = set(result.acceptable)
    return sorted(result.candidates, key=lambda each: (each.node_name not in good, each.node_name))


def status_text(status: Status) -> str:
    """`plugin: reasons` of a status."""
    return f"{status.plugin}: {status.message}"
