"""PreScore and Score of a profile, run for one class of pods.

Upstream: pkg/scheduler/framework/runtime/framework.go (RunPreScorePlugins, RunScorePlugins).
"""

from __future__ import annotations

import numpy as np

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.failures import phase_failure
from roadstead.framework.plugin import ScorePlugin
from roadstead.framework.profile import Profile
from roadstead.nodes.bare import bare
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.table import NodeTable
from roadstead.protocol.status import Status


def run_pre_score(
    profile: Profile, state: CycleState, pod: PodInfo, failure: Status | None = None
) -> Status:
    """Success, or the Error of the first plugin; those that say Skip are noted in the state.

    failure: why a plugin found no summary, which fails the phase before it begins.
    """
    if failure is not None:
        return phase_failure("PreScore", failure)
    for plugin in profile.pre_score:
        status = plugin.pre_score(state, pod)
        if status.is_skip:
            state.skip_score.add(plugin.name)
        elif not status.is_success:
            return phase_failure("PreScore", Status(status.code, status.reasons, plugin.name))
    return profile.unprepared_score


def raw_scores(plugin: ScorePlugin, state: CycleState, pod: PodInfo, table: NodeTable) -> I64:
    """Raw scores of all rows, in an array of their own: int64[row]."""
    scores: I64 = np.ascontiguousarray(plugin.score(state, pod, table))
    return scores.copy() if scores.base is not None else scores


def bare_scores(
    plugin: ScorePlugin, state: CycleState, pod: PodInfo, table: NodeTable, feasible: Bools
) -> I64:
    """Raw scores of the feasible rows as bare nodes, 0 elsewhere: int64[row]."""
    rows = np.flatnonzero(feasible)
    scores: I64 = np.zeros(len(table), dtype=np.int64)
    scores[rows] = plugin.score(state, pod, bare(table, rows))
    return scores
