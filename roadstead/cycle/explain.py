"""Explain: every node's result for one pod: the refusing plugin and why, or scores and total.

`Explanation.as_recorded()` has the form of the recorded decisions of kube-scheduler (tests/golden).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.class_scores import lowest_priority, refused_nodes
from roadstead.cycle.preempting import dry_run_to_make, post_filter_result
from roadstead.extenders.sequence import EXTENDER
from roadstead.facts.pod import Pod
from roadstead.framework.diagnosis import Diagnosis, excluded_status
from roadstead.framework.evaluation import EXCLUDED, Evaluation
from roadstead.framework.failures import normalize_failure, out_of_range
from roadstead.framework.found_nodes import SearchResult
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import IGNORED, Extremes
from roadstead.framework.post_filter import refusal_details
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.framework.profile import Profile, WeightedScore
from roadstead.framework.tie_break import TieBreak
from roadstead.framework.victims import DryRun, DryRunResult
from roadstead.nodes.columns import I64
from roadstead.nodes.table import Rows
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SUCCESS, Code, Status

Json = dict[str, object]

FIRST = TieBreak("first")
"""The tie-break of the recorded decisions of kube-scheduler (tests/golden)."""


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores. raw, normalized: int64[feasible], None if it was skipped."""

    plugin: str
    weight: int
    raw: I64 | None
    normalized: I64 | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every node's result for a pod. names: sorted bytewise.

    statuses: by node, in the order of `names`; None for a feasible node, a status without plugin
        for one that is excluded because PreFilter restricted the pod to other nodes.
    feasible: indices into `names`. total: int64[feasible].
    nominated: the nominated node, if it is feasible. cycle_error: why the attempt fails.
    score_error: why scoring fails, which fails the attempt only if nodes must be compared.
    is_terminating: the pod is being deleted, and is never tried.
    dry_run: the dry run that PostFilter needs (see `with_post_filter`).
    post_filter: None if it did not run. unsupported: the plugin of PostFilter that does not support
        the pod, and the field because of which it does not; "" for none.
    details: what plugins add about the nodes that they refused.
    """

    pod_key: str
    names: tuple[str, ...]
    pre_enqueue: Status
    pre_filter: PreFilterOutcome
    pre_score_skipped: tuple[str, ...]
    statuses: tuple[Status | None, ...]
    feasible: Rows
    scores: tuple[PluginScores, ...]
    total: I64
    nominated: str
    cycle_error: str
    diagnosis: Diagnosis
    score_error: str = ""
    is_terminating: bool = False
    dry_run: DryRun | None = None
    post_filter: PostFilterResult | None = None
    unsupported: str = ""
    details: tuple[str, ...] = ()

    @property
    def best(self) -> list[str]:
        """All nodes with the highest total, or the nominated one if feasible, or the only one."""
        if self.cycle_error:
            return []
        if self.nominated:
            return [self.nominated]
        # Scoring failed, but not the attempt: only one node is feasible.
        if len(self.total) < len(self.feasible):
            return [self.names[row] for row in self.feasible]
        if not len(self.total):
            return []
        return [self.names[row] for row in self.feasible[self.total == self.total.max()]]

    @property
    def message(self) -> str:
        """The text of the FailedScheduling event."""
        status = SUCCESS if self.post_filter is None else self.post_filter.status
        suffix = "" if status.is_success else status.message
        return self.diagnosis.message(suffix)

    def as_recorded(self) -> Json:
        """Return the fields of a decision in the form of the recordings of kube-scheduler.

        A test compares both. `postFilter.unsupported` is present if `unsupported` is set.
        """
        entry: Json = {"pod": self.pod_key}
        if not self.pre_enqueue.is_success:
            entry["preEnqueue"] = _status(self.pre_enqueue)
        outcome = self.pre_filter
        names = None if outcome.node_names is None else sorted(outcome.node_names)
        entry["preFilter"] = {
            "status": _status(outcome.status),
            "skipped": list(outcome.skipped),
            "nodeNames": names,
            "allNodes": names is None,
        }
        if outcome.status.is_success:
            entry |= self._filter_fields()
        entry["feasible"] = [self.names[row] for row in self.feasible]
        if len(self.feasible) or self.cycle_error:
            entry |= self._score_fields()
        else:
            entry |= {"best": [], "message": self.message} | self._post_filter_fields()
        return entry

    def document(self) -> Json:
        """Return `as_recorded` with `terminating`, `details`, and `nodes` in order of `filter`."""
        entry = self.as_recorded()
        if self.is_terminating:
            entry["terminating"] = True
        if self.details:
            entry["details"] = list(self.details)
        return entry | {"nodes": list(self.names)}

    def _filter_fields(self) -> Json:
        code_of: dict[Status, int] = {}
        codes = []
        for status in self.statuses:
            if status is None:
                codes.append(0)
            elif not status.plugin:
                codes.append(EXCLUDED)
            else:
                codes.append(code_of.setdefault(status, len(code_of) + 1))
        fields: Json = {"filter": codes}
        if code_of:
            fields["filterStatuses"] = [
                _status(Status(s.code, tuple(sorted(s.reasons)), s.plugin)) for s in code_of
            ]
        return fields

    def _score_fields(self) -> Json:
        if self.cycle_error or self.score_error:
            return {"best": [], "cycleError": self.cycle_error or self.score_error}
        fields: Json = {"scores": [_score_entry(each) for each in self.scores]}
        if self.pre_score_skipped:
            fields["preScoreSkipped"] = list(self.pre_score_skipped)
        best = self.best
        fields |= {"total": self.total.tolist(), "best": best}
        index = [self.names[row] for row in self.feasible].index(best[0])
        fields["bestTotal"] = int(self.total[index])
        if self.nominated:
            fields["nominatedFits"] = True
        return fields

    def _post_filter_fields(self) -> Json:
        if self.unsupported:
            return {"postFilter": {"unsupported": self.unsupported}}
        if self.post_filter is None:
            return {}
        return {"postFilter": post_filter_fields(self.post_filter)}


@dataclass(frozen=True, slots=True)
class Explained:
    """Pods that share one explanation: that of the first.

    error: why there is none, for a pod that is never tried.
    """

    pods: tuple[Pod, ...]
    explanation: Explanation | None
    error: str = ""


def _status(status: Status) -> Json:
    fields: Json = {"code": status.code.upstream_name}
    if status.plugin:
        fields["plugin"] = status.plugin
    if status.reasons:
        fields["reasons"] = list(status.reasons)
    return fields


def post_filter_fields(result: PostFilterResult) -> Json:
    """Return the result of PostFilter in the form of the recordings of kube-scheduler.

    acceptable: nodes of the best candidates, any of which upstream could choose. exhaustive: the
    dry run tried all nodes on which removing pods may help, so that a comparison may expect all
    candidates. deallocated: key of the claim whose allocation is removed; deallocatable: keys of
    all claims whose removal would have the same effect.
    """
    fields: Json = {"status": _status(result.status), "nominatedNode": result.nominated_node}
    fields["exhaustive"] = result.exhaustive
    if result.deallocated:
        fields["deallocated"] = result.deallocated
        fields["deallocatable"] = list(result.deallocatable)
    if result.status.is_success:
        # Without the plugin: a recorded success names none.
        fields["status"] = {"code": result.status.code.upstream_name}
        fields["acceptable"] = sorted(result.acceptable, key=str.encode)
        fields["candidates"] = [
            {
                "node": each.node_name,
                "pods": [victim.key for victim in each.victims],
                "numPDBViolations": each.violations,
            }
            for each in sorted(result.candidates, key=lambda each: each.node_name.encode())
        ]
    return fields


def _score_entry(scores: PluginScores) -> Json:
    fields: Json = {"plugin": scores.plugin, "weight": scores.weight}
    if scores.raw is None or scores.normalized is None:
        return fields | {"skipped": True}
    return fields | {"raw": scores.raw.tolist(), "normalized": scores.normalized.tolist()}


def explain(
    evaluation: Evaluation,
    pod: PodInCycle,
    search_result: SearchResult | None = None,
    tie_break: TieBreak = FIRST,
) -> Explanation:
    """Explain a pod by an evaluation that is up to date.

    search_result: the result of sampling and extenders, which the evaluation was restricted to.
    """
    profile, table = evaluation.profile, evaluation.table
    names = table.names
    order = np.array(sorted(range(len(names)), key=lambda i: names[i].encode()), dtype=np.intp)
    pre_filter = evaluation.pre_filter.status
    passed = pre_filter.is_success
    by_row = _statuses(evaluation)
    statuses = tuple(by_row[i] for i in order)
    is_feasible = [status is None for status in statuses] if passed else []
    feasible = np.flatnonzero(np.array(is_feasible, dtype=np.bool_))
    has_failed = evaluation.pre_score.code is Code.ERROR and len(feasible)
    score_error = evaluation.pre_score.message if has_failed else ""
    nominated = pod.pod_class.facts.nominated_node_name
    if nominated not in {names[i] for i in order[feasible]}:
        nominated = ""
    cycle_error = "" if nominated or len(feasible) == 1 else score_error
    if search_result is not None:
        cycle_error = search_result.error or cycle_error
    elif not nominated and (failure := evaluation.filter_failure()) is not None:
        # A nominated node on which the pod passes is chosen before others are evaluated.
        cycle_error = failure.message
    elif pre_filter.code is Code.ERROR:
        cycle_error = pre_filter.message
    scores: tuple[PluginScores, ...] = ()
    if len(feasible) and not (cycle_error or score_error):
        scores, score_error = _all_scores(evaluation, order[feasible])
        cycle_error = "" if nominated or len(feasible) == 1 else score_error
        if search_result is not None and search_result.scores and not score_error:
            scored = [names[i] for i in order[feasible]]
            scores = (*scores, _extender_scores(search_result, scored))
    diagnosis = _diagnosis(evaluation, statuses if passed else (), search_result)
    runs_post_filter = bool(not len(feasible) and names and not cycle_error and profile.post_filter)
    explanation = Explanation(
        pod_key=pod.key,
        names=tuple(names[i] for i in order),
        pre_enqueue=profile.run_pre_enqueue(pod.pod_class.facts),
        pre_filter=evaluation.pre_filter,
        pre_score_skipped=tuple(sorted(evaluation.score_state.skipped)),
        statuses=statuses,
        feasible=feasible,
        scores=scores,
        total=np.zeros(0, dtype=np.int64)
        if cycle_error or score_error
        else _total(scores, len(feasible)),
        nominated=nominated,
        cycle_error=cycle_error,
        score_error=score_error,
        is_terminating=pod.pod_class.facts.is_terminating,
        diagnosis=diagnosis,
        dry_run=dry_run_to_make(profile, pod, diagnosis, tie_break) if runs_post_filter else None,
        details=refusal_details(profile, pod.pod_class.facts, diagnosis)
        if runs_post_filter
        else (),
    )
    if runs_post_filter and explanation.dry_run is None:
        return with_post_filter(explanation, profile, pod, tie_break)
    return explanation


def _statuses(evaluation: Evaluation) -> list[Status | None]:
    """Return why each row is refused; None for a feasible row, or if PreFilter refused all."""
    if not evaluation.pre_filter.status.is_success:
        return [None] * len(evaluation.table)
    excluded = excluded_status(evaluation.pre_filter.restricted_by)
    return [
        None if code == 0 else excluded if code == EXCLUDED else evaluation.statuses[code - 1]
        for code in evaluation.codes.tolist()
    ]


def _all_scores(evaluation: Evaluation, rows: Rows) -> tuple[tuple[PluginScores, ...], str]:
    """Return the scores of each plugin, or the error that ends the cycle."""
    try:
        scores = tuple(
            _plugin_scores(evaluation, each, raw, rows)
            for each, raw in zip(evaluation.profile.score, evaluation.raw, strict=True)
        )
    except PluginFailure as failure:
        return (), normalize_failure(failure.status).message
    for each in scores:
        error = None if each.normalized is None else out_of_range(each.plugin, each.normalized)
        if error is not None:
            return (), error.message
    return scores, ""


def _plugin_scores(
    evaluation: Evaluation, each: WeightedScore, scores: I64 | None, rows: Rows
) -> PluginScores:
    if scores is None:
        return PluginScores(each.plugin.name, each.weight, None, None)
    raw = scores[rows]
    normalized = raw
    if each.plugin.normalizes:
        extremes = Extremes.of(raw)
        normalized = each.plugin.normalize(evaluation.score_state, evaluation.pod, raw, extremes)
    # Upstream's Score returns 0 for rows that the plugin does not score.
    shown = np.where(raw == IGNORED, 0, raw)
    return PluginScores(each.plugin.name, each.weight, shown, normalized)


def _extender_scores(search_result: SearchResult, names: Sequence[str]) -> PluginScores:
    """Return the points of all extenders, which are weighted and scaled already."""
    added = np.array([search_result.scores.get(name, 0) for name in names], dtype=np.int64)
    return PluginScores(EXTENDER, 1, added, added)


def _total(scores: Sequence[PluginScores], feasible: int) -> I64:
    total: I64 = np.zeros(feasible, dtype=np.int64)
    for each in scores:
        if each.normalized is not None:
            total += each.weight * each.normalized
    # As upstream: without any score plugin, every node has 1.
    return total if scores else total + 1


def _diagnosis(
    evaluation: Evaluation, statuses: Sequence[Status | None], search_result: SearchResult | None
) -> Diagnosis:
    outcome = evaluation.pre_filter
    diagnosis = Diagnosis(
        len(evaluation.table),
        pre_filter=outcome.status,
        unreached=outcome.unreached,
        restricted_by=outcome.restricted_by,
    )
    for status in statuses:
        if status is not None:
            diagnosis.add(status, 1)
    if search_result is not None:
        diagnosis.restricted_by += (EXTENDER,) if search_result.by_extender else ()
        for status in search_result.unknown_nodes:
            diagnosis.add(status, 1)
    diagnosis.record_priority(lowest_priority(evaluation.table))
    if outcome.status.is_success:
        diagnosis.refused_nodes = refused_nodes(evaluation)
    return diagnosis


def with_post_filter(
    explanation: Explanation,
    profile: Profile,
    pod: PodInCycle,
    tie_break: TieBreak,
    dry_run_result: DryRunResult | None = None,
) -> Explanation:
    """Return the explanation with PostFilter's result. dry_run_result: that of its `dry_run`."""
    try:
        result = post_filter_result(profile, pod, explanation.diagnosis, tie_break, dry_run_result)
    except UnsupportedError as missing:
        return replace(explanation, unsupported=f"{missing.plugin}: {missing.field}")
    return replace(explanation, post_filter=result)
