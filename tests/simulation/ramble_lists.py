"""The best rows of classes, as workers find them and a scheduler merges them, compared with the
totals of all rows: which rows are listed, the bound of the others, and the rows left to evaluate.
"""

import numpy as np

from roadstead.framework.evaluation import Evaluation
from roadstead.framework.tie_break import ranked
from roadstead.kernel.arrays import END, INFEASIBLE
from roadstead.protocol.status import Status
from tests.simulation.naive import score_lines


class Lists:
    """The expected lists for the rows of one table. profiles: by name, of the scheduler."""

    def __init__(self, table, rows, profiles, most):
        self._table, self._rows, self._profiles, self._most = table, rows, profiles, most

    def problems_of(self, best, pods, draws, answers, names):
        """best: the merged answers of workers. names: nodes that are left to the scheduler,
        whichever worker has them.
        """
        left = {self._table.row_of(name) for name in names}
        for worker in self._rows.with_rows():
            if worker not in answers:
                left.update(self._rows.of(worker).tolist())
        listed = [np.frombuffer(each.is_listed, np.bool_) for each in answers.values()]
        known = np.logical_and.reduce(listed) if listed else np.zeros(len(pods), np.bool_)
        wanted = [pod for pod, is_known in zip(pods, known, strict=True) if is_known]
        if best is None:
            return ["nothing is listed, though workers list"] if wanted else []
        if [*best.signatures] != [pod.signature for pod in wanted]:
            return [f"{best.signatures} are listed, not {[pod.key for pod in wanted]}"]
        if {*best.excluded.tolist()} != left:
            return [f"rows {best.excluded} are left to look at, not {sorted(left)}"]
        found, draw_of = [], dict(zip((pod.uid for pod in pods), draws, strict=True))
        for place, pod in enumerate(wanted):
            if best.tie_break_hashes[place] != draw_of[pod.uid]:
                found.append(f"the draw of {pod.key} is {best.tie_break_hashes[place]}")
            found += self._differences(best, place, pod, left)
        return found

    def _differences(self, best, place, pod, left):
        totals = self._totals(pod)
        if totals is None:
            return
        ranks = ranked(best.tie_break_hashes[place], self._table.columns.name_hash)
        order = sorted(totals.keys() - left, key=lambda row: (-totals[row], -int(ranks[row])))
        listed, others = [], []
        for worker in self._rows.with_rows():
            own = {*self._rows.of(worker).tolist()}
            best_of = [row for row in order if row in own]
            listed += best_of[: self._most]
            others += best_of[self._most :]
        reported = dict(zip(best.rows[place].tolist(), best.totals[place].tolist(), strict=True))
        reported.pop(END, None)
        if reported.keys() != {*listed}:
            yield f"rows {sorted(reported)} are listed of {pod.key}, not {sorted(listed)}"
            return
        highest, many, count, bound = best.summary[place].tolist()
        # The scheduler knows the amount that normalization adds to every total.
        beside = {total - reported[row] for row, total in totals.items() if row in reported}
        if len(beside) > 1:
            yield f"{pod.key}: totals {reported} are listed, of {totals}"
        if count != len(order):
            yield f"{pod.key}: {count} feasible rows, not {len(order)}"
        if not order:
            return
        (beside,) = beside
        top = [row for row in order if totals[row] == totals[order[0]]]
        if (highest + beside, many) != (totals[order[0]], len(top)):
            yield f"{pod.key}: {many} rows have {highest} and {beside}, of {totals}"
        next_of = max(((totals[row], int(ranks[row])) for row in others), default=None)
        if others and (bound + beside, int(best.bound_rank[place])) != next_of:
            yield f"{pod.key}: what is not listed has {bound} and {beside}, not {next_of}"
        if not others and bound != INFEASIBLE:
            yield f"{pod.key}: what is not listed has {bound}, though nothing is left"

    def _totals(self, pod):
        """row → its total, of the feasible ones; None where scoring fails, since a caller with all
        rows then ignores the list.
        """
        profile = self._profiles[pod.pod_class.facts.scheduler_name]
        evaluation = Evaluation(profile, pod.pod_class, self._table)
        evaluation.update(evaluation.run_pre_filter())
        rows = np.flatnonzero(evaluation.feasible)
        if not len(rows):
            return {}
        scored, _ = evaluation.update_scores(evaluation.run_pre_score())
        lines = score_lines(evaluation, rows) if scored.is_success else scored
        if isinstance(lines, Status):
            return None
        lines = [each for each in lines.values() if each is not None]
        totals = sum(
            (weight * scores for weight, _, scores in lines), np.zeros(len(rows), np.int64)
        )
        return dict(zip(rows.tolist(), totals.tolist(), strict=True))
