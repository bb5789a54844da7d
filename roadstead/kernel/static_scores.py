"""Static scores: results of plugins that read NODE facts only, stored once for equal classes.

Rows are grouped by the raw scores of the plugins that normalize. All rows of a normalization group
have the same normalized scores, which are stored by group and computed again only when a group gets
its first feasible row or loses its last one.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import MAX_NODE_SCORE, Extremes, Reads
from roadstead.framework.profile import Profile, WeightedScore
from roadstead.framework.row_overlay import PASSED
from roadstead.nodes.columns import I32, I64, Bools
from roadstead.nodes.view import Rows
from roadstead.protocol.status import Code

MAX_GROUPS = 4096
"""Maximum number of groups of a class; the kernel does not cover a class with more."""

MAX_COMPARED = 1 << 20
"""Maximum of changed rows times groups to find the groups of these rows; with more, the static
scores of all rows are computed again."""


@dataclass(frozen=True, slots=True)
class StaticScores:
    """Static scores of a class.

    passes: bool[row]. sums: int32[row], sum of weight * score of plugins that do not normalize.
    group: int32[row]. raw: int64[normalizing plugin, group], the raw scores of a group's rows.
    normalizing: these plugins, without those that PreScore skipped. They are stored because the
    evaluation may be filtered again during a batch; if it then finds no feasible row, it has no
    PreScore outcome that says which plugins are skipped.
    """

    passes: Bools
    sums: I32
    group: I32
    raw: I64
    normalizing: tuple[WeightedScore, ...]


def key_of(evaluation: Evaluation) -> Hashable:
    """Return a key that is equal for classes with the same static scores."""
    # The first result is the codes by row; the second one, which filter rejected the row.
    parts: list[Hashable] = [(evaluation.static_results()[0] == PASSED).tobytes()]
    for index, each in _static_plugins(evaluation.profile, evaluation.score_state):
        raw = evaluation.raw_of_all_rows(index).tobytes()
        parts.append((each.plugin.normalizes, each.weight, raw))
    return tuple(parts)


def static_scores_of(evaluation: Evaluation) -> StaticScores | str:
    """Return the static scores of a class, or why it is not covered."""
    passes: Bools = evaluation.static_results()[0] == PASSED
    sums: I64 = np.zeros(len(passes), dtype=np.int64)
    keys: list[I64] = []
    normalizing: list[WeightedScore] = []
    for index, each in _static_plugins(evaluation.profile, evaluation.score_state):
        raw = evaluation.raw_of_all_rows(index)
        if each.plugin.normalizes:
            keys.append(raw)
            normalizing.append(each)
        elif _in_range(raw[passes]):
            sums[passes] += each.weight * raw[passes]
        else:
            return "score out of range"
    group, values = _group_rows(keys, len(passes))
    if values.shape[1] > MAX_GROUPS:
        return "too many groups"
    return StaticScores(passes, sums.astype(np.int32), group, values, tuple(normalizing))


@dataclass(frozen=True, slots=True)
class StaticRows:
    """Static scores of some rows, see `StaticScores`."""

    passes: Bools
    sums: I32
    group: I32


def static_scores_of_rows(
    evaluation: Evaluation, state: CycleState, static: StaticScores, rows: Rows
) -> StaticRows | None:
    """Return the static scores of some rows; None if those of all rows must be computed again.

    This is so if a row is in none of the groups, or a plugin fails. The evaluation is up to date.
    state: of PreScore. static: the scores of the class when its groups were formed.
    """
    groups = static.raw.shape[1]
    # Result of the static filters by row: PASSED (0) or k for `statuses[k - 1]`.
    codes = evaluation.static_results()[0][rows]
    statuses = [evaluation.statuses[code - 1] for code in np.unique(codes[codes > 0]).tolist()]
    if any(each.code is Code.ERROR for each in statuses) or groups * len(rows) > MAX_COMPARED:
        return None
    passes: Bools = codes == PASSED
    sums: I64 = np.zeros(len(rows), dtype=np.int64)
    # bool[group, index in rows], whether the row has the raw scores of the group.
    is_in: Bools = np.ones((groups, len(rows)), dtype=np.bool_)
    view, raw_of_groups = evaluation.table.view(rows), iter(static.raw)
    for _, each in _static_plugins(evaluation.profile, state):
        try:
            raw: I64 = each.plugin.score(state, evaluation.pod, view)
        except PluginFailure:
            return None
        if each.plugin.normalizes:
            is_in &= next(raw_of_groups)[:, np.newaxis] == raw
        elif _in_range(raw[passes]):
            sums[passes] += each.weight * raw[passes]
        else:
            return None
    if not is_in.any(axis=0).all():
        return None
    return StaticRows(passes, sums.astype(np.int32), is_in.argmax(axis=0).astype(np.int32))


def _static_plugins(profile: Profile, state: CycleState) -> list[tuple[int, WeightedScore]]:
    """Return the score plugins that read NODE facts only and are not skipped, and their indices."""
    return [
        (index, each)
        for index, each in enumerate(profile.score)
        if each.plugin.reads is Reads.NODE and each.plugin.name not in state.skipped
    ]


def _in_range(scores: I64) -> bool:
    return not len(scores) or (scores.min() >= 0 and scores.max() <= MAX_NODE_SCORE)


def _group_rows(keys: list[I64], rows: int) -> tuple[I32, I64]:
    """Return the group of each row by equal keys, and the keys of each group: int64[key, group]."""
    if all(not rows or key.min() == key.max() for key in keys):
        first = [[key[0]] if rows else [0] for key in keys]
        return np.zeros(rows, np.int32), np.array(first, dtype=np.int64).reshape(len(keys), 1)
    values, group = np.unique(np.array(keys), axis=1, return_inverse=True)
    return group.reshape(-1).astype(np.int32), values


def normalized_scores(
    evaluation: Evaluation, static: StaticScores, has_feasible: Bools
) -> I32 | None:
    """Return the sum of weight * normalized score of each group: int32[group].

    has_feasible: bool[group], whether it has a feasible row. None if a plugin fails, or a score is
    out of range.
    """
    sums: I64 = np.zeros(static.raw.shape[1], dtype=np.int64)
    if not has_feasible.any():
        return sums.astype(np.int32)
    for raw, each in zip(static.raw, static.normalizing, strict=True):
        try:
            scores = each.plugin.normalize(
                evaluation.score_state, evaluation.pod, raw.copy(), Extremes.of(raw[has_feasible])
            )
        except PluginFailure:
            return None
        if not _in_range(scores[has_feasible]):
            return None
        sums += each.weight * np.where(has_feasible, scores, 0)
    return sums.astype(np.int32)
