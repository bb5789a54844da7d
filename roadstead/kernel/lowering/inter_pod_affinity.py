"""InterPodAffinity as counters: one for each family of terms and topology key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.evaluation import Evaluation
from roadstead.kernel.relation_arrays import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI,
    SCORE,
    RelationOf,
    TermCounter,
)
from roadstead.nodes.pod_class import PodClass
from roadstead.plugins.inter_pod_affinity import (
    FilterState,
    InterPodAffinity,
    PodCounts,
    TopologyScores,
)
from roadstead.plugins.term_relations import Family

_KINDS = {
    Family.EXISTING_ANTI: EXISTING_ANTI,
    Family.AFFINITY: AFFINITY,
    Family.ANTI_AFFINITY: ANTI_AFFINITY,
    Family.SCORE: SCORE,
}


def add_counters(
    found: RelationOf, evaluation: Evaluation, pod_profiles: Sequence[PodClass]
) -> None:
    """Add the counters of a class. pod_profiles: a pod of each profile."""
    plugins = []
    for plugin in evaluation.profile.filter:
        if isinstance(plugin, InterPodAffinity):
            plugins.append(plugin)
            found.counters += _required(found, plugin, evaluation.state, pod_profiles)
    for each in evaluation.profile.score:
        if isinstance(each.plugin, InterPodAffinity) and each.plugin.runs_score(found.pod_class):
            plugins.append(each.plugin)
            found.counters += _preferred(found, each.plugin, evaluation.score_state, pod_profiles)
            found.affinity_weight = each.weight
    index_of = {(counter.kind, counter.key): index for index, counter in enumerate(found.counters)}

    def adds(other: PodClass) -> Iterable[tuple[int, int]]:
        for counter, amount in _added(plugins[-1], found.pod_class, other) if plugins else ():
            if amount and counter in index_of:
                yield index_of[counter], amount

    found.adds.append(adds)


def _added(
    plugin: InterPodAffinity, pod_class: PodClass, other: PodClass
) -> list[tuple[tuple[int, str], int]]:
    """Return what one pod of another class adds, by type of counter and topology key."""
    relation = plugin.relation(pod_class, other)
    return [((_KINDS[family], key), n) for (family, key), n in relation if family in _KINDS]


def _keys(
    plugin: InterPodAffinity, pod_class: PodClass, pod_profiles: Sequence[PodClass], kind: int
) -> list[str]:
    """Return the topology keys of counters of a type to which pods of some profile may add."""
    added = (each for pod in pod_profiles for each, _ in _added(plugin, pod_class, pod))
    return [key for each, key in added if each == kind]


def _required(
    found: RelationOf, plugin: InterPodAffinity, state: CycleState, pod_profiles: Sequence[PodClass]
) -> list[TermCounter]:
    found_before = state.get(plugin.name)
    before = found_before.counts if isinstance(found_before, FilterState) else PodCounts({}, {}, {})
    affinity_keys, anti_affinity_keys = plugin.required_keys(found.pod_class)
    found.matches_itself = plugin.matches_itself(found.pod_class)
    others = _keys(plugin, found.pod_class, pod_profiles, EXISTING_ANTI)
    return [
        TermCounter(kind, key, counts.get(key, {}))
        for kind, keys, counts in (
            (EXISTING_ANTI, (*before.existing_anti, *others), before.existing_anti),
            (AFFINITY, affinity_keys, before.affinity),
            (ANTI_AFFINITY, anti_affinity_keys, before.anti_affinity),
        )
        for key in dict.fromkeys(keys)
    ]


def _preferred(
    found: RelationOf, plugin: InterPodAffinity, state: CycleState, pod_profiles: Sequence[PodClass]
) -> list[TermCounter]:
    found_before = state.get(plugin.name)
    before = found_before.scores if isinstance(found_before, TopologyScores) else {}
    keys = dict.fromkeys((*before, *_keys(plugin, found.pod_class, pod_profiles, SCORE)))
    return [TermCounter(SCORE, key, before.get(key, {})) for key in keys]
