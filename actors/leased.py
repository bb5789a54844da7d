"""Pods of a lease as a scheduler's cycle sees them: what is the same for a class is found once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from roadstead.actors.messages import Leased
from roadstead.cycle.batch import PodInCycle
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_info import PodClasses, PodInfo


def pods_in_cycle(
    leased: Leased, profiles: Mapping[str, Profile], classes: PodClasses
) -> list[PodInCycle]:
    """The pods of a lease, in order. KeyError for a pod of no profile."""
    known: dict[int, tuple[PodInfo, Hashable]] = {}
    pods = []
    for (uid, key, facts), attempt in zip(leased.pods.keyed(), leased.attempts, strict=True):
        found = known.get(id(facts))
        if found is None:
            profile, info = profiles[facts.scheduler_name], classes.info(facts)
            found = info, profile.class_of(info, uid)
            if profile.is_signed(info):
                known[id(facts)] = found
        pods.append(PodInCycle(uid, key, *found, attempt))
    return pods
