"""InterPodAffinity as counters: one for each family of terms (`Family`) and topology key.

A family is terms with one meaning, such as the required anti-affinity of pods that are placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roadstead.framework.cycle_state import CycleState
from roadstead.framework.evaluation import Evaluation
from roadstead.kernel.counter_arrays import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI,
    SCORE,
    ClassCounters,
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

_COUNTER_TYPES = {
    Family.EXISTING_ANTI: EXISTING_ANTI,
    Family.AFFINITY: AFFINITY,
    Family.ANTI_AFFINITY: ANTI_AFFINITY,
    Family.SCORE: SCORE,
}


def add_counters(
    counter_set: ClassCounters, evaluation: Evaluation, pod_profiles: Sequence[PodClass]
) -> None:
    """Add the counters of a class. pod_profiles: a pod of each pod profile (`counter_arrays`)."""
    plugins = []
    for plugin in evaluation.profile.filter:
        if isinstance(plugin, InterPodAffinity):
            plugins.append(plugin)
            counter_set.counters += _required_counters(
                counter_set, plugin, evaluation.state, pod_profiles
            )
    for each in evaluation.profile.score:
        if isinstance(each.plugin, InterPodAffinity) and each.plugin.runs_score(
            counter_set.pod_class
        ):
            plugins.append(each.plugin)
            counter_set.counters += _score_counters(
                counter_set, each.plugin, evaluation.score_state, pod_profiles
            )
            counter_set.affinity_weight = each.weight
    # By type of counter and topology key.
    index_of = {
        (counter.kind, counter.key): index for index, counter in enumerate(counter_set.counters)
    }

    def additions_of(other: PodClass) -> Iterable[tuple[int, int]]:
        for counter, amount in _added(plugins[-1], counter_set.pod_class, other) if plugins else ():
            if amount and counter in index_of:
                yield index_of[counter], amount

    counter_set.additions_of.append(additions_of)


def _added(
    plugin: InterPodAffinity, pod_class: PodClass, other: PodClass
) -> list[tuple[tuple[int, str], int]]:
    """Return what one pod of another class adds, by type of counter and topology key.

    `InterPodAffinity.relation` has the amounts by family and topology key.
    """
    amounts = plugin.relation(pod_class, other)
    types = _COUNTER_TYPES
    return [((types[family], key), n) for (family, key), n in amounts if family in types]


def _keys(
    plugin: InterPodAffinity, pod_class: PodClass, pod_profiles: Sequence[PodClass], kind: int
) -> list[str]:
    """Return the topology keys of counters of a type to which pods of some profile may add."""
    added = (each for pod in pod_profiles for each, _ in _added(plugin, pod_class, pod))
    return [key for each, key in added if each == kind]


def _required_counters(
    counter_set: ClassCounters,
    plugin: InterPodAffinity,
    state: CycleState,
    pod_profiles: Sequence[PodClass],
) -> list[TermCounter]:
    """Return the counters of required terms, and set `matches_itself`."""
    stored = state.get(plugin.name)
    counts_so_far = stored.counts if isinstance(stored, FilterState) else PodCounts({}, {}, {})
    affinity_keys, anti_affinity_keys = plugin.required_keys(counter_set.pod_class)
    counter_set.matches_itself = plugin.matches_itself(counter_set.pod_class)
    # Keys without a count yet, to which pods that are placed later may add.
    later_keys = _keys(plugin, counter_set.pod_class, pod_profiles, EXISTING_ANTI)
    return [
        TermCounter(kind, key, counts.get(key, {}))
        for kind, keys, counts in (
            (
                EXISTING_ANTI,
                (*counts_so_far.existing_anti, *later_keys),
                counts_so_far.existing_anti,
            ),
            (AFFINITY, affinity_keys, counts_so_far.affinity),
            (ANTI_AFFINITY, anti_affinity_keys, counts_so_far.anti_affinity),
        )
        for key in dict.fromkeys(keys)
    ]


def _score_counters(
    counter_set: ClassCounters,
    plugin: InterPodAffinity,
    state: CycleState,
    pod_profiles: Sequence[PodClass],
) -> list[TermCounter]:
    """Return the counters of the weights that terms add to the score."""
    stored = state.get(plugin.name)
    counts_so_far = stored.scores if isinstance(stored, TopologyScores) else {}
    keys = dict.fromkeys(
        (*counts_so_far, *_keys(plugin, counter_set.pod_class, pod_profiles, SCORE))
    )
    return [TermCounter(SCORE, key, counts_so_far.get(key, {})) for key in keys]
