"""One pod decided naively on a given table: all plugins, all nodes, nothing cached.

This module calls only the plugins and the framework, nothing of `roadstead/cycle`.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from roadstead.framework.diagnosis import Diagnosis, excluded_status
from roadstead.framework.evaluation import EXCLUDED, Evaluation
from roadstead.framework.failures import normalize_failure, out_of_range
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import IGNORED, Extremes
from roadstead.framework.row_overlay import PASSED
from roadstead.framework.tie_break import Chooser
from roadstead.protocol.status import Code, Status
from tests.simulation.bystanders import EXCLUDED as LEFT_OUT


@dataclass(frozen=True, slots=True)
class Verdict:
    """The expected decision: a node, or the message and the nomination of a failure.

    feasible, total, best: number of feasible nodes, total of the chosen node's scores, and number
    of nodes with that total. reasons, plugins: reasons with the number of nodes, and the plugins
    that refused.
    """

    node_name: str | None
    message: str = ""
    nominated: str | None = None
    victims: tuple[str, ...] = ()
    error: str = ""
    feasible: int = 0
    total: int = 0
    best: int = 0
    reasons: tuple = ()
    plugins: tuple = ()


@dataclass(frozen=True, slots=True)
class Left:
    """The feasible rows that a search and an extender leave.

    failure: why the search failed. added: node → score that an extender adds to its total.
    by_extender: the extender excluded some. unknown_nodes: its answers about nodes that do not
    exist.
    """

    rows: list
    failure: Status | None = None
    added: dict = field(default_factory=dict)
    by_extender: bool = False
    unknown_nodes: tuple = ()


@dataclass(slots=True)
class Decided:
    """The decision for a pod. verdict: None where no node is feasible; the diagnosis then has the
    reason.

    view: the fields of an explanation.
    """

    evaluation: Evaluation
    view: dict
    verdict: Verdict | None = None
    diagnosis: Diagnosis | None = None


class Naive:
    """Decides pods on one table."""

    def __init__(self, table, tie_break):
        self._table = table
        self._chooser = Chooser(tie_break)

    def decide(self, profile, pod_class, pod, narrow=None, *, asks_outside=False):
        """narrow: makes `Left` of the feasible rows, where not all of them are scored.

        asks_outside: an extender is asked about the nominated node before it is used.
        """
        facts, name_of = pod_class.facts, self._table.names
        evaluation = Evaluation(profile, pod_class, self._table)
        evaluation.update(evaluation.run_pre_filter())
        outcome = evaluation.pre_filter
        passed = outcome.status.is_success
        found = Decided(evaluation, {})
        rows = np.flatnonzero(evaluation.feasible).tolist() if passed else []
        failure = outcome.status if outcome.status.code is Code.ERROR else None
        left = Left(rows)
        is_taken = passed and not asks_outside and _takes(evaluation, facts.nominated_node_name)
        if passed and narrow is not None:
            left = narrow(evaluation, rows)
            rows, failure = left.rows, left.failure
        elif passed and not is_taken:
            failure = failure_of(evaluation)
        rows.sort(key=lambda row: name_of[row].encode())
        found.view = {
            "feasible": [name_of[row] for row in rows],
            "best": [],
            "pre_filter": (
                shown_status(outcome.status),
                list(outcome.skipped),
                None if outcome.node_names is None else sorted(outcome.node_names),
            ),
            "refused": _refused(evaluation) if passed else {},
            "scores": None,
            "pre_score_skipped": [],
            "total": None,
            "best_total": None,
            "nominated_fits": False,
            "post_filter": None,
            "error": "" if failure is None else failure.message,
        }
        if failure is not None:
            found.verdict = Verdict(None, error=failure.message, feasible=len(rows))
        elif rows:
            found.verdict = self._scored(found, facts, pod, left)
        else:
            found.diagnosis = _diagnosis(evaluation, left)
        if is_taken:
            found.verdict = Verdict(facts.nominated_node_name, feasible=1, best=1)
            found.diagnosis = None
        return found

    def _scored(self, found, facts, pod, left):
        rows, evaluation = left.rows, found.evaluation
        view, name_of = found.view, self._table.names
        status, _ = evaluation.update_scores(evaluation.run_pre_score())
        feasible = np.array(rows, dtype=np.intp)
        lines = score_lines(evaluation, feasible) if status.is_success else {}
        if isinstance(lines, Status):
            status = lines
        lone = facts.nominated_node_name
        if lone not in view["feasible"]:
            lone = view["feasible"][0] if len(rows) == 1 else ""
        if not status.is_success:
            # Upstream scores only where there are several nodes to compare; an explanation shows
            # the scores.
            view["error"] = status.message
            if lone:
                return Verdict(lone, feasible=len(rows), best=1)
            return Verdict(None, error=status.message, feasible=len(rows))
        totals = sum((w * scores for w, _, scores in filter(None, lines.values())), 0)
        if not lines:
            totals = np.full(len(rows), 0 if left.added else 1, dtype=np.int64)
        added = [left.added.get(name_of[row], 0) for row in rows]
        totals = totals + np.array(added)
        best = feasible[totals == totals.max()]
        if lone:
            best = np.array([self._table.row_of(lone)])
        outside = {"Extender": (1, added, added)} if left.added else {}
        view |= {
            "best": [name_of[row] for row in best],
            "scores": {
                name: None if line is None else (line[0], line[1].tolist(), line[2].tolist())
                for name, line in lines.items()
            }
            | outside,
            "pre_score_skipped": sorted(evaluation.score_state.skipped),
            "total": totals.tolist(),
            "best_total": int(totals[rows.index(best[0])]),
            "nominated_fits": facts.nominated_node_name in view["feasible"],
        }
        number = pod.tie_break_number
        row = best[0] if lone else self._chooser.one_of(self._table, best, pod.key, number)
        total = int(totals[rows.index(row)])
        return Verdict(name_of[row], feasible=len(rows), total=total, best=len(best))


def shown_status(status):
    """A status as an explanation shows it: without plugin and reasons where it has none."""
    shown = {"code": status.code.upstream_name}
    shown |= {"plugin": status.plugin} if status.plugin else {}
    return shown | ({"reasons": [*status.reasons]} if status.reasons else {})


def _takes(evaluation, name):
    """Whether a node passes Filter."""
    table = evaluation.table
    return bool(name) and table.has_node(name) and evaluation.codes[table.row_of(name)] == PASSED


def failure_of(evaluation):
    """The error of a filter on some node that it checked; None where no filter fails."""
    for code in range(1, len(evaluation.statuses) + 1):
        status = evaluation.statuses[code - 1]
        if status.code is Code.ERROR and (evaluation.codes == code).any():
            return status
    return None


def failed(diagnosis, **more):
    """Return the verdict on a pod without a feasible node."""
    reasons = tuple(sorted(diagnosis.reasons().items()))
    return replace(Verdict(None, reasons=reasons, plugins=diagnosis.plugins), **more)


def _refused(evaluation):
    """node → (code, plugin, sorted reasons) of the nodes that a filter refused."""
    refused = {}
    for name, code in zip(evaluation.table.names, evaluation.codes.tolist(), strict=True):
        if code == EXCLUDED:
            refused[name] = LEFT_OUT
        elif code != PASSED:
            status = evaluation.statuses[code - 1]
            refusal = status.code.upstream_name, status.plugin, tuple(sorted(status.reasons))
            # The search did not reach a node without a status.
            refused[name] = refusal if status.reasons else LEFT_OUT
    return refused


def score_lines(evaluation, feasible):
    """For each score plugin (weight, displayed scores, and normalized: int64[feasible]); None where
    it skips.

    A status where a plugin fails to normalize or a score is out of range.
    """
    lines = {}
    for each, raw in zip(evaluation.profile.score, evaluation.raw, strict=True):
        if raw is None:
            lines[each.plugin.name] = None
            continue
        scores = raw[feasible]
        if each.plugin.normalizes:
            state, pod = evaluation.score_state, evaluation.pod
            try:
                scores = each.plugin.normalize(state, pod, scores, Extremes.of(scores))
            except PluginFailure as failure:
                return normalize_failure(failure.status)
        if (refused := out_of_range(each.plugin.name, scores)) is not None:
            return refused
        # A node without the scored resource does not count.
        shown = np.where(raw[feasible] == IGNORED, 0, raw[feasible])
        lines[each.plugin.name] = each.weight, shown, scores
    return lines


def _diagnosis(evaluation, left):
    pre_filter = evaluation.pre_filter
    # Upstream counts plugins that restricted the nodes among those that refused the pod.
    restricted_by = () if pre_filter.node_names is None else pre_filter.restricted_by
    restricted_by += ("Extender",) if left.by_extender else ()
    nodes = len(evaluation.table)
    found = Diagnosis(nodes, pre_filter.status, pre_filter.unreached, restricted_by)
    if pre_filter.status.is_success:
        excluded = excluded_status(pre_filter.restricted_by)
        table, refused = evaluation.table, {}
        for row, code in enumerate(evaluation.codes.tolist()):
            assert code != PASSED, "a pod with a diagnosis has no feasible node"
            status = excluded if code == EXCLUDED else evaluation.statuses[code - 1]
            found.add(status, 1)
            refused.setdefault(status.plugin, []).append(table.facts(row))
        found.refused_nodes = {"DynamicResources": tuple(refused.get("DynamicResources", ()))}
        for status in left.unknown_nodes:
            found.add(status, 1)
    return found
