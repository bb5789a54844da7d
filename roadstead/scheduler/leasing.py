"""Leasing: leases of pods from the queue, and their renewal while a scheduler decides.

A lease is a number of pods that the queue gives to one scheduler until a deadline.
"""

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
    LeasedPods,
    RenewLeases,
    RequestLease,
    Steps,
    queue_answer,
)
from roadstead.scheduler.performer import Performer

RENEWALS = 3
"""Number of renewals within the duration of a lease, by a scheduler that decides slowly."""


class Leasing:
    """Lease pods from the queue for one scheduler, and renew its leases.

    core: has the leased pods and their attempts. performer: carries out the core's commands.
    classes: the pod classes of this process. members: numbers of bound pods of gangs. profile:
    scheduler name that the pods must have, "" for any. latency: a simulated time for each decision.
    partition: the scheduler's own nodes, in mode `partitioned`.
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
        self._max_pods = settings.batch
        self._profile = profile
        self._profiles = profiles
        self._classes = classes
        self._members = members
        self._latency = latency
        self._partition = partition
        self._leases: tuple[int, ...] = ()
        self._renewed_s = 0.0

    def lease(self) -> Steps[None]:
        """Lease the next pods, if there are any, and pass them to the core."""
        request = RequestLease(self._max_pods, self._profile, self._core.waiting_gangs())
        leased = yield from queue_answer(request)
        if leased is None:
            # Without an answer, the queue returns the pods to activeQ when the lease expires.
            return
        if leased.lease_id:
            pods = pods_in_cycle(leased, self._profiles, self._classes)
            for namespace, group, bound in leased.gangs:
                self._members.record_bound((namespace, group), bound)
            self._performer.metrics.retries += sum(attempt > 1 for attempt in leased.lease_counts)
            # Leases are renewed while their pods wait for a simulated decision time (decision 19).
            self._leases = (*self._leases, leased.lease_id) if self._latency.is_on else ()
            # An empty update fetches the number of the cache's last change. Events that the queue
            # received before this lease requeue none of its pods again, so these changes must be on
            # the table when the pods are decided.
            yield from self._performer.update_attempts()
            yield from self._performer.perform(self._core.lease(leased.lease_id, pods))
        # The turn determines which partitions are this scheduler's own; policy `adaptive` reads
        # `waiting`.
        if self._partition is not None:
            self._partition.record_lease(leased.waiting, leased.turn)

    def renew(self, now_s: float) -> Steps[None]:
        """Renew the leases of pods that are decided slowly, or wait for Permit."""
        leases = {*self._leases, *self._core.waiting_leases()}
        if not leases or now_s - self._renewed_s < self.renew_every_s:
            return
        self._renewed_s = now_s
        renewed = cast("tuple[int, ...]", (yield RenewLeases(tuple(sorted(leases)))))
        self._leases = tuple(each for each in renewed if each in self._leases)


def pods_in_cycle(
    leased: LeasedPods, profiles: Mapping[str, Profile], classes: PodClasses
) -> list[PodInCycle]:
    """Return the pods of a lease, in order; class and signature are computed once per class.

    Raises KeyError for a pod without a profile.
    """
    # By id of the facts, which all pods of a class in a lease share: class, signature, and
    # substitute (a class with the same answers, by which they are evaluated).
    known: dict[int, tuple[PodClass, Hashable, PodClass | None]] = {}
    pods = []
    numbers = zip(leased.lease_counts, leased.tie_break_numbers, strict=True)
    for (uid, key, facts), counts in zip(leased.pods, numbers, strict=True):
        found = known.get(id(facts))
        if found is None:
            profile, pod_class = profiles[facts.scheduler_name], classes.pod_class(facts)
            substitute = profile.substitute(pod_class, classes)
            found = pod_class, profile.signature_of(substitute or pod_class, uid), substitute
            # The plugins' results for an unsigned class are not shared: the signature of each of
            # its pods contains the pod's UID.
            if profile.is_signed(substitute or pod_class):
                known[id(facts)] = found
        pod_class, signature, substitute = found
        pods.append(PodInCycle(uid, key, pod_class, signature, *counts, substitute))
    return pods
