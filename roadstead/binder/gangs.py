"""Gangs at the commit: all of those in a batch that belong together, or none of them (I10).

A scheduler sends a gang whole; what it read may be old, so that some of its pods no longer fit.
Before anything is committed, the batch is tried out: each request on top of those before it. A gang
of which too few fit is taken out and the rest is tried again, since they may fit now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from roadstead.binder.pods import BindRequest
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.pod_groups import GroupKey, PodGroup, group_key
from roadstead.framework.profile import Profile
from roadstead.nodes.table import NodeTable
from roadstead.placements import Placements

Missing = Callable[[PodFacts], int]
"""How many pods of a pod's gang must still be bound for it to be whole; 0 for a pod without one."""

_PLUGIN = "Coscheduling"
BROKEN = "too few pods of its group can be bound with it"


class GangNeeds:
    """What gangs need, from the cluster's PodGroups and the pods, counted on the binder's table."""

    def __init__(
        self, cluster: ClusterFacts, profiles: Mapping[str, Profile], table: NodeTable
    ) -> None:
        self._groups: dict[GroupKey, PodGroup] = {each.key: each for each in cluster.pod_groups}
        self._heeding = {
            name
            for name, profile in profiles.items()
            if any(plugin.name == _PLUGIN for plugin in profile.permit)
        }
        self._table = table

    def missing(self, pod: PodFacts) -> int:
        """How many of its gang must still be bound; 0 where its profile heeds no gangs."""
        key = group_key(pod)
        if key is None or pod.pod_group is None or pod.scheduler_name not in self._heeding:
            return 0
        group = self._groups.get(key)
        needed = group.min_member if group is not None else None
        if needed is None:
            needed = pod.pod_group.min_member or 0
        bound = sum(
            count
            for info, count in self._table.class_counts.items()
            if group_key(info.facts) == key
        )
        # Members that ran from the start may not be on a node that is known here.
        ran = group.running if group is not None else 0
        return max(0, needed - max(bound, ran))


def broken_gangs(
    requests: Sequence[BindRequest],
    placements: Placements,
    fits: Callable[[BindRequest], bool],
    missing: Missing,
) -> frozenset[str]:
    """Tokens of requests whose gang would stay broken; `placements` are as before afterwards.

    fits: whether a request could be committed on the placements as they are.
    """
    needs = {key: missing(r.facts) for r in requests if (key := group_key(r.facts)) is not None}
    needs = {key: needed for key, needed in needs.items() if needed}
    broken: set[GroupKey] = set()
    while len(broken) < len(needs):
        tried = [r for r in requests if group_key(r.facts) not in broken]
        placed = _tried(tried, placements, fits)
        short = {key for key, needed in needs.items() if placed[key] < needed} - broken
        if not short:
            break
        broken |= short
    return frozenset(r.token for r in requests if group_key(r.facts) in broken)


def _tried(
    requests: Sequence[BindRequest], placements: Placements, fits: Callable[[BindRequest], bool]
) -> Counter[GroupKey | None]:
    """How many pods of each gang can be committed in this order."""
    placed: Counter[GroupKey | None] = Counter()
    uids = []
    for request in requests:
        if fits(request):
            placements.place(request.uid, request.node_name, request.facts)
            uids.append(request.uid)
            placed[group_key(request.facts)] += 1
    for uid in reversed(uids):
        placements.lift(uid)
    return placed
