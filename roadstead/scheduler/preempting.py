"""Preemption, the scheduler's part: evictions and nominations.

    no node ─► dry run ─► decided ─► Nominate ─► evict at the binder
                                                                  │
           queue: pod requeued, victims removed ◄── cache: victims removed, pod nominated

The pod remains leased until its victims are evicted (upstream's asynchronous preemption: PreEnqueue
keeps it out of activeQ until then). A victim that waits at Permit in this scheduler is not evicted
but rejected and requeued.
"""

from __future__ import annotations

from typing import cast

from roadstead.attempts.commands import Command, Nominate, Nomination
from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.pods import AttemptState
from roadstead.cache.answers import CacheAnswer
from roadstead.facts.pod import Pod
from roadstead.scheduler.needs import EvictPods, NominatePods, Steps, cache_answer

PREEMPTED = "preempted"


def evict_and_nominate(
    command: Nominate, core: AttemptsCore, known_changes: int
) -> Steps[tuple[list[Command], list[Pod], CacheAnswer]]:
    """Evict victims and nominate; return the core's commands, evicted pods, the cache's answer.

    May be repeated: pods that were evicted before are reported again, and a nomination is set to
    the same node.
    """
    commands: list[Command] = []
    evicted: list[Pod] = []
    preemptor_of: dict[str, str] = {}
    for each in command.nominations:
        waiting, to_evict = _split_victims(each, core)
        for uid in waiting:
            commands += core.reject(uid, each.preempting_plugin, PREEMPTED)
        preemptor_of |= dict.fromkeys(to_evict, each.key)
    claims = deallocated(command)
    if preemptor_of or claims:
        need = EvictPods(tuple(preemptor_of), tuple(preemptor_of.values()), claims)
        evicted = cast("list[Pod]", (yield need))
    uids = tuple(identity.uid for identity, _ in evicted)
    commands += core.deleted(uids)
    nominate = NominatePods(command.nominations, uids, known_changes)
    return commands, evicted, (yield from cache_answer(nominate))


def deallocated(command: Nominate) -> tuple[tuple[str, str], ...]:
    """Return (key, UID) of the claims of devices that lose their allocation, each for a pod."""
    return tuple((each.deallocates, each.uid) for each in command.nominations if each.deallocates)


def _split_victims(nomination: Nomination, core: AttemptsCore) -> tuple[list[str], tuple[str, ...]]:
    """Return the UIDs of victims that wait at Permit here, and of all others."""
    uids = [victim.uid for victim in nomination.victims if victim.uid]
    waiting = [uid for uid in uids if core.state_of(uid) is AttemptState.WAITING]
    return waiting, tuple(uid for uid in uids if uid not in waiting)
