"""How a scheduler comes by its pods: leases of the queue, and how it keeps them while it thinks."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping

from roadstead.actors.messages import LEASE, RENEW, LeaseAsk, Leased, Renew, Settle
from roadstead.actors.names import QUEUE, index_of
from roadstead.actors.scheduler.effects import SchedulerEffects
from roadstead.actors.seam import ActorLostError, DeadlineError, clock_s
from roadstead.cycle.batch import PodInCycle
from roadstead.cycle.jobs import Thinking
from roadstead.cycle.partitions import Partition
from roadstead.framework.members import GroupMembers
from roadstead.framework.profile import Profile
from roadstead.nodes.pod_info import PodClasses, PodInfo

LEASE_WAIT_S = 0.5
NOTHING_SETTLED = Settle((), (), ())
RENEWALS = 3
"""How often a lease is renewed in its time by a scheduler that thinks for long."""


class Leasing(SchedulerEffects):
    """What SchedulerActor asks of the queue."""

    _profiles: Mapping[str, Profile]
    _classes: PodClasses
    _members: GroupMembers
    _thinking: Thinking
    _partition: Partition | None
    _leases: tuple[int, ...] = ()
    _renewed_s: float = 0.0

    async def _lease(self) -> None:
        """Takes the next pods from the queue, if there are any."""
        profile = self._plan.settings.scheduler_profiles[index_of(self._name)]
        gangs = self.core.waiting_gangs()
        size = self._plan.settings.batch
        ask = LeaseAsk(self._name, self._epoch, size, LEASE_WAIT_S, profile, gangs)
        started = time.perf_counter()
        queue = self._ref(QUEUE).ref
        try:
            leased = await queue.call(LEASE, ask, timeout_s=self._call_s + LEASE_WAIT_S)
        except (DeadlineError, ActorLostError) as failure:
            # Whatever it lent comes back to it when the lease is over.
            self._bear(failure)
            return
        self._losses = 0
        self._spend("lease", started)
        if leased.lease_id:
            pods = pods_in_cycle(leased, self._profiles, self._classes)
            for namespace, group, bound in leased.gangs:
                self._members.hear((namespace, group), bound)
            self._figures.retries += sum(attempt > 1 for attempt in leased.attempts)
            self._leases = (*self._leases, leased.lease_id) if self._thinking.takes_time else ()
            # What the queue heard of before it lent them must be seen when they are decided: nobody
            # would wake them for it again.
            await self._settle(NOTHING_SETTLED)
            await self._perform(self.core.lease(leased.lease_id, pods))
        if self._partition is not None:
            self._partition.leased(leased.waiting, leased.turn)

    async def _renew(self) -> None:
        """Tells the queue that thinking goes on, where that takes long, or waiting for Permit."""
        leases = {*self._leases, *self.core.waiting_leases()}
        if not leases or clock_s() - self._renewed_s < self._renew_s:
            return
        self._renewed_s = clock_s()
        ask = Renew(tuple(sorted(leases)))
        answer = await self._ref(QUEUE).call(RENEW, ask, timeout_s=self._call_s)
        self._leases = tuple(each for each in answer.lease_ids if each in self._leases)

    @property
    def _renew_s(self) -> float:
        return self._plan.settings.deadlines.lease_s / RENEWALS


def pods_in_cycle(
    leased: Leased, profiles: Mapping[str, Profile], classes: PodClasses
) -> list[PodInCycle]:
    """The pods of a lease, in order; what is the same for a class is found once.

    KeyError for a pod of no profile.
    """
    known: dict[int, tuple[PodInfo, Hashable]] = {}
    pods = []
    numbers = zip(leased.attempts, leased.draws, strict=True)
    for (uid, key, facts), tries in zip(leased.pods.keyed(), numbers, strict=True):
        found = known.get(id(facts))
        if found is None:
            profile, info = profiles[facts.scheduler_name], classes.info(facts)
            found = info, profile.class_of(info, uid)
            if profile.is_signed(info):
                known[id(facts)] = found
        pods.append(PodInCycle(uid, key, *found, *tries))
    return pods
