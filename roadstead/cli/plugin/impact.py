"""The impact of a plugin on the sample fleets: refused nodes, scores, and changed placements.

The other checks of `roadstead plugin test` compare answers, so they pass even if the plugin never
had to decide anything. The checks here warn about that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roadstead.cli.plugin.outcome import Check, CheckOutcome, failed_check
from roadstead.cli.plugin.play import play_each
from roadstead.cli.plugin.plugin_under_test import PluginUnderTest, answers_of
from roadstead.cli.plugin.samples import SampleFleet
from roadstead.facts.pod import PodFacts
from roadstead.framework.evaluation import Evaluation
from roadstead.local.decision_paths import PlainPath

FILTERS = frozenset({"preFilter", "filter"})


@dataclass(frozen=True, slots=True)
class PodImpact:
    """The impact of a plugin on one pod, just before the pod is decided.

    refused, passed, scored: numbers of nodes. is_ranked: whether the scores differ.
    node_with_plugin, node_without_plugin: the chosen node, or None.
    """

    refused: int
    passed: int
    scored: int
    is_ranked: bool
    node_with_plugin: str | None
    node_without_plugin: str | None


def impact_checks(subject: PluginUnderTest, fleets: Sequence[SampleFleet]) -> list[Check]:
    """Return the checks of Filter, Score and placements over all fleets.

    After the plugin's first exception: only one failed check, with this exception.
    """
    pods: list[PodImpact] = []
    for fleet in fleets:
        try:
            pods += pod_impacts(subject, fleet)
        except Exception as failure:
            # The plugin is the user's: any exception is a finding.
            return [failed_check("placements", fleet, failure)]
    checks = [_placements_check(pods)]
    if "score" in subject.points:
        checks.insert(0, _score_check(pods))
    if subject.points & FILTERS:
        checks.insert(0, _filter_check(pods))
    return checks


def pod_impacts(subject: PluginUnderTest, fleet: SampleFleet) -> Iterator[PodImpact]:
    """Schedule the fleet's pods in order, and yield the plugin's impact on each of them."""
    # Pod by pod, by the plugins alone: the reference path.
    path = PlainPath(subject.profiles_with)
    only_this_plugin = subject.only_this_plugin(path.classes)
    # Per pod: numbers of refused and passed nodes, and the scores of the passed ones.
    answers_before: list[tuple[int, int, tuple[int, ...]]] = []

    def record_answers(facts: PodFacts) -> None:
        answered = answers_of(
            Evaluation(only_this_plugin, path.classes.pod_class(facts), path.table)
        )
        passed = sum(refusal == "" for refusal in answered.refusals)
        answers_before.append((len(path.table) - passed, passed, answered.scores or ()))

    outcomes_with = play_each(path, fleet, record_answers)
    outcomes_without = play_each(PlainPath(subject.profiles_without), fleet)
    for (refused, passed, scores), with_plugin, without_plugin in zip(
        answers_before, outcomes_with, outcomes_without, strict=True
    ):
        is_ranked = len(set(scores)) > 1
        nodes = with_plugin.node_name, without_plugin.node_name
        yield PodImpact(refused, passed, len(scores), is_ranked, *nodes)


def _filter_check(pods: Sequence[PodImpact]) -> Check:
    answered = sum(each.refused + each.passed for each in pods)
    refused = sum(each.refused for each in pods)
    affected = sum(each.refused > 0 for each in pods)
    if not refused:
        text = (
            "the plugin refused no node, so no refusal was checked. Add a pod (--pods) or a node "
            "(--cluster) that it should refuse"
        )
        return Check("filter", CheckOutcome.WARNING, text, cases=answered)
    if refused == answered:
        text = (
            "the plugin refused every node for every pod. Add a pod (--pods) or a node (--cluster) "
            "that it should accept"
        )
        return Check("filter", CheckOutcome.WARNING, text, cases=answered)
    text = f"refuses nodes for {affected:,} of {len(pods):,} pods, {refused:,} nodes in total"
    return Check("filter", CheckOutcome.OK, text, cases=answered)


def _score_check(pods: Sequence[PodImpact]) -> Check:
    scored = sum(each.scored for each in pods)
    ranked = sum(each.is_ranked for each in pods)
    if not scored:
        text = (
            "the plugin scored no node: it skipped every pod, or refused every node. Add a pod "
            "(--pods) that it should score"
        )
        return Check("score", CheckOutcome.WARNING, text, cases=scored)
    if not ranked:
        text = (
            "for each pod, the scores of all nodes were equal, so they decide nothing. Add "
            "nodes (--cluster) or a pod (--pods) for which the scores should differ"
        )
        return Check("score", CheckOutcome.WARNING, text, cases=scored)
    text = f"scores differ between nodes for {ranked:,} of {len(pods):,} pods"
    return Check("score", CheckOutcome.OK, text, cases=scored)


def _placements_check(pods: Sequence[PodImpact]) -> Check:
    moved = sum(
        each.node_with_plugin != each.node_without_plugin and each.node_with_plugin is not None
        for each in pods
    )
    lost = sum(
        each.node_with_plugin is None and each.node_without_plugin is not None for each in pods
    )
    if not moved + lost:
        text = "the plugin changes no placement"
    else:
        text = f"placed on another node than without the plugin: {moved:,} of {len(pods):,} pods"
        text += f"; on no node: {lost:,}" if lost else ""
    return Check("placements", CheckOutcome.OK, text, cases=len(pods))
