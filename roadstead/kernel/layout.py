"""How covered classes are laid out as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadstead.facts.pod import HostPort
from roadstead.framework.plugin import ON_NONE, Effect, Plugin
from roadstead.framework.profile import Profile, concern, effects_of
from roadstead.kernel.arrays import BUCKETS, END, GROUP, Specs, Totals
from roadstead.kernel.cover import ClassSpec
from roadstead.kernel.stills import Still
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.view import Rows
from roadstead.plugins.node_ports import conflicts


def lay_out_specs(
    specs: Sequence[ClassSpec],
    infos: Sequence[PodInfo],
    fixed: Sequence[int],
    model_of: I64,
    ports: dict[HostPort, int],
    affected: Bools,
) -> Specs:
    """Specs of classes in order. fixed: the still of each model; ports: the place of each port."""
    shapes = [spec.fit.shape for spec in specs if spec.fit.shape is not None]
    shape_of = {id(shape): place for place, shape in enumerate(shapes)}
    fits = [
        (spec.fit.strategy, spec.fit.weight, shape_of.get(id(spec.fit.shape), 0)) for spec in specs
    ]
    names = tuple(ports)
    clash = [[conflicts((one,), ((other, 1),)) for other in names] for one in names]
    return Specs(
        wants=_lines([spec.wants for spec in specs], 2),
        adds=_lines([spec.adds for spec in specs], 2),
        nonzero=np.array([info.nonzero for info in infos], dtype=np.int64),
        ports=_lines([[(ports[port],) for port in spec.ports] for spec in specs], 1).squeeze(2),
        fit=np.array(fits, dtype=np.int64),
        fit_lines=_lines([spec.fit.lines for spec in specs], 4),
        shapes=np.array(shapes, dtype=np.int64).reshape(-1, 101),
        balanced=np.array([-1 if s.balanced is None else s.balanced for s in specs], np.int64),
        balanced_lines=_lines([spec.balanced_lines for spec in specs], 2),
        conflicts=np.array(clash, dtype=np.bool_).reshape(len(names), len(names)),
        affects=affected,
        fixed=np.array(fixed, dtype=np.int64)[model_of],
        model=model_of,
    )


def _lines(each: Sequence[Sequence[tuple[int, ...]]], width: int) -> I64:
    """int64[class, k, width], END where a class has fewer."""
    most = max((len(lines) for lines in each), default=0)
    result: I64 = np.full((len(each), most, width), END, dtype=np.int64)
    for place, lines in enumerate(each):
        if lines:
            result[place, : len(lines)] = lines
    return result


def empty_totals(classes: int, stills: Sequence[Still], models: int, row_at: Rows) -> Totals:
    """Totals of classes, none of them built. row_at: the row of each place."""
    rows = len(row_at)
    groups = max((still.raw.shape[1] for still in stills), default=1)
    return Totals(
        passes=np.array([still.passes[row_at] for still in stills], dtype=np.bool_).reshape(
            len(stills), rows
        ),
        still=np.array([still.fixed[row_at] for still in stills], dtype=np.int32).reshape(
            len(stills), rows
        ),
        group_at=np.array([still.group[row_at] for still in stills], dtype=np.int32).reshape(
            len(stills), rows
        ),
        group=np.array([still.group for still in stills], dtype=np.int32).reshape(
            len(stills), rows
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


def affected_by(
    profiles: Sequence[Profile], infos: Sequence[PodInfo], handled: tuple[type[Plugin], ...]
) -> Bools:
    """Whether placing one class may change another on other nodes: bool[placed, asked].

    handled: plugins that the kernel keeps up to date itself.
    """
    result: Bools = np.zeros((len(infos), len(infos)), dtype=np.bool_)
    for profile in dict.fromkeys(profiles):
        plugins = [plugin for plugin in profile.cross_node if type(plugin) not in handled]
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
