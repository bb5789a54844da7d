"""Leasing: how a scheduler gets pods from the queue, and keeps them while it decides."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Hashable, Mapping

from roadstead.actors.messages import LEASE, RENEW, LeaseAsk, Leased, Renew, Settle
from roadstead.actors.names import QUEUE, index_of
from roadstead.actors.scheduler.effects import EffectRunner
from roadstead.actors.seam import ActorLostError, DeadlineError, clock_s
from roadstead.attempts.core import AttemptsCore
from roadstead.config.settings import Settings
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


class Leasing:
    """Leases pods of the queue for one scheduler, and renews its leases.

    profile: the one that its pods must have, "" for any. partition: its own nodes, if it has some.
    """

    def __init__(
        self,
        core: AttemptsCore,
        effects: EffectRunner,
        settings: Settings,
        profiles: Mapping[str, Profile],
        classes: PodClasses,
        members: GroupMembers,
        *,
        thinking: Thinking,
        partition: Partition | None,
    ) -> None:
        self.renew_every_s = settings.deadlines.lease_s / RENEWALS
        self._core = core
        self._effects = effects
        self._batch = settings.batch
        self._profile = settings.scheduler_profiles[index_of(core.owner)]
        self._profiles = profiles
        self._classes = classes
        self._members = members
        self._thinking = thinking
        self._partition = partition
        self._leases: tuple[int, ...] = ()
        self._renewed_s = 0.0

    async def lease(self) -> None:
        """Leases the next pods, if there are any, and hands them to the core."""
        ask = LeaseAsk(
            *(self._core.owner, self._core.epoch, self._batch, LEASE_WAIT_S),
            *(self._profile, self._core.waiting_gangs()),
        )
        effects, started = self._effects, time.perf_counter()
        queue = effects.ref(QUEUE).ref
        try:
            leased = await queue.call(LEASE, ask, timeout_s=effects.call_s + LEASE_WAIT_S)
        except (DeadlineError, ActorLostError) as failure:
            # The queue returns the pods of this lease to activeQ when it ends.
            effects.bear(failure)
            return
        effects.answered()
        effects.spend("lease", started)
        if leased.lease_id:
            pods = pods_in_cycle(leased, self._profiles, self._classes)
            for namespace, group, bound in leased.gangs:
                self._members.hear((namespace, group), bound)
            effects.figures.retries += sum(attempt > 1 for attempt in leased.attempts)
            self._leases = (*self._leases, leased.lease_id) if self._thinking.takes_time else ()
            # What the queue heard of before it lent them must be seen when they are decided: nobody
            # would wake them for it again.
            await effects.settle(NOTHING_SETTLED)
            await effects.perform(self._core.lease(leased.lease_id, pods))
        if self._partition is not None:
            self._partition.leased(leased.waiting, leased.turn)

    async def renew(self) -> None:
        """Renew the leases of pods that are decided slowly, or wait for Permit."""
        leases = {*self._leases, *self._core.waiting_leases()}
        if not leases or clock_s() - self._renewed_s < self.renew_every_s:
            return
        self._renewed_s = clock_s()
        ask, queue = Renew(tuple(sorted(leases))), self._effects.ref(QUEUE)
        answer = await queue.call(RENEW, ask, timeout_s=self._effects.call_s)
        self._leases = tuple(each for each in answer.lease_ids if each in self._leases)

    async def sleep_until(self, at_s: float) -> None:
        """Sleep, for longer than leases last if need be."""
        while (left_s := at_s - clock_s()) > 0:
            await asyncio.sleep(min(left_s, self.renew_every_s))
            await self.renew()

    async def renewing(self, work: Coroutine[None, None, None]) -> None:
        """Work that may take longer than leases last."""
        working = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({working}, timeout=self.renew_every_s))[0]:
                await self.renew()
        finally:
            working.cancel()
        await working


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
