"""InterPodAffinity as lines: one for each family of terms and topology key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.evaluation import Evaluation
from roadstead.kernel.relation_arrays import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI,
    SCORE,
    Line,
    RelationOf,
)
from roadstead.nodes.pod_class import PodClass
from roadstead.plugins.inter_pod_affinity import (
    FilterState,
    InterPodAffinity,
    PodCounts,
    TopologyScores,
)
from roadstead.plugins.inter_pod_counts import Family

_KINDS = {
    Family.EXISTING_ANTI: EXISTING_ANTI,
    Family.AFFINITY: AFFINITY,
    Family.ANTI_AFFINITY: ANTI_AFFINITY,
    Family.SCORE: SCORE,
}


def add_lines(found: RelationOf, evaluation: Evaluation, faces: Sequence[PodClass]) -> None:
    """Add the lines of a class. faces: a pod of each face."""
    plugins = []
    for plugin in evaluation.profile.filter:
        if isinstance(plugin, InterPodAffinity):
            plugins.append(plugin)
            found.lines += _required(found, plugin, evaluation.state, faces)
    for each in evaluation.profile.score:
        if isinstance(each.plugin, InterPodAffinity) and each.plugin.scores(found.info):
            plugins.append(each.plugin)
            found.lines += _preferred(found, each.plugin, evaluation.score_state, faces)
            found.near_weight = each.weight
    places = {(line.kind, line.key): place for place, line in enumerate(found.lines)}

    def adds(other: PodClass) -> Iterable[tuple[int, int]]:
        for line, amount in _added(plugins[-1], found.info, other) if plugins else ():
            if amount and line in places:
                yield places[line], amount

    found.adds.append(adds)


def _added(
    plugin: InterPodAffinity, info: PodClass, other: PodClass
) -> list[tuple[tuple[int, str], int]]:
    """Return what one pod of another class adds, by type of line and topology key."""
    relation = plugin.relation(info, other)
    return [((_KINDS[family], key), n) for (family, key), n in relation if family in _KINDS]


def _keys(
    plugin: InterPodAffinity, info: PodClass, faces: Sequence[PodClass], kind: int
) -> list[str]:
    """Return the topology keys of lines of a type to which pods of some face may add."""
    added = (each for pod in faces for each, _ in _added(plugin, info, pod))
    return [key for each, key in added if each == kind]


def _required(
    found: RelationOf, plugin: InterPodAffinity, state: CycleState, faces: Sequence[PodClass]
) -> list[Line]:
    found_before = state.get(plugin.name)
    before = found_before.counts if isinstance(found_before, FilterState) else PodCounts({}, {}, {})
    near, away = plugin.required_keys(found.info)
    found.near_itself = plugin.is_near_itself(found.info)
    others = _keys(plugin, found.info, faces, EXISTING_ANTI)
    return [
        Line(kind, key, counts.get(key, {}))
        for kind, keys, counts in (
            (EXISTING_ANTI, (*before.existing_anti, *others), before.existing_anti),
            (AFFINITY, near, before.affinity),
            (ANTI_AFFINITY, away, before.anti_affinity),
        )
        for key in dict.fromkeys(keys)
    ]


def _preferred(
    found: RelationOf, plugin: InterPodAffinity, state: CycleState, faces: Sequence[PodClass]
) -> list[Line]:
    found_before = state.get(plugin.name)
    before = found_before.scores if isinstance(found_before, TopologyScores) else {}
    keys = dict.fromkeys((*before, *_keys(plugin, found.info, faces, SCORE)))
    return [Line(SCORE, key, before.get(key, {})) for key in keys]
