"""Layout of covered classes as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadstead.framework.plugin import ON_NONE, Effect
from roadstead.framework.profile import Profile, any_may_change, effects_of
from roadstead.kernel.arrays import BUCKETS, GROUP, Totals
from roadstead.kernel.current_rows import is_current
from roadstead.kernel.lowering.lowerings import is_counted
from roadstead.kernel.static_scores import StaticScores
from roadstead.nodes.columns import Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.view import Rows


def empty_totals(classes: int, static: Sequence[StaticScores], models: int, row_at: Rows) -> Totals:
    """Return totals of classes, none of them computed. row_at: int64[position], see `Numbers`."""
    rows = len(row_at)
    groups = max((scores.raw.shape[1] for scores in static), default=1)
    return Totals(
        passes=np.array([scores.passes[row_at] for scores in static], dtype=np.bool_).reshape(
            len(static), rows
        ),
        static=np.array([scores.sums[row_at] for scores in static], dtype=np.int32).reshape(
            len(static), rows
        ),
        group_at=np.array([scores.group[row_at] for scores in static], dtype=np.int32).reshape(
            len(static), rows
        ),
        group=np.array([scores.group for scores in static], dtype=np.int32).reshape(
            len(static), rows
        ),
        total=np.empty((classes, rows), dtype=np.int32),
        top=np.empty((classes, BUCKETS), dtype=np.int32),
        tied=np.empty((classes, BUCKETS), dtype=np.int32),
        group_top=np.empty((classes, BUCKETS // GROUP), dtype=np.int32),
        group_tied=np.empty((classes, BUCKETS // GROUP), dtype=np.int32),
        group_feasible=np.zeros((classes, groups), dtype=np.int64),
        norm=np.zeros((classes, groups), dtype=np.int32),
        feasible=np.zeros(classes, dtype=np.int64),
        seen=np.zeros(classes, dtype=np.int64),
        stale_norm=np.zeros(classes, dtype=np.bool_),
        stale=np.zeros(classes, dtype=np.bool_),
        built=np.zeros(classes, dtype=np.bool_),
        cached_groups=np.zeros((models, groups), dtype=np.bool_),
        cached_norm=np.zeros((models, groups), dtype=np.int32),
        has_cached_norm=np.zeros(models, dtype=np.bool_),
    )


def affected_by(profiles: Sequence[Profile], pod_classes: Sequence[PodClass]) -> Bools:
    """Whether placing one class may change another's totals on other nodes: bool[placed, asked].

    Plugins whose counts across nodes or whose answers the kernel keeps up to date are left out.
    """
    result: Bools = np.zeros((len(pod_classes), len(pod_classes)), dtype=np.bool_)
    for profile in dict.fromkeys(profiles):
        plugins = [
            each for each in profile.cross_node if not (is_counted(each) or is_current(each))
        ]
        placed: dict[tuple[Effect, ...], list[int]] = {}
        for index, pod_class in enumerate(pod_classes):
            effects = effects_of(plugins, pod_class)
            if any(each is not ON_NONE for each in effects):
                placed.setdefault(effects, []).append(index)
        asked = [index for index, each in enumerate(profiles) if each is profile]
        for effects, indices in placed.items():
            for index in asked:
                if any_may_change(effects, pod_classes[index]):
                    result[indices, index] = True
    return result
