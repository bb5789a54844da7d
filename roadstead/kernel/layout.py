"""How covered classes are laid out as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadstead.facts.pod import HostPort, PodFacts
from roadstead.framework.plugin import Effect, Plugin
from roadstead.framework.profile import Profile, concern, effects_of
from roadstead.kernel.arrays import BUCKETS, END, GROUP, Specs, Totals
from roadstead.kernel.cover import ClassSpec
from roadstead.kernel.stills import Still
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_info import PodInfo
from roadstead.nodes.view import Rows
from roadstead.plugins.inter_pod_affinity import InterPodAffinity
from roadstead.plugins.node_ports import conflicts
from roadstead.plugins.node_volume_limits import NodeVolumeLimits
from roadstead.plugins.pod_topology_spread import PodTopologySpread
from roadstead.plugins.volume_binding import VolumeBinding
from roadstead.plugins.volume_restrictions import VolumeRestrictions


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

    handled: plugins that the kernel keeps up to date itself. The classes are covered: where it does
    not, PodTopologySpread does not concern them, InterPodAffinity could only come to where one of
    the two has terms, and those of volumes to where one has any.
    """
    result: Bools = np.zeros((len(infos), len(infos)), dtype=np.bool_)
    related = [place for place, info in enumerate(infos) if _has_relations(info.facts, handled)]
    plugins = {p: [x for x in p.cross_node if type(x) not in handled] for p in set(profiles)}
    wary = {profile for profile in plugins if _has_unknown(profile)}
    groups: dict[tuple[Profile, bool], _ByEffects] = {}
    for asked, (profile, info) in enumerate(zip(profiles, infos, strict=True)):
        all_matter = profile in wary or _has_relations(info.facts, handled)
        key = profile, all_matter
        if key not in groups:
            placed = range(len(infos)) if all_matter else related
            groups[key] = _by_effects(plugins[profile], infos, placed)
        for effects, places in groups[key].items():
            if concern(effects, info):
                result[places, asked] = True
    return result


_ByEffects = dict[tuple[Effect, ...], list[int]]
"""Places of classes, by what they do to others."""


def _by_effects(
    plugins: Sequence[Plugin], infos: Sequence[PodInfo], places: Sequence[int]
) -> _ByEffects:
    found: _ByEffects = {}
    for place in places:
        found.setdefault(effects_of(plugins, infos[place]), []).append(place)
    return found


def _has_unknown(profile: Profile) -> bool:
    known = (
        *(PodTopologySpread, InterPodAffinity),
        *(VolumeRestrictions, NodeVolumeLimits, VolumeBinding),
    )
    return any(type(plugin) not in known for plugin in profile.cross_node)


def _has_relations(facts: PodFacts, handled: tuple[type[Plugin], ...]) -> bool:
    terms = (
        *(facts.pod_affinity, facts.pod_anti_affinity),
        *(facts.preferred_pod_affinity, facts.preferred_pod_anti_affinity),
    )
    return bool(facts.volumes) or (InterPodAffinity not in handled and any(terms))
