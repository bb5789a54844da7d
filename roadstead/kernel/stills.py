"""Stills: what NODE facts say of rows, kept once for all classes of which it is the same.

Rows are grouped by the raw scores of the plugins that normalize; all rows of a group are normalized
alike, so what they add to totals is kept by group and found anew only where a group comes or goes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from roadstead.framework.evaluation import Evaluation
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import MAX_NODE_SCORE, Extremes, Reads
from roadstead.framework.profile import WeightedScore
from roadstead.framework.what_if import PASSED
from roadstead.kernel.arrays import NOWHERE
from roadstead.nodes.columns import I32, I64, Bools

MAX_GROUPS = 4096


@dataclass(frozen=True, slots=True)
class Still:
    """passes: bool[row]. fixed: int32[row], sum of weight * score of plugins that do not normalize.

    group: int32[row]. raw: int64[normalizing plugin, group]. normalizing: those plugins. What a
    class skips is known when its rows are scored; where it is filtered again in the midst of a
    batch and finds no row, its evaluation does not say so any more.
    """

    passes: Bools
    fixed: I32
    group: I32
    raw: I64
    normalizing: tuple[WeightedScore, ...]


@dataclass(frozen=True, slots=True)
class KeptBack:
    """A group of feasible rows that are not in the table: see `cycle.class_run.RestGroup`."""

    raw: tuple[int, ...]
    rows: int
    floor: int


def key_of(evaluation: Evaluation) -> Hashable:
    """Equal for classes of which NODE facts say the same."""
    parts: list[Hashable] = [(evaluation.fixed()[0] == PASSED).tobytes()]
    for index, each in _scoring(evaluation):
        raw = evaluation.first_raw(index).tobytes()
        parts.append((each.plugin.normalizes, each.weight, raw))
    return tuple(parts)


def still_of(evaluation: Evaluation) -> Still | str:
    """What NODE facts say of a class; or why it is not covered."""
    passes: Bools = evaluation.fixed()[0] == PASSED
    fixed: I64 = np.zeros(len(passes), dtype=np.int64)
    keys: list[I64] = []
    normalizing: list[WeightedScore] = []
    for index, each in _scoring(evaluation):
        raw = evaluation.first_raw(index)
        if each.plugin.normalizes:
            keys.append(raw)
            normalizing.append(each)
        elif _in_range(raw[passes]):
            fixed[passes] += each.weight * raw[passes]
        else:
            return "score out of range"
    group, values = _grouped(keys, len(passes))
    if values.shape[1] > MAX_GROUPS:
        return "too many groups"
    return Still(passes, fixed.astype(np.int32), group, values, tuple(normalizing))


def _scoring(evaluation: Evaluation) -> list[tuple[int, WeightedScore]]:
    skipped = evaluation.state.skip_score
    return [
        (index, each)
        for index, each in enumerate(evaluation.profile.score)
        if each.plugin.reads is Reads.NODE and each.plugin.name not in skipped
    ]


def _in_range(scores: I64) -> bool:
    return not len(scores) or (scores.min() >= 0 and scores.max() <= MAX_NODE_SCORE)


def _grouped(keys: list[I64], rows: int) -> tuple[I32, I64]:
    """Group of each row by equal keys, and the keys of each group: int64[key, group]."""
    if all(not rows or key.min() == key.max() for key in keys):
        first = [[key[0]] if rows else [0] for key in keys]
        return np.zeros(rows, np.int32), np.array(first, dtype=np.int64).reshape(len(keys), 1)
    values, group = np.unique(np.array(keys), axis=1, return_inverse=True)
    return group.reshape(-1).astype(np.int32), values


def normalized(
    evaluation: Evaluation, still: Still, alive: Bools, kept_back: tuple[KeptBack, ...]
) -> tuple[I32, int] | None:
    """What normalizing plugins add to each group, and the bound of what was kept back.

    alive: bool[group], whether it has a feasible row. None where a plugin fails, or its score is
    out of range. The bound is NOWHERE where nothing was kept back.
    """
    groups = still.raw.shape[1]
    norm: I64 = np.zeros(groups + len(kept_back), dtype=np.int64)
    there = np.concatenate([alive, np.ones(len(kept_back), dtype=np.bool_)])
    for place, each in enumerate(still.normalizing):
        values = np.concatenate([still.raw[place], [group.raw[place] for group in kept_back]])
        if not there.any():
            continue
        found = values.astype(np.int64)
        try:
            scores = each.plugin.normalize(
                evaluation.state, evaluation.pod, found, Extremes.of(values[there])
            )
        except PluginFailure:
            return None
        if not _in_range(scores[there]):
            return None
        norm += each.weight * np.where(there, scores, 0)
    floors = np.array([group.floor for group in kept_back], dtype=np.int64)
    bound = int((norm[groups:] + floors).max()) if kept_back else NOWHERE
    return norm[:groups].astype(np.int32), bound
