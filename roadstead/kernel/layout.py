"""Layout of covered classes as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadstead.framework.plugin import ON_NONE, Effect
from roadstead.framework.profile import Profile, concern, effects_of
from roadstead.kernel.arrays import BUCKETS, GROUP, Totals
from roadstead.kernel.lowering.lowerings import is_counted
from roadstead.kernel.static_scores import StaticScores
from roadstead.nodes.columns import Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.view import Rows


def empty_totals(classes: int, static: Sequence[StaticScores], models: int, row_at: Rows) -> Totals:
    """Return totals of classes, none of them computed. row_at: int64[place], see `Numbers`."""
    rows = len(row_at)
    groups = max((still.raw.shape[1] for still in static), default=1)
    return Totals(
        passes=np.array([still.passes[row_at] for still in static], dtype=np.bool_).reshape(
            len(static), rows
        ),
        still=np.array([still.fixed[row_at] for still in static], dtype=np.int32).reshape(
            len(static), rows
        ),
        group_at=np.array([still.group[row_at] for still in static], dtype=np.int32).reshape(
            len(static), rows
        ),
        group=np.array([still.group for still in static], dtype=np.int32).reshape(
            len(static), rows
        ),
        total=np.empty((classes, rows), dtype=np.int32),
        top=np.empty((classes, BUCKETS), dtype=np.int32),
        tied=np.empty((classes, BUCKETS), dtype=np.int32),
        high=np.empty((classes, BUCKETS // GROUP), dtype=np.int32),
        many=np.empty((classes, BUCKETS // GROUP), dtype=np.int32),
        alive=np.zeros((classes, groups), dtype=np.int64),
        norm=np.zeros((classes, groups), dtype=np.int32),
        feasible=np.zeros(classes, dtype=np.int64),
        seen=np.zeros(classes, dtype=np.int64),
        moved=np.zeros(classes, dtype=np.bool_),
        stopped=np.zeros(classes, dtype=np.bool_),
        built=np.zeros(classes, dtype=np.bool_),
        usual=np.zeros((models, groups), dtype=np.bool_),
        usual_norm=np.zeros((models, groups), dtype=np.int32),
        has_usual=np.zeros(models, dtype=np.bool_),
    )


def affected_by(profiles: Sequence[Profile], infos: Sequence[PodClass]) -> Bools:
    """Whether placing one class may change another's totals on other nodes: bool[placed, asked].

    Plugins whose counts across nodes the kernel keeps up to date are left out.
    """
    result: Bools = np.zeros((len(infos), len(infos)), dtype=np.bool_)
    for profile in dict.fromkeys(profiles):
        plugins = [plugin for plugin in profile.cross_node if not is_counted(plugin)]
        placed: dict[tuple[Effect, ...], list[int]] = {}
        for place, info in enumerate(infos):
            effects = effects_of(plugins, info)
            if any(each is not ON_NONE for each in effects):
                placed.setdefault(effects, []).append(place)
        asked = [place for place, each in enumerate(profiles) if each is profile]
        for effects, places in placed.items():
            for place in asked:
                if concern(effects, infos[place]):
                    result[places, place] = True
    return result
