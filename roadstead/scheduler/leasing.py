"""Leasing: how a scheduler gets pods from the queue, and keeps them while it decides."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import cast

from roadstead.attempts.core import AttemptsCore
from roadstead.config.settings import Settings
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.jobs import SimulatedLatency
from roadstead.cycle.partitions import Partition
from roadstead.framework.members import GroupMembers
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.scheduler.needs import (
    AskLease,
    LeasedPods,
    RenewLeases,
    Steps,
    leased_by,
)
from roadstead.scheduler.performing import Performer

RENEWALS = 3
"""How often a lease is renewed in its time by a scheduler that thinks for long."""


class Leasing:
    """Leases pods of the queue for one scheduler, and renews its leases.

    profile: the one that its pods must have, "" for any. partition: its own nodes, if it has some.
    """

    def __init__(
        self,
        core: AttemptsCore,
        performer: Performer,
        settings: Settings,
        profiles: Mapping[str, Profile],
        classes: PodClasses,
        members: GroupMembers,
        *,
        profile: str,
        latency: SimulatedLatency,
        partition: Partition | None,
    ) -> None:
        self.renew_every_s = settings.deadlines.lease_s / RENEWALS
        self._core = core
        self._performer = performer
        self._batch = settings.batch
        self._profile = profile
        self._profiles = profiles
        self._classes = classes
        self._members = members
        self._latency = latency
        self._partition = partition
        self._leases: tuple[int, ...] = ()
        self._renewed_s = 0.0

    def lease(self) -> Steps[None]:
        """Leases the next pods, if there are any, and hands them to the core."""
        ask = AskLease(self._batch, self._profile, self._core.waiting_gangs())
        leased = yield from leased_by(ask)
        if leased is None:
            # The queue returns the pods of this lease to activeQ when it ends.
            return
        if leased.lease_id:
            pods = pods_in_cycle(leased, self._profiles, self._classes)
            for namespace, group, bound in leased.gangs:
                self._members.hear((namespace, group), bound)
            self._performer.figures.retries += sum(attempt > 1 for attempt in leased.attempts)
            self._leases = (*self._leases, leased.lease_id) if self._latency.is_on else ()
            # What the queue heard of before it leased them must be seen when they are decided:
            # nobody would wake them for it again.
            yield from self._performer.settle()
            yield from self._performer.perform(self._core.lease(leased.lease_id, pods))
        if self._partition is not None:
            self._partition.leased(leased.waiting, leased.turn)

    def renew(self, now_s: float) -> Steps[None]:
        """Renew the leases of pods that are decided slowly, or wait for Permit."""
        leases = {*self._leases, *self._core.waiting_leases()}
        if not leases or now_s - self._renewed_s < self.renew_every_s:
            return
        self._renewed_s = now_s
        going_on = cast("tuple[int, ...]", (yield RenewLeases(tuple(sorted(leases)))))
        self._leases = tuple(each for each in going_on if each in self._leases)


def pods_in_cycle(
    leased: LeasedPods, profiles: Mapping[str, Profile], classes: PodClasses
) -> list[PodInCycle]:
    """The pods of a lease, in order; what is the same for a class is found once.

    KeyError for a pod of no profile.
    """
    known: dict[int, tuple[PodClass, Hashable]] = {}
    pods = []
    numbers = zip(leased.attempts, leased.draws, strict=True)
    for (uid, key, facts), tries in zip(leased.pods, numbers, strict=True):
        found = known.get(id(facts))
        if found is None:
            profile, info = profiles[facts.scheduler_name], classes.info(facts)
            found = info, profile.class_of(info, uid)
            if profile.is_signed(info):
                known[id(facts)] = found
        pods.append(PodInCycle(uid, key, *found, *tries))
    return pods
