"""PreScore and Score of a profile, run for one pod class.

Upstream: pkg/scheduler/framework/runtime/framework.go (RunPreScorePlugins, RunScorePlugins).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.failures import error_of_point
from roadstead.framework.plugin import Feasible, ScorePlugin
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.framework.profile import Profile
from roadstead.nodes.bare import bare
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable
from roadstead.protocol.status import SUCCESS, Status


@dataclass(frozen=True, slots=True)
class PreScoreOutcome:
    """The outcome of all PreScore plugins together: Success, or the Error of the first that failed.

    state: the data that the plugins wrote, and which returned Skip. reads_feasible: whether one of
    them read which rows are feasible.
    """

    status: Status
    state: CycleState
    reads_feasible: bool = False

    def is_same(self, other: PreScoreOutcome) -> bool:
        """Whether Score would return the same after either."""
        return self is other or (self.status == other.status and self.state.is_same(other.state))


NO_PRE_SCORE = PreScoreOutcome(SUCCESS, CycleState(-1))


def run_pre_score(
    profile: Profile, pre_filter: PreFilterOutcome, pod: PodClass, table: NodeTable, rows: Feasible
) -> PreScoreOutcome:
    """Run PreScore after a PreFilter. rows() -> bool[row]: which rows are feasible."""
    state, calls = CycleState(len(table), pre_filter.state), list[bool]()

    def feasible() -> Bools:
        calls.append(True)
        return rows()

    for plugin in profile.preparing_score:
        status = plugin.pre_score(state, pod, table, feasible)
        if status.is_skip:
            state.skipped.add(plugin.name)
        elif not status.is_success:
            status = error_of_point("PreScore", Status(status.code, status.reasons, plugin.name))
            return PreScoreOutcome(status, state, bool(calls))
    return PreScoreOutcome(profile.unprepared_score, state, bool(calls))


def raw_scores(plugin: ScorePlugin, state: CycleState, pod: PodClass, table: NodeTable) -> I64:
    """Return raw scores of all rows as a new array: int64[row]."""
    scores: I64 = np.ascontiguousarray(plugin.score(state, pod, table))
    # A view may show a column of the table, and the evaluation later writes into its scores.
    return scores.copy() if scores.base is not None else scores


def bare_scores(
    plugin: ScorePlugin, state: CycleState, pod: PodClass, table: NodeTable, feasible: Bools
) -> I64:
    """Return raw scores: int64[row]; feasible rows as if without pods and images, others 0."""
    rows = np.flatnonzero(feasible)
    scores: I64 = np.zeros(len(table), dtype=np.int64)
    scores[rows] = plugin.score(state, pod, bare(table, rows))
    return scores
