"""Number of pods of a gang that must still be bound; `all_or_nothing` enforces it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import GroupKey, PodGroup, group_key, min_member
from roadstead.framework.profile import Profile
from roadstead.nodes.table import NodeTable


class GangShortfall:
    """Numbers of pods that gangs lack: minMember, minus pods on the binder's table.

    uncounted_pods: pods that are bound to removed nodes.
    """

    def __init__(
        self,
        cluster: ClusterFacts,
        profiles: Mapping[str, Profile],
        table: NodeTable,
        uncounted_pods: Callable[[], Iterable[PodFacts]],
    ) -> None:
        self._uncounted_pods = uncounted_pods
        self._groups: dict[GroupKey, PodGroup] = {each.key: each for each in cluster.pod_groups}
        self._gang_profiles = {
            name
            for name, profile in profiles.items()
            if any(plugin.places_gangs for plugin in profile.permit)
        }
        self._table = table

    def missing_members(self, pod: PodFacts) -> int:
        """Return how many pods of its gang must still be bound; 0 if its profile has no gangs."""
        key = group_key(pod)
        if key is None or pod.pod_group is None or pod.scheduler_name not in self._gang_profiles:
            return 0
        group = self._groups.get(key)
        needed = min_member(pod, group) or 0
        bound = sum(
            count
            for pod_class, count in self._table.class_counts.items()
            if group_key(pod_class.facts) == key
        )
        # Pods of removed nodes stay bound, and schedulers count them, too.
        bound += sum(group_key(facts) == key for facts in self._uncounted_pods())
        # Members that ran from the start may be on nodes that the binder does not know.
        ran = group.running if group is not None else 0
        return max(0, needed - max(bound, ran))
