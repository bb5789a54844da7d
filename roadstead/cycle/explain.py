"""Explain: for one pod, every node's answer: who refused and why, or every score and the total.

`Explanation.as_expected()` has the fields of an entry of `expected` in the golden recordings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.messages import ShardView
from roadstead.cycle.preempting import conclude, wanted
from roadstead.cycle.wire import status_in
from roadstead.extenders.chain import EXTENDER
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.diagnosis import Diagnosis, excluded_status
from roadstead.framework.evaluation import EXCLUDED, Summaries
from roadstead.framework.failures import normalize_failure, out_of_range
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.narrowed import Narrowing
from roadstead.framework.plugin import IGNORED, Extremes
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.framework.victims import DryRun, Tried
from roadstead.nodes.columns import I64
from roadstead.nodes.table import Rows
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SUCCESS, Code, Status

Json = dict[str, object]

FIRST = TieBreak("first")


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """One score plugin; raw and normalized: int64[feasible], None where it was skipped."""

    plugin: str
    weight: int
    raw: I64 | None
    normalized: I64 | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What every node says of a pod. names: sorted bytewise; statuses[i] is None if i is feasible.

    feasible: indices into `names`. total: int64[feasible].
    cycle_error: why its attempt fails. score_error: why it cannot be scored, which fails the
        attempt only where nodes are to be compared.
    is_terminating: the pod is being deleted, and is never tried.
    dry_run: what is to be tried before PostFilter speaks (see `with_post_filter`).
    post_filter: None if it did not run; unsupported: what PostFilter would have needed.
    """

    pod_key: str
    names: tuple[str, ...]
    pre_enqueue: Status
    view: ShardView
    statuses: tuple[Status | None, ...]
    feasible: Rows
    scores: tuple[ScoreLine, ...]
    total: I64
    nominated: str
    cycle_error: str
    diagnosis: Diagnosis
    score_error: str = ""
    is_terminating: bool = False
    dry_run: DryRun | None = None
    post_filter: PostFilterResult | None = None
    unsupported: str = ""

    @property
    def best(self) -> list[str]:
        """All nodes with the highest total, or the nominated one if it fits, or the only one."""
        if self.cycle_error:
            return []
        if self.nominated:
            return [self.nominated]
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

    def as_expected(self) -> Json:
        """The fields of a golden entry; `postFilter.unsupported` where preemption is needed."""
        entry: Json = {"pod": self.pod_key}
        if not self.pre_enqueue.is_success:
            entry["preEnqueue"] = _status(self.pre_enqueue)
        names = self.view.node_names
        entry["preFilter"] = {
            "status": _status(status_in(self.view.pre_filter)),
            "skipped": list(self.view.pre_filter_skipped),
            "nodeNames": None if names is None else list(names),
            "allNodes": names is None,
        }
        if status_in(self.view.pre_filter).is_success:
            entry |= self._filter_fields()
        entry["feasible"] = [self.names[row] for row in self.feasible]
        if len(self.feasible) or self.cycle_error:
            entry |= self._score_fields()
        else:
            entry |= {"best": [], "message": self.message} | self._post_filter_fields()
        return entry

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
        fields: Json = {"scores": [_score(line) for line in self.scores]}
        if self.view.pre_score_skipped:
            fields["preScoreSkipped"] = list(self.view.pre_score_skipped)
        best = self.best
        fields |= {"total": self.total.tolist(), "best": best}
        place = [self.names[row] for row in self.feasible].index(best[0])
        fields["bestTotal"] = int(self.total[place])
        if self.nominated:
            fields["nominatedFits"] = True
        return fields

    def _post_filter_fields(self) -> Json:
        if self.unsupported:
            return {"postFilter": {"unsupported": self.unsupported}}
        if self.post_filter is None:
            return {}
        return {"postFilter": post_filter_fields(self.post_filter)}


def _status(status: Status) -> Json:
    fields: Json = {"code": status.code.upstream_name}
    if status.plugin:
        fields["plugin"] = status.plugin
    if status.reasons:
        fields["reasons"] = list(status.reasons)
    return fields


def post_filter_fields(result: PostFilterResult) -> Json:
    """PostFilter's answer in the form of a golden entry."""
    fields: Json = {"status": _status(result.status), "nominatedNode": result.nominated_node}
    fields["exhaustive"] = result.exhaustive
    if result.status.is_success:
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


def _score(line: ScoreLine) -> Json:
    fields: Json = {"plugin": line.plugin, "weight": line.weight}
    if line.raw is None or line.normalized is None:
        return fields | {"skipped": True}
    return fields | {"raw": line.raw.tolist(), "normalized": line.normalized.tolist()}


