"""Preemption as a scheduler carries it out: evictions, nominations.

    no node ─► dry run ─► decided ─► Nominate ─► evict at the binder
                                                                  │
                    queue: pod goes back, victims leave ◄── cache: victims leave, pod nominated

The pod stays leased until its victims are gone (upstream's asynchronous preemption: PreEnqueue
keeps it out of activeQ for so long). A victim that waits for Permit at this scheduler is not
evicted but refused, and goes back to the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from roadstead.actors.messages import (
    EVICT,
    NOMINATE,
    Assumed,
    Evict,
    Nominations,
    PodBatch,
    pod_batch,
)
from roadstead.actors.seam import Ref
from roadstead.attempts.core import AttemptsCore
from roadstead.attempts.effects import Effect, Nominate, Nomination
from roadstead.attempts.pods import PodState
from roadstead.facts.pod import PodIdentity
from roadstead.run import Pod

PREEMPTED = "preempted"
PLUGIN = "DefaultPreemption"


async def carry_out(
    effect: Nominate,
    core: AttemptsCore,
    binder: Ref,
    cache: Ref,
    known_changes: int,
    timeout_s: float,
) -> tuple[list[Effect], PodBatch, Assumed]:
    """Evicts and nominates: what the core asks for then, the pods that are gone, the cache's word.

    Coming twice is no harm: who is gone is gone, and a nomination is told as it is.
    """
    effects: list[Effect] = []
    gone: list[Pod] = []
    for each in effect.nominations:
        refused, evicted = _sort_out(each, core)
        for uid in refused:
            effects += core.reject(uid, PLUGIN, PREEMPTED)
        if evicted:
            ask = Evict(each.token, evicted, each.key, each.node_name)
            answer = await binder.call(EVICT, ask, timeout_s=timeout_s)
            gone += answer.gone.pods()
    uids = tuple(identity.uid for identity, _ in gone)
    effects += core.deleted(uids)
    told = replace(_nominations(effect.nominations, uids), known_changes=known_changes)
    return effects, pod_batch(gone), await cache.call(NOMINATE, told, timeout_s=timeout_s)


def _sort_out(nomination: Nomination, core: AttemptsCore) -> tuple[list[str], tuple[str, ...]]:
    """(victims that wait for Permit here, all others)."""
    uids = [victim.uid for victim in nomination.victims if victim.uid]
    waiting = [uid for uid in uids if core.state_of(uid) is PodState.WAITING]
    return waiting, tuple(uid for uid in uids if uid not in waiting)


def _nominations(all_of_them: Sequence[Nomination], gone: tuple[str, ...]) -> Nominations:
    pods = pod_batch((_identity(each), each.facts) for each in all_of_them)
    return Nominations(
        pods,
        tuple(each.node_name for each in all_of_them),
        tuple(bool(each.victims) for each in all_of_them),
        gone,
    )


def _identity(nomination: Nomination) -> PodIdentity:
    namespace, _, name = nomination.key.partition("/")
    return PodIdentity(nomination.uid, namespace, name)
