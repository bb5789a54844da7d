"""Layout of the covered classes of a kernel as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roadstead.framework.plugin import ON_NONE, Effect
from roadstead.framework.profile import Profile, any_may_change, effects_of
from roadstead.framework.tie_break import Chooser
from roadstead.kernel.arrays import BLOCK, BUCKETS, Totals
from roadstead.kernel.counter_arrays import CounterArrays
from roadstead.kernel.counter_layout import lay_out_counters, with_classes
from roadstead.kernel.covered_classes import CoveredClasses
from roadstead.kernel.lowering.lowerings import ClassArrays, is_counted, lay_out_classes
from roadstead.kernel.mirror import Mirror
from roadstead.kernel.per_pod_filters import is_called_per_pod
from roadstead.kernel.static_scores import StaticScores
from roadstead.nodes.columns import Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable
from roadstead.nodes.view import Rows


class KernelArrays(NamedTuple):
    """The arrays of a kernel.

    mirror: a copy of the rows' amounts, on which placements are counted. class_arrays: requests of
    classes. totals: totals of classes over rows. counters: counts by topology domain, for spread
    and affinity. too_many_counts: there are no counters, and the plugins decide instead.
    """

    mirror: Mirror
    class_arrays: ClassArrays
    totals: Totals
    counters: CounterArrays
    too_many_counts: bool


def lay_out(table: NodeTable, classes: CoveredClasses, chooser: Chooser) -> KernelArrays:
    """Return the arrays of a kernel that covers at least one class."""
    by_index, evaluations = list(classes.covered.values()), classes.evaluations
    static_scores = list(classes.static_scores.values())
    row_lowerings = [each.shared.lowering for each in by_index]
    pod_classes = [each.kernel_class.pod for each in by_index]
    profiles = [each.kernel_class.evaluation.profile for each in by_index]
    affected = affected_by(profiles, pod_classes)
    index_of = {id(scores): index for index, scores in enumerate(static_scores)}
    static_index = [index_of[id(each.static_scores)] for each in evaluations]
    evaluation_of = np.array([each.shared.index for each in by_index], dtype=np.int64)
    static_index_of = np.array(static_index, dtype=np.int64)[evaluation_of]
    class_arrays, ports_in_use = lay_out_classes(
        row_lowerings, pod_classes, affected, static_index_of, evaluation_of
    )
    mirror = Mirror(table, chooser, ports_in_use)
    row_at = mirror.row_arrays.row_at
    totals = empty_totals(len(pod_classes), static_scores, len(evaluations), row_at)
    groups = totals.group_feasible.shape[1]
    first_evaluations = [each.first_class.evaluation for each in evaluations]
    counters = lay_out_counters(first_evaluations, table, static_index, groups)
    too_many_counts = counters is None
    if counters is None:
        counters = lay_out_counters((), table, (), groups)
        assert counters is not None, "no counters are not too many"
    counters = with_classes(counters, evaluation_of)
    return KernelArrays(mirror, class_arrays, totals, counters, too_many_counts)


def empty_totals(
    classes: int, static_scores: Sequence[StaticScores], evaluations: int, row_at: Rows
) -> Totals:
    """Return totals of classes, none of them computed. row_at: int64[position], see `RowArrays`."""
    rows = len(row_at)
    groups = max((scores.raw.shape[1] for scores in static_scores), default=1)
    return Totals(
        passes=np.array(
            [scores.passes[row_at] for scores in static_scores], dtype=np.bool_
        ).reshape(len(static_scores), rows),
        static=np.array([scores.sums[row_at] for scores in static_scores], dtype=np.int32).reshape(
            len(static_scores), rows
        ),
        group_at=np.array(
            [scores.group[row_at] for scores in static_scores], dtype=np.int32
        ).reshape(len(static_scores), rows),
        group_of_row=np.array([scores.group for scores in static_scores], dtype=np.int32).reshape(
            len(static_scores), rows
        ),
        total=np.empty((classes, rows), dtype=np.int32),
        top=np.empty((classes, BUCKETS), dtype=np.int32),
        tied=np.empty((classes, BUCKETS), dtype=np.int32),
        block_top=np.empty((classes, BUCKETS // BLOCK), dtype=np.int32),
        block_tied=np.empty((classes, BUCKETS // BLOCK), dtype=np.int32),
        group_feasible=np.zeros((classes, groups), dtype=np.int64),
        normalized_scores=np.zeros((classes, groups), dtype=np.int32),
        feasible=np.zeros(classes, dtype=np.int64),
        applied_changes=np.zeros(classes, dtype=np.int64),
        needs_normalization=np.zeros(classes, dtype=np.bool_),
        results_changed=np.zeros(classes, dtype=np.bool_),
        has_totals=np.zeros(classes, dtype=np.bool_),
        cached_groups=np.zeros((evaluations, groups), dtype=np.bool_),
        cached_scores=np.zeros((evaluations, groups), dtype=np.int32),
        has_cached_scores=np.zeros(evaluations, dtype=np.bool_),
    )


def affected_by(profiles: Sequence[Profile], pod_classes: Sequence[PodClass]) -> Bools:
    """Whether placing one class may change a class's totals on other nodes: bool[placed, class].

    Plugins are left out whose counts across nodes, or whose results, the kernel keeps up to date.
    """
    result: Bools = np.zeros((len(pod_classes), len(pod_classes)), dtype=np.bool_)
    for profile in dict.fromkeys(profiles):
        plugins = [
            each for each in profile.cross_node if not (is_counted(each) or is_called_per_pod(each))
        ]
        placed_by_effects: dict[tuple[Effect, ...], list[int]] = {}
        for index, pod_class in enumerate(pod_classes):
            effects = effects_of(plugins, pod_class)
            if any(each is not ON_NONE for each in effects):
                placed_by_effects.setdefault(effects, []).append(index)
        classes = [index for index, each in enumerate(profiles) if each is profile]
        for effects, indices in placed_by_effects.items():
            for index in classes:
                if any_may_change(effects, pod_classes[index]):
                    result[indices, index] = True
    return result