def explain(
    profile: Profile,
    pod: PodInCycle,
    views: Sequence[ShardView],
    filters: Summaries,
    scores: Summaries,
    narrowing: Narrowing | None = None,
    tie_break: TieBreak = FIRST,
) -> Explanation:
    """Merges the views of all shards; filters and scores are the merged summaries of the class.

    narrowing: what sampling and extenders left over, which the views have taken in.
    """
    names = [name for view in views for name in view.names]
    order = np.array(sorted(range(len(names)), key=lambda i: names[i].encode()), dtype=np.intp)
    statuses = [status for view in views for status in _statuses(view)]
    in_order = tuple(statuses[i] for i in order)
    passed = status_in(views[0].pre_filter).is_success
    fits = [status is None for status in in_order] if passed else []
    feasible = np.flatnonzero(np.array(fits, dtype=np.bool_))
    # A shard without feasible rows may not have run PreScore; any shard's failure is the cycle's.
    error = next((v.pre_score for v in views if v.pre_score.code == Code.ERROR), None)
    score_error = status_in(error).message if error is not None and len(feasible) else ""
    nominated = pod.info.facts.nominated_node_name
    if nominated not in {names[i] for i in order[feasible]}:
        nominated = ""
    cycle_error = "" if nominated or len(feasible) == 1 else score_error
    if narrowing is not None and narrowing.error:
        cycle_error = narrowing.error
    failure = next((each for each in in_order if each and each.code is Code.ERROR), None)
    if failure is not None and passed:
        cycle_error = failure.message
    lines: tuple[ScoreLine, ...] = ()
    if len(feasible) and not (cycle_error or score_error):
        inputs = len(names), filters, scores
        lines, score_error = _scored(profile, pod, views, order[feasible], inputs)
        cycle_error = "" if nominated or len(feasible) == 1 else score_error
    if narrowing is not None and narrowing.scores and lines:
        lines = (*lines, _extender_line(narrowing, [names[i] for i in order[feasible]]))
    diagnosis = _diagnosis(views, in_order if passed else (), narrowing)
    failed = bool(not len(feasible) and names and not cycle_error and profile.post_filter)
    explanation = Explanation(
        pod_key=pod.key,
        names=tuple(names[i] for i in order),
        pre_enqueue=profile.gate(pod.info.facts),
        view=views[0],
        statuses=in_order,
        feasible=feasible,
        scores=lines,
        total=np.zeros(0, dtype=np.int64)
        if cycle_error or score_error
        else _total(lines, len(feasible)),
        nominated=nominated,
        cycle_error=cycle_error,
        score_error=score_error,
        is_terminating=pod.info.facts.is_terminating,
        diagnosis=diagnosis,
        dry_run=wanted(profile, pod, diagnosis, tie_break) if failed else None,
    )
    if failed and explanation.dry_run is None:
        return with_post_filter(explanation, profile, pod, tie_break)
    return explanation


def _statuses(view: ShardView) -> list[Status | None]:
    if not view.codes:
        return [None] * len(view.names)
    known = [status_in(status) for status in view.statuses]
    excluded = excluded_status(view.narrowed_by)
    return [
        None if code == 0 else excluded if code == EXCLUDED else known[code - 1]
        for code in np.frombuffer(view.codes, np.int32).tolist()
    ]


def _scored(
    profile: Profile,
    pod: PodInCycle,
    views: Sequence[ShardView],
    rows: Rows,
    inputs: tuple[int, Summaries, Summaries],
) -> tuple[tuple[ScoreLine, ...], str]:
    """What each plugin scores, or why the cycle ends without."""
    try:
        lines = _score_lines(profile, pod, views, rows, inputs)
    except PluginFailure as failure:
        return (), normalize_failure(failure.status).message
    for line in lines:
        refused = None if line.normalized is None else out_of_range(line.plugin, line.normalized)
        if refused is not None:
            return (), refused.message
    return lines, ""


def _score_lines(
    profile: Profile,
    pod: PodInCycle,
    views: Sequence[ShardView],
    rows: Rows,
    inputs: tuple[int, Summaries, Summaries],
) -> tuple[ScoreLine, ...]:
    node_count, filters, scores = inputs
    state = CycleState(node_count)
    state.filter_summaries.update(filters)
    state.score_summaries.update(scores)
    for pre_filter in profile.pre_filter:
        pre_filter.pre_filter(state, pod.info)
    for pre_score in profile.pre_score:
        pre_score.pre_score(state, pod.info)
    lines = []
    for index, each in enumerate(profile.score):
        parts = [view.raw[index] for view in views]
        if not all(parts[i] or not views[i].names for i in range(len(views))):
            lines.append(ScoreLine(each.plugin.name, each.weight, None, None))
            continue
        raw = np.concatenate([np.frombuffer(part, np.int64) for part in parts])[rows]
        normalized = raw
        if each.plugin.normalizes:
            normalized = each.plugin.normalize(state, pod.info, raw, Extremes.of(raw))
        shown = np.where(raw == IGNORED, 0, raw)
        lines.append(ScoreLine(each.plugin.name, each.weight, shown, normalized))
    return tuple(lines)


def _extender_line(narrowing: Narrowing, names: Sequence[str]) -> ScoreLine:
    """What all extenders add: weighted and scaled by themselves already."""
    added = np.array([narrowing.scores.get(name, 0) for name in names], dtype=np.int64)
    return ScoreLine(EXTENDER, 1, added, added)


def _total(lines: Sequence[ScoreLine], feasible: int) -> I64:
    total: I64 = np.zeros(feasible, dtype=np.int64)
    for line in lines:
        if line.normalized is not None:
            total += line.weight * line.normalized
    return total if lines else total + 1


def _diagnosis(
    views: Sequence[ShardView], statuses: Sequence[Status | None], narrowing: Narrowing | None
) -> Diagnosis:
    nodes = sum(len(view.names) for view in views)
    diagnosis = Diagnosis(nodes, status_in(views[0].pre_filter), views[0].unreached)
    for status in statuses:
        if status is not None:
            diagnosis.add(status, 1)
    if narrowing is not None:
        diagnosis.narrowed_by += (EXTENDER,) if narrowing.by_extender else ()
        for status in narrowing.strangers:
            diagnosis.add(status, 1)
    for view in views:
        diagnosis.see_priority(view.lowest_priority)
    return diagnosis


def with_post_filter(
    explanation: Explanation,
    profile: Profile,
    pod: PodInCycle,
    tie_break: TieBreak,
    tried: Tried | None = None,
) -> Explanation:
    """The explanation with PostFilter's answer; `tried`: what came of `Explanation.dry_run`."""
    try:
        result = conclude(profile, pod, explanation.diagnosis, tie_break, tried)
    except UnsupportedError as missing:
        return replace(explanation, unsupported=f"{missing.plugin}: {missing.field}")
    return replace(explanation, post_filter=result)
